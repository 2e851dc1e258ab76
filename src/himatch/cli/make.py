"""``himatch data make``, ``himatch data list`` and ``himatch data collect``: datasets out of simulations."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro

from himatch.cli.flags import Import, Name, PathName, Threads, optional
from himatch.cli.match import Conditioning

if TYPE_CHECKING:
    from himatch.data import TrajectoryDataset
    from himatch.datagen.cache import Listing

Folder = Annotated[str, tyro.conf.arg(metavar="DIR")]
Seed = Annotated[int, tyro.conf.arg(metavar="S")]

POLICIES = (
    "sb3:AGENT.zip (Stable-Baselines3), expert:NAME (comes with himatch), run:RUN (a run or pretrained model of "
    "himatch's, with --target), module:function or file.py:function (observations (n, obs) to "
    "actions (n, act)). Agent files and Python files run code of whoever wrote them."
)
WIDE = 112  # columns of a terminal from which on the list shows who plays, and the returns of what is in the cache


@dataclass
class MakeData:
    """Make a dataset: the paper's from experts that come with himatch, or OGBench's mazes ('himatch data list')."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """halfcheetah-medium-expert, cheetah-vel, ogbench-pointmaze-medium-stitch, ..."""
    out: Folder
    """Minari folder to write."""
    episodes: Annotated[int | None, optional(metavar="N")] = None
    """Episodes in total, spread evenly over the experts."""
    seed: Seed = 0
    """Seed of initial states and actions; one seed, one content hash."""
    threads: Threads = 0
    """Threads that simulate; 0 means all."""
    overwrite: bool = False
    """Replace DIR if it exists."""
    experts: PathName = None
    """Folder of experts of your own (himatch experts pick) in place of the bundled ones."""

    def run(self) -> None:
        """Play and write."""
        from himatch.datagen import make_dataset

        dataset = make_dataset(
            self.name,
            self.out,
            episodes=self.episodes,
            seed=self.seed,
            threads=self.threads,
            overwrite=self.overwrite,
            experts=self.experts,
        )
        _report(dataset, self.out)


@dataclass
class CollectData:
    """Roll out a policy of your own and write its episodes."""

    task: Annotated[str, tyro.conf.arg(metavar="NAME")]
    """Task with an environment: halfcheetah, hopper, walker2d, ant, cheetah-vel, backflip or one you registered."""
    policy: Annotated[str, tyro.conf.arg(metavar="POLICY", help=POLICIES)]
    out: Folder
    """Minari folder to write."""
    target: Annotated[tuple[str, ...], tyro.conf.arg(metavar="EXPR...")] = ()
    """What a run:RUN is to match; episodes are dealt evenly to several targets, and labelled with them."""
    conditioning: Conditioning = "nominal"
    """How a run:RUN is conditioned on them (himatch match --help)."""
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 100
    """Episodes."""
    seed: Seed = 0
    """Seed of initial states and sampled actions."""
    deterministic: bool = False
    """The most likely actions of an agent instead of samples."""
    label: Name = None
    """Behaviour that the episodes belong to."""
    slots: Annotated[int, tyro.conf.arg(metavar="K")] = 32
    """Simulations at once."""
    vecnormalize: PathName = None
    """VecNormalize file of a Stable-Baselines3 agent; looked for beside it where none is named."""
    overwrite: bool = False
    """Replace DIR if it exists."""
    imports: Import = ()
    """Python file (or module) that registers tasks of your own."""

    def run(self) -> None:
        """Play and write."""
        from himatch.datagen import collect_dataset
        from himatch.tasks import import_tasks

        import_tasks(*self.imports)
        dataset = collect_dataset(
            self.task,
            self.policy,
            self.out,
            episodes=self.episodes,
            seed=self.seed,
            deterministic=self.deterministic,
            label=self.label,
            slots=self.slots,
            vecnormalize=self.vecnormalize,
            overwrite=self.overwrite,
            targets=self.target,
            conditioning=self.conditioning,
        )
        _report(dataset, self.out)
        print(f"returns {dataset.returns.min():.1f} to {dataset.returns.max():.1f}, mean {dataset.returns.mean():.1f}")


@dataclass
class ListData:
    """Show the datasets that himatch makes: size, expected returns, and which are in the cache."""

    cache: PathName = None
    """Folder where datasets used by name are kept ($HIMATCH_CACHE, else the user's cache folder)."""
    json: bool = False
    """Print everything as JSON instead of a table."""

    def run(self) -> None:
        """Print the table."""
        from himatch.datagen.cache import cache_folder, list_datasets

        listings = list_datasets(self.cache)
        if self.json:
            print(json.dumps([listing.as_json() for listing in listings]))
            return
        from rich.console import Console
        from rich.table import Table

        console = Console() if sys.stdout.isatty() else Console(width=120)
        wide = console.width >= WIDE
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title_justify="left")
        table.title = f"datasets (cache: {cache_folder(self.cache)})"
        for name in ("name", "experts")[: 2 if wide else 1]:
            table.add_column(name, header_style="bold", no_wrap=wide, overflow="fold")
        for name in ("episodes", "steps", "expected return", "in cache", "its returns")[: 5 if wide else 4]:
            table.add_column(name, header_style="bold", justify="right", no_wrap=True)
        for listing in listings:
            name, experts, *rest, returns = _row(listing)
            table.add_row(name, *([experts] if wide else []), *rest, *([returns] if wide else []))
        console.print(table)


def _row(listing: Listing) -> tuple[str, ...]:
    recipe, known = listing.recipe, [card for card in listing.cards if card is not None]
    experts = " + ".join(part.expert.removeprefix(f"{recipe.task}-") for part in recipe.parts)
    if len(recipe.parts) > 3:
        experts = f"{recipe.parts[0].label} ... {recipe.parts[-1].label}"
    if not recipe.parts:
        experts, steps, expected = "oracle", f"{listing.steps:,}", ""
    elif len(known) < len(recipe.parts):
        steps, expected = "", "expert not bundled"
    else:
        sampled = [card["stochastic"] for card in known]
        steps = f"{sum(s['length'] * p.episodes for s, p in zip(sampled, recipe.parts, strict=True)):,.0f}"
        means = [f"{s['mean']:,.0f}" for s in sampled]
        expected = " + ".join(means) if len(means) <= 3 else f"{means[0]} ... {means[-1]}"
    row = recipe.name, experts, f"{recipe.episodes:,}", steps, expected
    if listing.cached is None:
        return (*row, "", "")
    made = listing.as_json()["cached"]
    returns = [part["returns"] for part in made["parts"]]
    return (
        *row,
        f"{made['bytes'] / 1e6:,.0f} MB",
        f"{min(r['min'] for r in returns):,.0f} to {max(r['max'] for r in returns):,.0f}" if returns else "",
    )


def _report(dataset: TrajectoryDataset, out: str) -> None:
    print(f"{len(dataset)} episodes, {dataset.steps} steps, sha256 {dataset.content_hash[:16]} written to {out}")
