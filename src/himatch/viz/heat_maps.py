"""Two-dimensional targets and rollouts side by side, on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.viz.style import AXIS, PAGE, ROLLOUT, BinShares, blank, ramp, span, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class CellShares:
    """A two-dimensional histogram: edges ``(n + 1,)`` and ``(m + 1,)``, and the share of every cell ``(n, m)``."""

    x_edges: ArrayLike
    y_edges: ArrayLike
    shares: NDArray[np.float64]


@dataclass(frozen=True)
class MapRow:
    """A target, and for every method its rollouts, where there are any, with a remark in the corner."""

    name: str
    target: CellShares
    rollouts: Sequence[CellShares | None]
    remarks: Sequence[str]


def heat_map_grid(rows: Sequence[MapRow], methods: Sequence[str], names: tuple[str, str]) -> Figure:
    """Targets as rows; the target itself and every method as columns; ``names`` of both dimensions."""
    with style(PAGE):
        figure = blank(1.55 * (1 + len(methods)) + 0.6, 1.5 * len(rows) + 0.6)
        axes = figure.subplots(len(rows), 1 + len(methods), squeeze=False, sharex="row", sharey="row")
        for row, line in zip(rows, axes, strict=True):
            maps = [row.target, *(rolled for rolled in row.rollouts if rolled is not None)]
            top = max(float(drawn.shares.max()) for drawn in maps)
            _draw(line[0], row.target, AXIS, top)
            for axis, rolled, remark in zip(line[1:], row.rollouts, row.remarks, strict=True):
                axis.text(0.99, 0.98, remark, transform=axis.transAxes, ha="right", va="top", fontsize=7)
                if rolled is not None:
                    _draw(axis, rolled, ROLLOUT, top)
            line[0].set_ylabel(row.name)
            line[0].set_xlim(*span(BinShares(row.target.x_edges, drawn.shares.sum(axis=1)) for drawn in maps))
            line[0].set_ylim(*span(BinShares(row.target.y_edges, drawn.shares.sum(axis=0)) for drawn in maps))
        for axis, title in zip(axes[0], ("target", *methods), strict=True):
            axis.set_title(title)
        figure.supxlabel(names[0], fontsize=8)
        figure.supylabel(names[1], fontsize=8)
    return figure


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
