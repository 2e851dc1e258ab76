"""Rows of dots along one axis: what several methods reached, suite by suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from himatch.viz.style import AXIS, ORANGE, PAGE, PAGE_INK, ROLLOUT, blank, legend_above, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS: Mapping[str, Mapping[str, object]] = {
    "ours": {"marker": "o", "color": ROLLOUT, "ms": 6.5},
    "second": {"marker": "o", "mfc": "none", "mec": ROLLOUT, "mew": 1.3, "ms": 5.5},
    "paper": {"marker": "D", "mfc": "none", "mec": ORANGE, "mew": 1.3, "ms": 5},
    "other": {"marker": "s", "color": AXIS, "ms": 4.5},
    "third": {"marker": "^", "color": AXIS, "ms": 5},
    "level": {"marker": "|", "color": PAGE_INK, "ms": 11, "mew": 1.4},
}
"""Shapes tell them apart in print and to colour-blind readers."""


@dataclass(frozen=True)
class DotPanel:
    """Some rows of dots: ``dots[name]`` has a number for every row, or none."""

    title: str
    dots: Mapping[str, Sequence[float | None]]


def dot_chart(panels: Sequence[DotPanel], rows: Sequence[str], marks: Mapping[str, str], *, wide: float) -> Figure:
    """Panels beside one another, numbers on a logarithmic axis; ``marks`` say which mark a name has."""
    with style(PAGE):
        figure = blank(wide, 0.27 * len(rows) + 0.85)
        axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axis, panel in zip(axes, panels, strict=True):
            _draw(axis, panel, marks)
            axis.set_title(panel.title)
            axis.set_ylim(len(rows) - 0.4, -0.6)
        axes[0].set_yticks(range(len(rows)), rows)
        legend_above(figure, axes)
    return figure


def _draw(axis: Axes, panel: DotPanel, marks: Mapping[str, str]) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    known = [(name, [(x, y) for y, x in enumerate(found) if x]) for name, found in panel.dots.items()]
    every = [x for _, points in known for x, _ in points]
    for name, points in known:
        if points:
            axis.plot(*zip(*points, strict=True), linestyle="", label=name, **MARKS[marks[name]])  # type: ignore[arg-type]
    axis.set_xscale("log")
    if every:
        axis.set_xlim(min(every) / 1.25, max(every) * 1.25)
        axis.set_xticks(_ticks(min(every) / 1.25, max(every) * 1.25))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.minorticks_off()
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="both", color=AXIS, alpha=0.22, lw=0.6)
    axis.spines["left"].set_visible(False)


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every power of ten; over many of them the powers alone, whose labels have room."""
    firsts = (1, 2, 5) if high / low < 100 else (1,)
    known = [float(f"{first}e{power}") for power in range(-4, 5) for first in firsts]
    return [tick for tick in known if low <= tick <= high]
