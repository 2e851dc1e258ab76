"""Two-dimensional targets and rollouts side by side on a page, each map with its marginals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.viz.style import AXIS, DASHES, PAGE, PAGE_INK, ROLLOUT, TARGET, BinShares, blank, ramp, span, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARGIN = 0.3  # of a map's side: how wide a marginal is


@dataclass(frozen=True)
class CellShares:
    """A two-dimensional histogram: edges ``(n + 1,)`` and ``(m + 1,)``, and the share of every cell ``(n, m)``."""

    x_edges: ArrayLike
    y_edges: ArrayLike
    shares: NDArray[np.float64]

    @property
    def marginals(self) -> tuple[BinShares, BinShares]:
        """Along either dimension."""
        return BinShares(self.x_edges, self.shares.sum(axis=1)), BinShares(self.y_edges, self.shares.sum(axis=0))


@dataclass(frozen=True)
class MapRow:
    """A target, and for every method its rollouts, where there are any, with a remark in the corner.

    ``levels`` of a method are none, or one number for either dimension: dashed lines.
    """

    name: str
    target: CellShares
    rollouts: Sequence[CellShares | None]
    remarks: Sequence[str]
    levels: Sequence[Sequence[float]]


def heat_map_grid(rows: Sequence[MapRow], methods: Sequence[str], names: tuple[str, str]) -> Figure:
    """Targets as rows; the target itself and every method as columns; ``names`` of both dimensions."""
    columns = 1 + len(methods)
    with style(PAGE):
        figure = blank(1.75 * columns + 0.6, 1.75 * len(rows) + 0.6)
        axes = figure.subplots(
            2 * len(rows),
            2 * columns,
            squeeze=False,
            width_ratios=[1, MARGIN] * columns,
            height_ratios=[MARGIN, 1] * len(rows),
            gridspec_kw={"wspace": 0.02, "hspace": 0.02},
        )
        for i, row in enumerate(rows):
            _draw_row([list(line) for line in axes[2 * i : 2 * i + 2]], row)
        for axis, title in zip(axes[0][::2], ("target", *methods), strict=True):
            axis.set_title(title)
        figure.supxlabel(names[0], fontsize=8)
        figure.supylabel(names[1], fontsize=8)
    return figure


def _draw_row(axes: Sequence[Sequence[Axes]], row: MapRow) -> None:
    """A map for the target and for every method: above it the marginal of x, beside it that of y."""
    maps = [row.target, *(rolled for rolled in row.rollouts if rolled is not None)]
    top = max(float(drawn.shares.max()) for drawn in maps)
    x_span, y_span = (span(drawn.marginals[i] for drawn in maps) for i in (0, 1))
    shown = [row.target, *row.rollouts]
    for i, (drawn, remark, levels) in enumerate(zip(shown, ("", *row.remarks), ((), *row.levels), strict=True)):
        above, corner = axes[0][2 * i], axes[0][2 * i + 1]
        axis, beside = axes[1][2 * i], axes[1][2 * i + 1]
        corner.set_axis_off()
        if drawn is not None:
            _draw(axis, drawn, ROLLOUT if i else AXIS, top)
        along = (None, None) if drawn is None or not i else drawn.marginals
        _marginal(above, row.target.marginals[0], along[0], "vertical")
        _marginal(beside, row.target.marginals[1], along[1], "horizontal")
        axis.text(0.98, 0.97, remark, transform=axis.transAxes, ha="right", va="top", fontsize=7)
        if levels:
            for each in (above, axis):
                each.axvline(levels[0], color=PAGE_INK, lw=0.8, ls=DASHES)
            for each in (beside, axis):
                each.axhline(levels[1], color=PAGE_INK, lw=0.8, ls=DASHES)
        for each in (above, axis):
            each.set_xlim(*x_span)
        for each in (beside, axis):
            each.set_ylim(*y_span)
        if i:
            axis.tick_params(labelleft=False)
    axes[1][0].set_ylabel(row.name)


def _marginal(
    axis: Axes, target: BinShares, rolled: BinShares | None, orientation: Literal["vertical", "horizontal"]
) -> None:
    axis.stairs(target.density, target.edges, fill=True, color=TARGET, alpha=0.55, lw=0, orientation=orientation)
    if rolled is not None:
        axis.stairs(rolled.density, rolled.edges, color=ROLLOUT, lw=1.0, orientation=orientation)
    axis.set_axis_off()


def _draw(axis: Axes, drawn: CellShares, color: str, top: float) -> None:
    from matplotlib.colors import PowerNorm

    x, y = np.asarray(drawn.x_edges), np.asarray(drawn.y_edges)
    axis.imshow(
        drawn.shares.T,
        extent=(x[0], x[-1], y[0], y[-1]),
        origin="lower",
        aspect="auto",
        cmap=ramp(color),
        norm=PowerNorm(0.5, 0, top),
        interpolation="nearest",
    )
    axis.locator_params(nbins=4)
