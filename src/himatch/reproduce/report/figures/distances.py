"""W1 by method with intervals, W1 by shift, and returns of targets and of rollouts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from himatch.reproduce.report.table import Cell, ResultRow, ResultTable, scores_of
from himatch.reproduce.results import TargetScore
from himatch.reproduce.suite import TableColumn, TableLayout
from himatch.viz.comparisons import (
    CurvePanel,
    Estimate,
    IntervalPanel,
    agreement_chart,
    curve_chart,
    interval_chart,
)
from himatch.viz.picture import Picture, picture

OTHERS = {
    "share": ("part of the expert's return", "Returns by method, higher is better"),
    "missed": ("distance to the goal in spreads", "Distances to goals by method, lower is better"),
}
"""Axis and caption of tables that measure something else."""
SHIFTS = "Mean W₁ over targets and seeds by shift."
RETURNS = "Returns of the held-out episodes and of the rollouts they were targets for; on the dashed line they agree."


def distance_chart(table: ResultTable) -> list[Picture]:
    """A panel for each task (or group): interquartile mean and interval, the paper's figure, the reference."""
    wanted = table.layout.groups if table.layout.over == "groups" else table.layout.averaged[:1]
    columns = [column for column in table.columns if not column.is_average and column.parts[0][1] in wanted]
    rows = _run(table)
    if not rows or not columns:
        return []
    panels = [_intervals(table, column, rows) for column in columns]
    axis, caption = OTHERS.get(table.layout.measure, ("W₁", "W₁ by method, lower is better"))
    figure = interval_chart(panels, [row.name for row in rows], axis)
    return [picture(figure, _name(table, "distances"), f"{caption}; every tick is a target (mean over seeds).")]


def shift_chart(table: ResultTable) -> list[Picture]:
    """How W1 grows as targets move away."""
    rows = _run(table)
    reference = {} if table.reference is None else table.reference.jobs
    panels = []
    for task in table.tasks:
        curves = {row.name: _mean_w1(row.jobs[task].targets) for row in rows if task in row.jobs}
        panels.append(CurvePanel(task, curves, _mixtures(reference[task].targets if task in reference else [])))
    figure = curve_chart(panels, [row.name for row in rows], "shift in bin widths", "mean W₁")
    return [picture(figure, _name(table, "shifts"), SHIFTS)]


def return_chart(table: ResultTable) -> list[Picture]:
    """Every held-out episode: the return it had, and the mean return of the rollouts it was a target for."""
    rows = _run(table)
    panels = [
        CurvePanel(task, {row.name: _returns(row.jobs[task].targets) for row in rows if task in row.jobs})
        for task in table.tasks
    ]
    names = [row.name for row in rows]
    figure = agreement_chart(panels, names, "return of the target", "mean return of rollouts")
    return [picture(figure, _name(table, "returns"), RETURNS)]


def _run(table: ResultTable) -> list[ResultRow]:
    return [row for row in table.methods if not row.is_missing]


def _name(table: ResultTable, what: str) -> str:
    return f"{table.label}-{what}".replace("_", "-")


def _intervals(table: ResultTable, column: TableColumn, rows: Sequence[ResultRow]) -> IntervalPanel:
    i, (task, group) = table.columns.index(column), column.parts[0]
    reference = None if table.reference is None else table.reference.cells[i].ours
    return IntervalPanel(
        f"{column.head}, {column.title.lower()}" if column.title else column.head,
        [_estimate(row.cells[i], row, task, group, table.layout) for row in rows],
        [None if (paper := row.cells[i].paper) is None or table.suite.other_feature else paper.mean for row in rows],
        None if reference is None else reference.mean,
    )


def _estimate(cell: Cell, row: ResultRow, task: str, group: str, layout: TableLayout) -> Estimate | None:
    score = cell.ours
    if score is None:
        return None
    each = [float(np.mean(scores_of(t, layout))) for t in row.jobs[task].targets if t.belongs_to(group)]
    interval = None if score.low is None or score.high is None else (score.low, score.high)
    return Estimate(each, score.mean if score.iqm is None else score.iqm, score.mean, interval)


def _mean_w1(targets: Sequence[TargetScore]) -> tuple[list[float], list[float]]:
    shifts = sorted({t.shift for t in targets if t.shift is not None})
    return shifts, [float(np.mean([t.w1 for t in targets if t.shift == s])) for s in shifts]


def _mixtures(targets: Sequence[TargetScore]) -> tuple[list[float], list[float]] | None:
    known = [(t.shift, t.reference) for t in targets if t.shift is not None and t.reference is not None]
    shifts = sorted({shift for shift, _ in known})
    return (shifts, [float(np.mean([w1 for shift, w1 in known if shift == s])) for s in shifts]) if known else None


def _returns(targets: Sequence[TargetScore]) -> tuple[list[float], list[float]]:
    known = [(t.target_return, float(np.mean(t.returns))) for t in targets if t.target_return is not None and t.returns]
    return [wanted for wanted, _ in known], [reached for _, reached in known]
