"""How far rollouts follow a target that is moved: the slope of their mean on the shift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from himatch.divergences import Summary, summarize
from himatch.reproduce.report.differences import episodes
from himatch.reproduce.report.stumbles import steady, steady_columns
from himatch.reproduce.report.table import Cell, ResultTable
from himatch.reproduce.results import JobResult
from himatch.reproduce.suite import TableColumn

CAPTION = (
    "How far rollouts follow: the slope of their mean on the shift of the target, both in the feature's units, of each "
    "episode over its shifts, averaged over episodes, with a 95 % bootstrap interval over episodes. At 1 rollouts move "
    "with their target, at 0 they stay where they are. Means are those of the histograms, all seeds pooled: what lies "
    "beyond the training range counts as its end."
)


def slopes_of(table: ResultTable) -> ResultTable | None:
    """The table of slopes that goes with a table of shifted targets; nothing where no target was moved."""
    rows, steadily = [], steady_columns(table.columns, table.results)
    for row in table.methods:
        cells = [Cell(slope_of(row.jobs, column)) for column in table.columns]
        if steadily:
            without = {task: steady(job) for task, job in row.jobs.items()}
            cells += [Cell(slope_of(without, column)) for column in steadily.values()]
        if any(cell.ours is not None for cell in cells):
            rows.append(replace(row, cells=tuple(cells)))
    if not rows:
        return None
    layout = replace(table.layout, measure="slope")
    return ResultTable(table.suite, layout, (*table.columns, *steadily.values()), tuple(rows), CAPTION)


def slope_of(jobs: Mapping[str, JobResult], column: TableColumn, outside: float = 1.0) -> Summary | None:
    """The slope of a row in a column, of targets of which at most this share lies outside the training range."""
    parts = slopes_by_episode(jobs, column, outside)
    if not parts:
        return None
    # Episodes are drawn, those of each part apart.
    found = summarize([[list(slopes.values())] for slopes in parts], range(len(parts)))
    return Summary(found.mean, count=found.count, mean_low=found.mean_low, mean_high=found.mean_high)


def slopes_by_episode(jobs: Mapping[str, JobResult], column: TableColumn, outside: float) -> list[dict[str, float]]:
    """The slope of every episode by task and name, for each part of a column; nothing where a part has none."""
    parts = [_each(jobs[task], group, outside) for task, group in column.parts if task in jobs]
    return parts if len(parts) == len(column.parts) and all(parts) else []


def _each(job: JobResult, group: str, outside: float) -> dict[str, float]:
    """The slope of every episode that was moved."""
    points: dict[str, list[tuple[float, float]]] = {}
    for target, episode in zip(job.targets, episodes(job.targets), strict=True):
        counts = target.shift is not None and target.belongs_to(group) and target.outside <= outside
        if target.shift is not None and counts and "rollouts" in target.histograms:
            edges, shares = (np.ravel(target.histograms[key]) for key in ("edges", "rollouts"))
            reached = float(shares @ (edges[1:] + edges[:-1]) / 2 / shares.sum())
            moved = target.shift * float(edges[1] - edges[0])
            points.setdefault(f"{job.task} {episode.name}", []).append((moved, reached))
    known = {name: np.array(pairs).T for name, pairs in points.items()}
    moves = {name: (shift, mean) for name, (shift, mean) in known.items() if np.ptp(shift) > 0}
    return {name: float(np.polyfit(shift, mean, 1)[0]) for name, (shift, mean) in moves.items()}
