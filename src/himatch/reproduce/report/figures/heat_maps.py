"""Two-dimensional targets and rollouts side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, PowerNorm, to_rgb
from numpy.typing import NDArray

from himatch.reproduce.report.figures.histograms import pretty
from himatch.reproduce.report.figures.pictures import AXIS, Picture, blank, picture
from himatch.reproduce.report.figures.selection import edges, first_targets, found, shown_methods, span
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.results import TargetScore
from himatch.viz.match_plot import ROLLOUT

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def heat_maps(table: ResultTable) -> list[Picture]:
    """Targets as rows; the target itself and every method as columns."""
    methods = shown_methods(table)
    rows = [(task, target) for task in table.tasks for target in first_targets(methods, task)]
    if not rows:
        return []
    figure = blank(1.55 * (1 + len(methods)) + 0.6, 1.5 * len(rows) + 0.6)
    axes = figure.subplots(len(rows), 1 + len(methods), squeeze=False, sharex="row", sharey="row")
    for (task, target), line in zip(rows, axes, strict=True):
        rolled = [found(method, task, target) for method in methods]
        maps = [np.array(target.histograms["target"])]
        maps += [np.array(other.histograms["rollouts"]) for other in rolled if other is not None]
        top = max(float(shares.max()) for shares in maps)
        _map(line[0], target, maps[0], AXIS, top)
        for axis, other in zip(line[1:], rolled, strict=True):
            text = "missing" if other is None else f"{np.mean(other.w1):.2f}"
            axis.text(0.99, 0.98, text, transform=axis.transAxes, ha="right", va="top", fontsize=7)
            if other is not None:
                _map(axis, other, np.array(other.histograms["rollouts"]), ROLLOUT, top)
        line[0].set_ylabel(pretty(target.name))
        line[0].set_xlim(*span((edges(target, 0), shares.sum(axis=1).tolist()) for shares in maps))
        line[0].set_ylim(*span((edges(target, 1), shares.sum(axis=0).tolist()) for shares in maps))
    for axis, title in zip(axes[0], ("target", *(method.name for method in methods)), strict=True):
        axis.set_title(title)
    figure.supxlabel("x-velocity", fontsize=8)
    figure.supylabel("y-velocity", fontsize=8)
    caption = (
        "Joint distribution of targets (grey) and of rollouts, all seeds pooled (blue); shades grow with the square "
        "root of the share. The number is W₁ between the joint histograms, averaged over seeds."
    )
    return [picture(figure, f"{table.label}-maps".replace("_", "-"), caption)]


def _map(axis: Axes, target: TargetScore, shares: NDArray[np.float64], color: str, top: float) -> None:
    x, y = edges(target, 0), edges(target, 1)
    axis.imshow(
        shares.T,
        extent=(x[0], x[-1], y[0], y[-1]),
        origin="lower",
        aspect="auto",
        cmap=_ramp(color),
        norm=PowerNorm(0.5, 0, top),
        interpolation="nearest",
    )
    axis.locator_params(nbins=4)


def _ramp(color: str) -> Colormap:
    """From nothing to the colour: empty cells show the page, white or black."""
    rgb = to_rgb(color)
    return LinearSegmentedColormap.from_list("ramp", [(*rgb, 0.0), (*rgb, 1.0)])
