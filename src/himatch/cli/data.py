"""``himatch data``: look at datasets and convert them."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from himatch.cli.flags import SOURCES, Import, Name, PathName, optional

if TYPE_CHECKING:
    from himatch.data import TrajectoryDataset


@dataclass
class TableColumns:
    """Which column of a CSV or Parquet table holds what; a TOML file beside the table can say the same."""

    episode: Annotated[str | None, optional(name="columns.episode", metavar="NAME")] = None
    """Column that says which episode a row belongs to (episode)."""
    observations: Annotated[str | None, optional(name="columns.observations", metavar="PATTERNS")] = None
    """Observation columns: names or patterns, separated by commas, in this order (obs*)."""
    actions: Annotated[str | None, optional(name="columns.actions", metavar="PATTERNS")] = None
    """Action columns: names or patterns, separated by commas, in this order (act*)."""
    reward: Annotated[str | None, optional(name="columns.reward", metavar="NAME")] = None
    """Reward column (reward, if the table has it)."""
    terminated: Annotated[str | None, optional(name="columns.terminated", metavar="NAME")] = None
    """Column that is true in the last row of an episode that ended by termination (terminated, if the table has it)."""
    step: Annotated[str | None, optional(name="columns.step", metavar="NAME")] = None
    """Step or time column that orders the rows of an episode (step, if the table has it)."""
    label: Annotated[str | None, optional(name="columns.label", metavar="NAME")] = None
    """Column with the behaviour an episode belongs to (label, if the table has it)."""
    rate: Annotated[float | None, optional(name="columns.rate", metavar="HZ")] = None
    """Control steps a second, of any source (from the times in the step column, or what the source says)."""
    continuous: Annotated[bool, tyro.conf.arg(name="columns.continuous")] = False
    """The actions are continuous, although they hold a few whole numbers only."""
    discrete: Annotated[int | Literal["auto"] | None, optional(name="columns.discrete", metavar="N|auto")] = None
    """The actions are numbers of N discrete ones, from 0 up; auto: of as many as the data shows."""


@dataclass
class DataOptions:
    """How the data is read."""

    task: Name = None
    """Task of the episodes: halfcheetah, hopper, walker2d, ant or one you registered; the source's by default."""
    imports: Import = ()
    """Python file (or module) that registers tasks or methods of your own."""
    clip_actions: bool = False
    """Clip actions outside the task's range instead of refusing them."""
    drop_bad: bool = False
    """Leave out episodes with missing or infinite numbers, text or steps that come twice instead of refusing them."""
    drop_extremes: bool = False
    """Leave out episodes with values far beyond the others of their column (himatch data inspect names them)."""
    mmap: PathName = None
    """Folder for memory-mapped arrays, for sets larger than memory; filled on first use, reused afterwards."""
    cache: PathName = None
    """Folder where datasets used by name are made and kept ($HIMATCH_CACHE, else the user's cache folder)."""
    columns: TableColumns = field(default_factory=TableColumns)

    def register(self) -> None:
        """Run what --import names, once."""
        from himatch.tasks import import_tasks

        import_tasks(*self.imports)
        self.imports = ()

    def load(self, source: str) -> TrajectoryDataset:
        """Read and check the source."""
        from himatch.data import load_dataset

        self.register()
        columns = {
            name: value for name, value in vars(self.columns).items() if value is not None and value is not False
        }
        return load_dataset(
            source,
            self.task,
            clip_actions=self.clip_actions,
            drop_bad=self.drop_bad,
            drop_extremes=self.drop_extremes,
            columns=columns,
            mmap=self.mmap,
            cache=self.cache,
        )


Source = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE", help=SOURCES)]


@dataclass
class InspectData:
    """Show what a dataset holds: episodes, returns, and the range and spread of every feature."""

    source: Source
    feature: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME"), tyro.conf.UseAppendAction] = ()
    """Show this feature instead of all named ones: reward, state, x_velocity, obs[3], act[0], ..."""
    json: bool = False
    """Print everything as JSON instead of tables."""
    plot: PathName = None
    """Draw the feature distributions of the best, middle, worst and all episodes into this .png, .pdf or .svg."""
    data: DataOptions = field(default_factory=DataOptions)

    def run(self) -> None:
        """Load, summarise, print and draw."""
        from rich.console import Console

        from himatch._runtime.files import check_picture
        from himatch.data.inspection import inspect_dataset, show_report
        from himatch.data.inspection.plot import plot_report
        from himatch.errors import HimatchWarning

        if self.plot is not None:
            check_picture(Path(self.plot))  # before the data is read
        console = Console()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", HimatchWarning)
            dataset = self.data.load(self.source)
        report = inspect_dataset(dataset, self.feature or None, warnings=tuple(str(w.message) for w in caught))
        if self.json:
            print(json.dumps(report.as_json()))
        else:
            show_report(report, console)
        if self.plot is not None:
            path = plot_report(report, self.plot)
            if not self.json:
                console.print(f"picture written to {path}", highlight=False, soft_wrap=True)


@dataclass
class ConvertData:
    """Convert a dataset of any format to a Minari folder, checked and repaired on the way."""

    source: Source
    out: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """Folder to write; below Minari's dataset folder, with a version at its end (-v0), Minari opens it by its name."""
    overwrite: bool = False
    """Replace OUT if it exists."""
    data: DataOptions = field(default_factory=DataOptions)

    def run(self) -> None:
        """Load and write."""
        from himatch.data import write_minari
        from himatch.data.writer import check_out

        check_out(Path(self.out), self.overwrite)  # before the data is read
        dataset = self.data.load(self.source)
        path = write_minari(dataset, self.out, overwrite=self.overwrite)
        print(f"{len(dataset)} episodes, {dataset.steps} steps, sha256 {dataset.content_hash[:16]} written to {path}")
