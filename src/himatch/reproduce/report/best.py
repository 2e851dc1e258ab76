"""Which cell of a column is best beyond noise: bold nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from himatch.reproduce.report.differences import Scorer, compare, decide, pair
from himatch.reproduce.report.table import ResultRow, scores_of
from himatch.reproduce.results import TargetScore
from himatch.reproduce.suite import TableColumn, TableLayout

READING = "Bold is the best of a column where its paired difference from every other row leaves out zero."


def mark_best(rows: Sequence[ResultRow], columns: Sequence[TableColumn], layout: TableLayout) -> list[ResultRow]:
    """Mark in each column the row that is before every other, target by target; alone nothing is best."""
    best = {i: _best(rows, i, column, layout) for i, column in enumerate(columns)}
    return [
        replace(row, cells=tuple(replace(cell, best=best[i] == j) for i, cell in enumerate(row.cells)))
        for j, row in enumerate(rows)
    ]


def _best(rows: Sequence[ResultRow], i: int, column: TableColumn, layout: TableLayout) -> int | None:
    """The row's number, or nothing where the difference from another has zero in its interval."""
    known = [(miss, j) for j, row in enumerate(rows) if (miss := _miss(row, i, layout)) is not None]
    if len(known) < 2:
        return None
    (_, first), *others = sorted(known)  # the nearest rival decides as a rule, and the rest is not looked at
    return first if all(_before(rows[first], rows[j], i, column, layout) for _, j in others) else None


def _before(row: ResultRow, other: ResultRow, i: int, column: TableColumn, layout: TableLayout) -> bool:
    if layout.measure == "slope":
        return False
    jobs = {task: row.jobs[task] for task, _ in column.parts}, {task: other.jobs[task] for task, _ in column.parts}
    both = pair(column.parts, *jobs, scorer=_scorer(layout))
    if both is not None and all((*both.ours, *both.theirs)):
        return decide(both.difference)[0] == "holds"
    ours, theirs = row.cells[i].ours, other.cells[i].ours
    paired = layout.is_distance and ours is not None and theirs is not None
    return paired and compare(ours, theirs)[0] == "holds"  # type: ignore[arg-type]


def _miss(row: ResultRow, i: int, layout: TableLayout) -> float | None:
    """How far a cell is from the best there could be."""
    cell = row.cells[i]
    if cell.ours is None or layout.is_distance:
        return None if cell.ours is None else cell.ours.mean
    if layout.most_is_best:
        return -cell.ours.mean
    return None if cell.reference is None else abs(cell.ours.mean - cell.reference.mean)


def _scorer(layout: TableLayout) -> Scorer:
    """Of a target one number for each seed, the lower the better."""

    def returns(_: str, target: TargetScore) -> Sequence[float]:
        wanted = target.target_return
        return [] if wanted is None else [abs(found - wanted) for found in target.returns]

    sign = -1.0 if layout.most_is_best else 1.0
    return returns if layout.measure == "return" else lambda _, t: [sign * score for score in scores_of(t, layout)]
