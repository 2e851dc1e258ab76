"""Target and rollouts over one another, as small multiples on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from himatch.viz.style import (
    DASHES,
    PAGE,
    ROLLOUT,
    BinShares,
    blank,
    feature_axis_only,
    legend_above,
    rollout_line,
    span,
    style,
    target_area,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = (1.5, 0.98)  # inches
BELOW_REMARK = 0.82  # of a panel's height
LABELS = (0.75, 0.75)  # inches beside and below the panels


@dataclass(frozen=True)
class RolloutLine:
    """The rollouts of one method."""

    rollouts: BinShares
    label: str = "rollouts"
    color: str = ROLLOUT


@dataclass(frozen=True)
class HistogramPanel:
    """A target, rollouts over it, a remark in the corner, and dashed lines at some ``levels`` in their colours."""

    target: BinShares
    lines: Sequence[RolloutLine]
    remark: str = ""
    levels: Sequence[tuple[float, str]] = ()

    @property
    def drawn(self) -> list[BinShares]:
        """All histograms of the panel."""
        return [self.target, *(line.rollouts for line in self.lines)]


def histogram_grid(
    grid: Sequence[Sequence[HistogramPanel | None]],
    rows: Sequence[str],
    columns: Sequence[str],
    feature: str,
    *,
    one_x: bool = False,
    one_y: bool = False,
    legend: bool = False,
    panel: tuple[float, float] = PANEL,
    labels: tuple[float, float] = LABELS,
) -> Figure:
    """Panels with titles above the columns and names beside the rows; holes are empty axes.

    The panels of a row are compared and share their ranges; with ``one_x`` and ``one_y`` all panels do.
    """
    with style(PAGE):
        figure = blank(panel[0] * len(columns) + labels[0], panel[1] * len(rows) + labels[1])
        axes = figure.subplots(len(rows), len(columns), squeeze=False)
        for line, panels, name in zip(axes, grid, rows, strict=True):
            for axis, shown in zip(line, panels, strict=True):
                if shown is not None:
                    _draw(axis, shown)
            line[0].set_ylabel(name)
        for axis, title in zip(axes[0], columns, strict=True):
            axis.set_title(title)
        everything = [shown for panels in grid for shown in panels]
        for line, panels in zip(axes, grid, strict=True):
            _limit(line, everything if one_x else panels, everything if one_y else panels)
        if one_x:
            for axis in axes[:-1].flat:
                axis.tick_params(labelbottom=False)
        if legend:
            legend_above(figure, list(axes.flat))
        figure.supxlabel(feature, fontsize=8)
    return figure


def _draw(axis: Axes, panel: HistogramPanel) -> None:
    target_area(axis, panel.target)
    for line in panel.lines:
        rollout_line(axis, line.rollouts, color=line.color, label=line.label)
    for level, color in panel.levels:
        axis.axvline(level, ymax=BELOW_REMARK, color=color, lw=0.9, ls=DASHES)
    if panel.remark:
        axis.text(0.99, 0.97, panel.remark, transform=axis.transAxes, ha="right", va="top", fontsize=7)


def _limit(axes: Sequence[Axes], across: Sequence[HistogramPanel | None], up: Sequence[HistogramPanel | None]) -> None:
    """One range for panels that are compared, with room for the remark."""
    bounds = span(_drawn(across))
    top = max(float(shares.density.max()) for shares in _drawn(up))
    for axis in axes:
        feature_axis_only(axis)
        axis.set_xlim(*bounds)
        axis.set_ylim(0, 1.22 * top)


def _drawn(panels: Sequence[HistogramPanel | None]) -> list[BinShares]:
    return [shares for panel in panels if panel is not None for shares in panel.drawn]
