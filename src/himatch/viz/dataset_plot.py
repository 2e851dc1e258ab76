"""The paper's Figure dataset: feature distributions of the best, middle, worst and all episodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from himatch._runtime.files import check_picture, new_file
from himatch.data.inspection.report import GROUP_SIZE, DatasetReport, FeatureReport
from himatch.data.split import ranked_groups
from himatch.errors import HimatchError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe-Ito: told apart by colour-blind readers and in print.
COLORS = {"best": "#009E73", "middle": "#E69F00", "worst": "#D55E00", "all": "#999999"}
MOST_PANELS = 11


def plot_report(report: DatasetReport, path: str | Path) -> Path:
    """Draw returns by rank and one panel per feature into a PNG, PDF or SVG file."""
    path = Path(path)
    check_picture(path)
    from matplotlib.figure import Figure  # slow to import; no pyplot, so no display and no global state

    features = report.features[:MOST_PANELS]
    panels = len(features) + (report.sorted_returns is not None)
    if not panels:
        raise HimatchError("there is nothing to draw: no rewards, and every feature failed")
    columns = min(3, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(4.4 * columns, 3.1 * rows + 0.9), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    remaining = iter(axes)
    if report.sorted_returns is not None:
        _returns(next(remaining), report)
    for feature in features:
        _distribution(next(remaining), feature)
    for unused in remaining:
        unused.set_visible(False)
    name = report.source if len(report.source) < 70 else "..." + report.source[-67:]
    figure.suptitle(f"{Path(name).name}: task {report.task}, {report.episodes:,} episodes, {report.steps:,} steps")
    handles, labels = axes[-1 if panels == len(axes) else panels - 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    with new_file(path) as partial:
        figure.savefig(partial, dpi=130)
    return path


def _returns(axis: Axes, report: DatasetReport) -> None:
    returns = np.array(report.sorted_returns)
    axis.plot(np.arange(len(returns)), returns, color="#444444", linewidth=1.2)
    if report.groups:
        for group, ranks in ranked_groups(returns, GROUP_SIZE).items():
            axis.plot(ranks, returns[ranks], "o", color=COLORS[group], markersize=5)
    axis.set(title="returns", xlabel="episodes by rank", ylabel="return")
    _tidy(axis)


def _distribution(axis: Axes, feature: FeatureReport) -> None:
    edges = np.array(feature.edges)
    # Densities rather than bin masses, so that panels of different bin widths compare.
    density = {group: np.array(weights) / np.diff(edges) for group, weights in feature.distributions.items()}
    axis.stairs(density["all"], edges, fill=True, color=COLORS["all"], alpha=0.45, label="all episodes")
    for group in ("worst", "middle", "best"):
        if group in density:
            axis.stairs(density[group], edges, color=COLORS[group], linewidth=1.6, label=f"{group} {GROUP_SIZE}")
    axis.set(title=feature.name, ylabel="density")
    axis.set_ylim(bottom=0)
    _tidy(axis)


def _tidy(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.25)
    axis.set_axisbelow(True)
