"""``himatch data collect``: any policy's episodes as a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch._runtime.files import new_folder
from himatch._version import __version__
from himatch.data.checks import observation_columns
from himatch.data.dataset import TrajectoryDataset
from himatch.data.writer import check_out, write_folder
from himatch.datagen.behaviour import Act, BehaviourPolicy
from himatch.datagen.policies import open_policy
from himatch.datagen.recorded import recorded_dataset, recording_metadata, return_range
from himatch.datagen.slots import even_slots, metered, reset_seeds
from himatch.errors import DataError, HimatchError, note
from himatch.simulation import Behaviour, Simulator, make_simulator
from himatch.tasks import Task, get_task
from himatch.types import Trajectory

if TYPE_CHECKING:
    from himatch.rollout import Conditioning
    from himatch.targets import TargetLike

RUN = "run:"  # begins the name of a run that acts


def collect_dataset(
    task: str | Task,
    policy: str | Act,
    out: str | Path,
    *,
    episodes: int = 100,
    seed: int = 0,
    deterministic: bool = False,
    label: str | None = None,
    slots: int = 32,
    vecnormalize: str | Path | None = None,
    overwrite: bool = False,
    quiet: bool = False,
    targets: Sequence[TargetLike] = (),
    conditioning: Conditioning = "nominal",
) -> TrajectoryDataset:
    """Play a policy in a task's environment and write the episodes as a Minari folder.

    Parameters
    ----------
    task
        Name or :class:`Task` with an environment.
    policy
        ``"sb3:AGENT.zip"``, ``"expert:NAME"``, ``"run:RUN"``, ``"module:function"``, ``"file.py:function"``, or a
        function: observations ``(n, obs)`` to actions ``(n, act)``. Actions outside the task's range are clipped.
    out
        Folder to write; it appears when it is complete.
    episodes, seed
        How many, and the seed of their initial states and of sampled actions.
    deterministic
        The most likely actions of an agent instead of samples.
    label
        Behaviour that the episodes belong to.
    slots
        Simulations at once.
    vecnormalize
        VecNormalize file of a Stable-Baselines3 agent; by default the one beside it.
    overwrite
        Replace ``out`` if it exists.
    quiet
        No progress bar.
    targets, conditioning
        What a run does, which acts under targets: its episodes are dealt evenly to them.
    """
    known, out = get_task(task), Path(out)
    for what, number in (("episodes", episodes), ("slots", slots)):
        if number < 1:
            raise DataError(f"{what} must be at least 1, got {number}")
    check_out(out, overwrite)
    if isinstance(policy, str) and policy.startswith(RUN):
        from himatch.datagen.trained import collect_from_run  # torch is needed from here on

        if vecnormalize is not None:
            raise HimatchError("--vecnormalize belongs to a Stable-Baselines3 agent (--policy sb3:AGENT.zip)")
        return collect_from_run(
            known,
            policy.removeprefix(RUN),
            out,
            targets,
            episodes=episodes,
            seed=seed,
            deterministic=deterministic,
            label=label,
            conditioning=conditioning,
            overwrite=overwrite,
            quiet=quiet,
        )
    if targets or conditioning != "nominal":
        raise HimatchError("targets and their conditioning are for a policy of himatch's (--policy run:RUN)")
    starts = reset_seeds(seed, 0, episodes)
    behaviour_policy = open_policy(policy, deterministic=deterministic, vecnormalize=vecnormalize)
    settings = behaviour_policy.settings(known)
    with closing(make_simulator(known, even_slots(episodes, slots), settings=settings)) as simulator:
        observation_columns(simulator.observations.shape[1], known, f"the environment {known.env_id}")
        with new_folder(out, overwrite=overwrite) as partial:
            played = _play(behaviour_policy, simulator, starts, seed, label=label, quiet=quiet)
            dataset = recorded_dataset(played, simulator.task, source=behaviour_policy.facts["policy"])
            _write(dataset, partial, out.name, behaviour_policy, starts, seed)
    dataset.source = str(out)
    return dataset


def _play(
    policy: BehaviourPolicy, simulator: Simulator, starts: Sequence[int], seed: int, *, label: str | None, quiet: bool
) -> list[Trajectory]:
    """One episode for each initial state, with actions in the task's range."""
    task, name = simulator.task, policy.facts["policy"]
    with (
        metered(name, len(starts) * task.horizon, quiet=quiet) as meter,
        policy.acting(simulator, seed) as behaviour,
        _clipped(behaviour, task, name) as within,
    ):
        return meter.play(simulator, within, starts, label)


def _write(
    dataset: TrajectoryDataset, folder: Path, name: str, policy: BehaviourPolicy, starts: Sequence[int], seed: int
) -> None:
    """Write the episodes, and who played them how."""
    task, who = dataset.task, policy.facts["policy"]
    facts = {
        **policy.facts,
        "settings": dict(policy.settings(task)),
        "seed": seed,
        "episodes": len(dataset),
        "returns": return_range(dataset),
    }
    write_folder(
        dataset,
        folder,
        name,
        description=f"{len(dataset)} episodes of {task.name} by {who}, collected by himatch {__version__}.",
        seeds=starts,
        metadata={"algorithm_name": facts.get("algorithm", who), **recording_metadata({"collected": facts})},
    )


@contextmanager
def _clipped(behaviour: Behaviour, task: Task, name: str) -> Iterator[Behaviour]:
    """Actions within the task's range, because some environments punish what they then cut; says how many were not."""
    if task.action_low is None or task.action_high is None:
        yield behaviour
        return
    low, high = (np.asarray(bound, dtype=np.float32) for bound in (task.action_low, task.action_high))
    outside = total = 0

    def clipped(observations: NDArray[np.float64], episodes: NDArray[np.int64], steps: NDArray[np.int64]) -> ArrayLike:
        nonlocal outside, total
        actions = np.asarray(behaviour(observations, episodes, steps), dtype=np.float32)
        within = np.clip(actions, low, high)
        playing = episodes >= 0
        outside += int((within != actions)[playing].sum())
        total += actions[playing].size
        return within

    yield clipped
    if outside:
        note(f"{outside / total:.1%} of the action values of {name} were clipped to the range of task {task.name}")
