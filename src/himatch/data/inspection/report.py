"""What a dataset holds, as numbers, and the tables that show them: the content of ``himatch data inspect``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from io import StringIO
from typing import Any

from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from himatch.tasks import Discrete

GROUP_SIZE = 5  # episodes in each of best, middle and worst, as in the paper's figure
MOST_FEATURES = 24
TEXT_WIDTH = 100
_LEVELS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class FeatureReport:
    """One feature over all steps.

    ``spread`` is the standard deviation of episode means: how much episodes differ, which is what conditioning on the
    feature can tell apart. ``distributions`` holds histograms over ``edges`` of all episodes and of each group. There
    are that many different ``values``, 3 if more. ``usual`` is what bins span in training: ``edges`` without extreme
    values. ``filled`` of these bins hold a value.
    """

    name: str
    minimum: float
    low: float
    mean: float
    std: float
    high: float
    maximum: float
    spread: float
    edges: list[float]
    distributions: dict[str, list[float]]
    values: int
    usual: tuple[float, float]
    filled: int

    def __repr__(self) -> str:
        return (
            f"FeatureReport({self.name}: {self.minimum:.4g} to {self.maximum:.4g}, mean {self.mean:.4g}, "
            f"std {self.std:.4g}, of means {self.spread:.4g})"
        )


@dataclass(frozen=True)
class DatasetReport:
    """Everything ``data inspect`` shows; ``failed`` has the features that cannot be computed, with the reason."""

    source: str
    task: str
    env_id: str | None
    content_hash: str
    episodes: int
    steps: int
    observation_width: int
    action_width: int
    discrete: dict[str, int] | None
    observation_names: list[str]
    action_names: list[str]
    rate: float | None
    units: dict[str, str]
    mapping_files: list[str]
    megabytes: float
    lengths: dict[str, float]
    terminated: int
    labels: dict[str, int]
    unlabelled: int
    returns: dict[str, float] | None
    normalized_returns: dict[str, float] | None
    sorted_returns: list[float] | None
    groups: dict[str, list[int]]
    features: list[FeatureReport]
    failed: dict[str, str]
    extremes: list[dict[str, Any]]
    warnings: list[str]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def __repr__(self) -> str:
        """The tables of ``himatch data inspect``."""
        text = StringIO()
        show_report(self, Console(width=TEXT_WIDTH, file=text, color_system=None, force_jupyter=False))
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def show_report(report: DatasetReport, console: Console) -> None:
    """Print the report."""
    console.print(render(report))


def render(report: DatasetReport) -> Group:
    """The report as something rich prints."""
    parts: list[Table | Text] = [_overview(report), _features(report)]
    parts += [Text.assemble(("! ", "bold yellow"), (warning, "yellow")) for warning in report.warnings]
    return Group(*parts)


def sparkline(weights: list[float]) -> str:
    """A histogram in one line; bins with anything in them never vanish."""
    top = max(weights)
    return "".join(_LEVELS[0 if w == 0 else max(1, round(w / top * 8))] for w in weights)


def _overview(report: DatasetReport) -> Table:
    table = Table(title="dataset", title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")

    def numbers(values: dict[str, float], digits: int) -> str:
        return "   ".join(f"{key} {values[key]:,.{digits}f}" for key in ("min", "median", "mean", "max"))

    table.add_row("source", report.source)
    table.add_row("task", report.task + (f" (recorded in {report.env_id})" if report.env_id else ""))
    table.add_row("episodes", f"{report.episodes:,}")
    table.add_row(
        "steps",
        f"{report.steps:,}   ({report.observation_width} observations, {_actions(report)} a step, "
        f"{report.megabytes:,.1f} MB)",
    )
    for what, names in (("observations", report.observation_names), ("actions", report.action_names)):
        if names:
            measured = [f"{name} [{report.units[name]}]" if name in report.units else name for name in names]
            table.add_row(what, escape(_shown(measured, MOST_FEATURES)))
    if report.mapping_files:
        table.add_row("columns from", _shown(report.mapping_files, 5))
    if report.rate is not None:
        table.add_row("control rate", f"{report.rate:g} Hz")
    table.add_row("lengths", numbers(report.lengths, 0))
    table.add_row("ended by", f"termination {report.terminated:,}   truncation {report.episodes - report.terminated:,}")
    if report.returns is not None:
        table.add_row("returns", numbers(report.returns, 1))
    if report.normalized_returns is not None:
        table.add_row("D4RL score", numbers(report.normalized_returns, 1))
    if report.labels:
        shown = [f"{label} ({count})" for label, count in sorted(report.labels.items())]
        without = f"   without a label {report.unlabelled:,}" if report.unlabelled else ""
        table.add_row("labels", _shown(shown, 12) + without)
    table.add_row("sha256", report.content_hash[:16])
    return table


def _actions(report: DatasetReport) -> str:
    if report.discrete is None:
        return f"{report.action_width} actions"
    return f"one of the {Discrete.of(report.discrete)}"


def _shown(names: list[str], most: int) -> str:
    return ", ".join(names[:most]) + (f", ... {len(names)} in all" if len(names) > most else "")


def _features(report: DatasetReport) -> Table:
    table = Table(
        title="features", title_justify="left", header_style="bold", box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("feature", no_wrap=True)
    for name in ("min", "mean", "max", "std", "of means"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("all steps", no_wrap=True, overflow="crop")
    for feature in report.features[:MOST_FEATURES]:
        numbers = (feature.minimum, feature.mean, feature.maximum, feature.std, feature.spread)
        table.add_row(feature.name, *map(_number, numbers), sparkline(feature.distributions["all"]))
    for name in report.failed:  # why is among the warnings below
        table.add_row(name, "failed")
    if len(report.features) > MOST_FEATURES:
        table.add_row(f"... {len(report.features) - MOST_FEATURES} more (--json has them all)")
    return table


def _number(value: float) -> str:
    if value == 0 or 1e-2 <= abs(value) < 1e4:
        return f"{value:.2f}"
    return f"{value:.1e}"
