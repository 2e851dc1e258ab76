"""Two-dimensional targets and rollouts side by side, each with its marginals."""

from __future__ import annotations

import numpy as np

from himatch.reproduce.report.figures.histograms import short_name
from himatch.reproduce.report.figures.selection import edges, found, shown_methods, shown_targets, target_levels
from himatch.reproduce.report.table import ResultRow, ResultTable
from himatch.reproduce.results import TargetScore
from himatch.viz.heat_maps import CellShares, MapRow, heat_map_grid
from himatch.viz.picture import Picture, picture

CAPTION = (
    "Joint distribution of targets (grey; the first and the last of each group) and of rollouts, all seeds pooled "
    "(blue); shades grow with the square root of the share. Above and beside each map its marginals, those of the "
    "target in grey. The number is W₁ between the joint histograms, averaged over seeds. Dashed lines are the target's "
    "means, all that the two sums tell which DT is conditioned on."
)


def heat_maps(table: ResultTable) -> list[Picture]:
    """Targets as rows; the target itself and every method as columns."""
    methods = shown_methods(table)
    rows = [_row(methods, task, target) for task in table.tasks for target in shown_targets(methods, task)]
    if not rows:
        return []
    figure = heat_map_grid(rows, [method.name for method in methods], ("x-velocity", "y-velocity"))
    return [picture(figure, f"{table.label}-maps".replace("_", "-"), CAPTION)]


def _row(methods: list[ResultRow], task: str, target: TargetScore) -> MapRow:
    rolled = [found(method, task, target) for method in methods]
    return MapRow(
        short_name(target.name),
        _cells(target, "target"),
        [None if score is None else _cells(score, "rollouts") for score in rolled],
        ["missing" if score is None else f"{np.mean(score.w1):.2f}" for score in rolled],
        [target_levels(method, target) for method in methods],
    )


def _cells(target: TargetScore, which: str) -> CellShares:
    return CellShares(edges(target, 0), edges(target, 1), np.array(target.histograms[which], dtype=np.float64))
