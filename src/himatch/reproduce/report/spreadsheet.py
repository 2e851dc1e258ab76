"""Everything as CSV, one number a field: the cells of the tables, and the scores of every target and seed.

Claims are there, too, in the words of the report: what documents quote.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, fields
from itertools import islice, zip_longest

from himatch.divergences import Summary
from himatch.reproduce.report import text as wording
from himatch.reproduce.report.costs import RowCost
from himatch.reproduce.report.findings import Finding
from himatch.reproduce.report.rows import policy_of
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.results import JobResult, charged_scores
from himatch.reproduce.specification import display_name

CELLS = (
    *("table", "suite", "feature", "measure", "row", "kind", "task", "group", "mean", "std", "iqm", "low", "high"),
    *("count", "mean_low", "mean_high", "d4rl_score", "best", "paper_mean", "paper_std", "ratio"),
    *("played", "charged", "within_episode"),
)
TARGETS = (
    *("suite", "task", "feature", "method", "policy", "conditioning", "budget"),
    *("target", "group", "shift", "ordering", "seed"),
    *("w1", "energy", "return", "length", "w1_exact", "played", "w1_charged", "within_episode", "w1_in_order"),
    *("missed", "success", "target_return", "reference", "outside", "recorded_at"),
)
CLAIMS = (
    *("source", "claim", "table", "verdict", "ours", "ours_score", "other", "other_score", "difference"),
    *("steady_ours", "steady_other", "steady_difference", "remark"),
)
WITHOUT = ("source", "claim", "without", "difference")
COSTS = ("table", "row", "training_seconds", "rehearsal_seconds", "rollout_seconds", "cpu_seconds", "machine")


def cells_csv(tables: Sequence[ResultTable]) -> str:
    """One line for each cell of each table; missing numbers are empty."""
    return _csv(CELLS, (line for table in tables for line in _cells(table)))


def claims_csv(findings: Sequence[Finding]) -> str:
    """One line for each claim; ``steady`` is without the targets that stumble, empty where none does."""
    return _csv(CLAIMS, map(_claim, findings))


def without_csv(findings: Sequence[Finding]) -> str:
    """One line for each claim and target: the difference without it."""
    known = [(found, found.robustness) for found in findings if found.robustness is not None]
    return _csv(WITHOUT, ((f.source, f.claim, target, left) for f, r in known for target, left in r.each.items()))


def costs_csv(rows: Sequence[RowCost]) -> str:
    """One line for each row of each table: seconds by the clock, and those of all cores where they were counted."""
    seconds = ([None if part is None else round(part, 1) for part in astuple(cost.spent)] for cost in rows)
    return _csv(
        COSTS, ((cost.table, cost.row, *spent, cost.machine) for cost, spent in zip(rows, seconds, strict=True))
    )


def targets_csv(results: Sequence[JobResult]) -> str:
    """One line for each target and seed."""
    return _csv(TARGETS, (line for result in results for line in _targets(result)))


def _claim(found: Finding) -> tuple[str, ...]:
    (ours, score), (other, other_score) = found.ours or ("", ""), found.other or ("", "")
    steady = found.robustness.steady if found.robustness is not None else None
    without = ("", "", "")
    if steady is not None:
        without = f"{steady.ours:.3f}", f"{steady.other:.3f}", wording.difference(steady.less)
    compared = ours, score, other, other_score, found.difference
    return (found.source, found.claim, found.table, found.verdict, *compared, *without, found.remark)


def _cells(table: ResultTable, known: Collection[str] = ()) -> Iterable[tuple[object, ...]]:
    """Of the columns that are not known yet."""
    layout = table.layout
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            if column.key in known:
                continue
            score = cell.ours
            task, group = ("", column.key) if column.is_average else column.key.split("/", 1)
            numbers = astuple(score) if score else (None,) * len(fields(Summary))
            paper = cell.paper or (None, None)
            yield (
                *(table.label, table.suite.name, layout.feature, layout.measure, row.name, row.kind, task, group),
                *(*numbers, cell.normalized, int(cell.best), *paper, cell.ratio),
                *(cell.played, cell.charged, cell.within_episode),
            )
    if table.averages is not None:
        yield from _cells(table.averages, [column.key for column in table.columns])
    if table.slopes is not None:
        yield from _cells(table.slopes)


def _targets(result: JobResult) -> Iterable[tuple[object, ...]]:
    method = display_name(result.method), policy_of(result)
    job = (result.suite, result.task, result.feature, *method, result.conditioning, result.budget)
    for target in result.targets:
        place = (target.name, target.group, target.shift, target.ordering)
        # Results from before p was measured have neither it nor what follows from it.
        lasted = (target.exact, target.played, charged_scores(target), target.within_episode, target.in_order or [])
        rolled = (
            target.w1,
            target.energy,
            target.returns,
            target.lengths,
            *lasted,
            target.missed or [],
            target.success,
        )
        facts = (target.target_return, target.reference, target.outside, result.provenance.get("recorded_at", "t"))
        # A task without rewards has no returns; the suite "data" has no seeds, for nothing is rolled out.
        for seed, *scores in islice(zip_longest(result.seeds, *rolled), len(result.seeds)):
            yield (*job, *place, seed, *scores, *facts)


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
