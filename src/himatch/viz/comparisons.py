"""Methods beside one another, on a page: intervals, curves, and returns of targets and rollouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

from himatch.viz.style import AXIS, DASHES, ORANGE, PAGE, PAGE_INK, ROLLOUT, SERIES, blank, legend_above, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER = ORANGE


@dataclass(frozen=True)
class Estimate:
    """What one method reached: each target, interquartile mean with its interval, and mean."""

    each: Sequence[float]
    iqm: float
    mean: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class IntervalPanel:
    """Estimates of the methods in their order, the paper's means, and a level that all are measured against."""

    title: str
    estimates: Sequence[Estimate | None]
    paper: Sequence[float | None]
    mixture: float | None = None


@dataclass(frozen=True)
class CurvePanel:
    """Points ``(x, y)`` of every method that has any, and of the episode mixture."""

    title: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    mixture: tuple[Sequence[float], Sequence[float]] | None = None


def interval_chart(panels: Sequence[IntervalPanel], methods: Sequence[str], measured: str = "W₁") -> Figure:
    """Methods as rows, one panel beside the other, what was measured along the axis."""
    with style(PAGE):
        figure = blank(max(2.35 * len(panels) + 1.6, 7.2), 0.235 * len(methods) + 0.95)
        axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axis, panel in zip(axes, panels, strict=True):
            for y, (estimate, paper) in enumerate(zip(panel.estimates, panel.paper, strict=True)):
                if paper is not None:
                    axis.plot(paper, y, "D", mfc="none", mec=PAPER, ms=5, mew=1.2, label="paper (mean)")
                if estimate is not None:
                    _estimate(axis, y, estimate)
            if panel.mixture is not None:
                axis.axvline(panel.mixture, color=AXIS, lw=1, ls=DASHES, label="episode mixture")
            axis.set_title(panel.title)
            axis.set_xlim(left=0)
            axis.set_ylim(len(methods) - 0.4, -0.6)
            axis.tick_params(axis="y", length=0)
            axis.grid(axis="x", color=AXIS, alpha=0.22, lw=0.6)
        axes[0].set_yticks(range(len(methods)), methods)
        figure.supxlabel(measured, fontsize=8)
        legend_above(figure, axes)
    return figure


def _estimate(axis: Axes, y: int, estimate: Estimate) -> None:
    axis.plot(estimate.each, [y] * len(estimate.each), "|", color=AXIS, ms=6, alpha=0.55, label="each target")
    label = "interquartile mean"
    if estimate.interval is not None:
        axis.plot(estimate.interval, [y, y], color=ROLLOUT, lw=2.4, alpha=0.5)
        label += ", 95 % interval"
    axis.plot(estimate.iqm, y, "o", color=ROLLOUT, ms=4.5, label=label)
    axis.plot(estimate.mean, y, "x", color=PAGE_INK, ms=4, mew=1.1, label="mean")


def curve_chart(panels: Sequence[CurvePanel], methods: Sequence[str], x_name: str, y_name: str) -> Figure:
    """How a number that is best small grows with another."""
    colors = _colors(methods)
    with style(PAGE):
        figure = blank(max(2.4 * len(panels) + 0.7, 4.8), 2.3)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            for name, (x, y) in panel.curves.items():
                axis.plot(x, y, "o-", color=colors[name], ms=3.5, lw=1.3, label=name)
            if panel.mixture is not None:
                axis.plot(*panel.mixture, color=AXIS, lw=1, ls=DASHES, label="episode mixture")
            axis.set(title=panel.title, xlabel=x_name)
            axis.set_ylim(bottom=0)
            axis.grid(axis="y", color=AXIS, alpha=0.22, lw=0.6)
        axes[0].set_ylabel(y_name)
        legend_above(figure, axes)
    return figure


def agreement_chart(panels: Sequence[CurvePanel], methods: Sequence[str], x_name: str, y_name: str) -> Figure:
    """Points that lie on the dashed line where both numbers agree."""
    colors = _colors(methods)
    with style(PAGE):
        figure = blank(2.5 * len(panels) + 0.6, 2.7)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            for name, (x, y) in panel.curves.items():
                axis.plot(x, y, "o", color=colors[name], ms=4, alpha=0.75, mew=0, label=name)
            low, high = (f(*axis.get_xlim(), *axis.get_ylim()) for f in (min, max))
            axis.plot([low, high], [low, high], color=AXIS, lw=1, ls=DASHES, zorder=0)
            axis.set(title=panel.title, xlabel=x_name)
            axis.locator_params(nbins=4)
        axes[0].set_ylabel(y_name)
        legend_above(figure, axes)
    return figure


def _colors(methods: Sequence[str]) -> dict[str, str]:
    """A colour for each method, the same in all panels whatever was not run in some of them."""
    return dict(zip(methods, cycle(SERIES), strict=False))
