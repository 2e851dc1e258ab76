"""What may be said of two numbers, and of two rows target by target."""

from __future__ import annotations

from typing import Literal

from himatch.divergences import Difference, Summary, paired_difference
from himatch.reproduce.report.captions import data_hash
from himatch.reproduce.report.table import ResultRow, ResultTable
from himatch.reproduce.report.tables import group_scores
from himatch.reproduce.results import JobResult
from himatch.reproduce.suite import TableColumn

Verdict = Literal["holds", "holds within noise", "does not hold", "not run", "information"]


def row_difference(
    table: ResultTable, column: TableColumn, ours: ResultRow, other: ResultRow, factor: float = 1.0
) -> Difference | None:
    """Ours less ``factor`` times the other's in a column; nothing where their targets are not the same."""
    pairs = [(ours.jobs[task], other.jobs[task], group) for task, group in column.parts]
    if any(_targets(mine) != _targets(theirs) for mine, theirs, _ in pairs):
        return None
    scores = [group_scores(mine, group, table.layout) for mine, _, group in pairs]
    others = [group_scores(theirs, group, table.layout) for _, theirs, group in pairs]
    scaled = [[[factor * score for score in seeds] for seeds in group] for group in others]
    return paired_difference(scores, scaled, [task for task, _ in column.parts])


def _targets(job: JobResult) -> tuple[str, list[tuple[str, float | None, str | None]]]:
    return data_hash(job), [(target.name, target.shift, target.ordering) for target in job.targets]


def decide(difference: Difference, *, at_most: bool = False) -> tuple[Verdict, str]:
    """Whether what should lie below does (or is level, with ``at_most``), by more than noise; and a remark."""
    below = difference.mean <= 0 if at_most else difference.mean < 0
    if difference.low is None or difference.high is None:
        return ("holds within noise" if below else "does not hold"), "one seed: noise unknown"
    if below:
        return ("holds" if difference.high < 0 else "holds within noise"), ""
    return "does not hold", "" if difference.low > 0 else "within noise"


def compare(ours: Summary, other: Summary, factor: float = 1.0, *, at_most: bool = False) -> tuple[Verdict, str]:
    """As :func:`decide`, of numbers that share no targets: noise is where their intervals overlap."""
    mean = ours.mean - factor * other.mean
    if ours.is_one_seed or other.is_one_seed:
        return decide(Difference(mean), at_most=at_most)
    (low, high), (other_low, other_high) = ours.interval, other.interval
    return decide(Difference(mean, low - factor * other_high, high - factor * other_low), at_most=at_most)
