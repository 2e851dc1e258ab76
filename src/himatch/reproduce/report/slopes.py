"""How far rollouts follow a target that is moved: the slope of their mean on the shift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from himatch.divergences import Summary, summarize
from himatch.reproduce.report.differences import episodes
from himatch.reproduce.report.table import Cell, ResultTable
from himatch.reproduce.results import JobResult, TargetScore
from himatch.reproduce.suite import TableColumn

CAPTION = (
    "How far rollouts follow: the slope of their mean on the shift of the target, both in the feature's units, of each "
    "episode over its shifts, averaged over episodes, with a 95 % bootstrap interval over episodes. At 1 rollouts move "
    "with their target, at 0 they stay where they are. Means are those of the histograms, all seeds pooled: what lies "
    "beyond the training range counts as its end."
)


def slopes_of(table: ResultTable) -> ResultTable | None:
    """The table of slopes that goes with a table of shifted targets; nothing where no target was moved."""
    rows = []
    for row in table.methods:
        cells = tuple(Cell(slope_of(row.jobs, column)) for column in table.columns)
        if any(cell.ours is not None for cell in cells):
            rows.append(replace(row, cells=cells))
    if not rows:
        return None
    layout = replace(table.layout, measure="slope")
    return ResultTable(table.suite, layout, table.columns, tuple(rows), CAPTION)


def slope_of(jobs: Mapping[str, JobResult], column: TableColumn, outside: float = 1.0) -> Summary | None:
    """The slope of a row in a column, of targets of which at most this share lies outside the training range."""
    parts = [_each(jobs[task].targets, group, outside) for task, group in column.parts if task in jobs]
    if len(parts) < len(column.parts) or not all(parts):
        return None
    found = summarize([[slopes] for slopes in parts], range(len(parts)))  # episodes are drawn, those of each part apart
    return Summary(found.mean, count=found.count, mean_low=found.mean_low, mean_high=found.mean_high)


def _each(targets: Sequence[TargetScore], group: str, outside: float) -> list[float]:
    """The slope of every episode that was moved."""
    points: dict[int, list[tuple[float, float]]] = {}
    for target, episode in zip(targets, episodes(targets), strict=True):
        counts = target.shift is not None and target.belongs_to(group) and target.outside <= outside
        if target.shift is not None and counts and "rollouts" in target.histograms:
            edges, shares = (np.ravel(target.histograms[key]) for key in ("edges", "rollouts"))
            reached = float(shares @ (edges[1:] + edges[:-1]) / 2 / shares.sum())
            points.setdefault(episode.number, []).append((target.shift * float(edges[1] - edges[0]), reached))
    known = (np.array(pairs).T for pairs in points.values())
    return [float(np.polyfit(shift, mean, 1)[0]) for shift, mean in known if np.ptp(shift) > 0]
