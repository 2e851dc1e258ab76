"""``himatch data make``: datasets of the paper's kind, played by experts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from himatch._runtime.files import new_folder
from himatch._version import __version__
from himatch.data.dataset import TrajectoryDataset
from himatch.data.writer import check_out, write_folder
from himatch.datagen.mazes import MAZES
from himatch.datagen.recipes import Recipe, find_recipe
from himatch.datagen.recorded import recorded_dataset, recording_metadata, return_range
from himatch.datagen.slots import even_slots, metered, reset_seeds
from himatch.errors import DataError
from himatch.simulation import make_simulator
from himatch.tasks import get_task
from himatch.types import Trajectory

if TYPE_CHECKING:
    from himatch.experts.expert import Expert


def make_dataset(
    name: str,
    out: str | Path,
    *,
    episodes: int | None = None,
    seed: int = 0,
    threads: int = 0,
    overwrite: bool = False,
    experts: str | Path | None = None,
    quiet: bool = False,
) -> TrajectoryDataset:
    """Play a dataset and write it as a Minari folder.

    Actions are sampled. One seed gives one content hash on one machine, whatever the number of threads.

    Parameters
    ----------
    name
        ``halfcheetah-medium-expert``, ``ogbench-pointmaze-medium-stitch``, ...: a key of ``himatch.datagen.RECIPES`` or
        ``MAZES``.
    out
        Folder to write; it appears when it is complete.
    episodes
        Total, spread evenly over the experts; by default the recipe's.
    seed
        Of initial states and actions.
    threads
        Threads that simulate; 0 takes every CPU. A maze has one.
    overwrite
        Replace ``out`` if it exists.
    experts
        A folder of experts of your own (``himatch experts pick``) in place of the bundled ones.
    quiet
        No progress bar.
    """
    if name in MAZES:
        from himatch.datagen.oracle import play_maze

        if experts is not None:
            raise DataError(f"no expert plays in {name}; leave out the folder of experts")
        maze = MAZES[name] if episodes is None else MAZES[name].with_episodes(episodes)
        return play_maze(maze, out, seed=seed, overwrite=overwrite, quiet=quiet)
    recipe = find_recipe(name, MAZES)
    if episodes is not None:
        recipe = recipe.with_episodes(episodes)
    from himatch.datagen.sampled_experts import recipe_experts  # torch is needed from here on

    players = recipe_experts(recipe, experts)
    return play_recipe(recipe, players, out, seed=seed, threads=threads, overwrite=overwrite, quiet=quiet)


def play_recipe(
    recipe: Recipe,
    experts: Sequence[Expert],
    out: str | Path,
    *,
    seed: int = 0,
    threads: int = 0,
    overwrite: bool = False,
    quiet: bool = False,
) -> TrajectoryDataset:
    """Play a recipe with the expert of each part and write it."""
    from himatch._runtime.threads import one_thread
    from himatch.datagen.sampled_experts import SampledExpert

    task, out = get_task(recipe.task), Path(out)
    check_out(out, overwrite)
    trajectories: list[Trajectory] = []
    seeds: list[int] = []
    facts: list[dict[str, Any]] = []
    steps = sum(part.episodes * expert.task.horizon for part, expert in zip(recipe.parts, experts, strict=True))
    with new_folder(out, overwrite=overwrite) as partial:
        with metered(recipe.name, steps, quiet=quiet) as meter, one_thread():
            for number, (part, expert) in enumerate(zip(recipe.parts, experts, strict=True)):
                starts, slots = reset_seeds(seed, number, part.episodes), even_slots(part.episodes)
                simulator = make_simulator(expert.task, slots, settings=expert.settings, threads=threads)
                behaviour = SampledExpert(expert, slots, expert.task.horizon, (seed, number))
                with closing(simulator):
                    played = meter.play(simulator, behaviour, starts, part.label)
                trajectories += played
                seeds += starts
                facts.append(_part_facts(expert, part.label, played) | {"weights_sha256": expert.weights_hash})
        dataset = recorded_dataset(trajectories, task, source=recipe.name)
        trajectories.clear()  # the dataset has copies of its own
        write_folder(
            dataset,
            partial,
            out.name,
            description=_description(recipe, seed),
            seeds=seeds,
            metadata={
                "algorithm_name": "SAC",
                "author": ["himatch"],
                **recording_metadata({"recipe": recipe.name, "seed": seed, "parts": facts}),
            },
        )
    dataset.source = str(out)
    return dataset


def _part_facts(expert: Expert, label: str | None, played: Sequence[Trajectory]) -> dict[str, Any]:
    return {
        "expert": expert.name,
        "label": label,
        "env_id": expert.task.env_id,
        "settings": expert.settings,
        "episodes": len(played),
        "steps": sum(map(len, played)),
        "returns": return_range(played),
    }


def _description(recipe: Recipe, seed: int) -> str:
    parts = [f"{p.episodes} by {p.expert}" + (f" (label {p.label})" if p.label else "") for p in recipe.parts]
    if len(parts) > 3:
        parts = [parts[0], "...", parts[-1]]
    return (
        f"{recipe.name}: {recipe.episodes} episodes of himatch's SAC experts, {', '.join(parts)}; "
        f"sampled actions, seed {seed}. Made by himatch {__version__}."
    )
