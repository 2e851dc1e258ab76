"""Which of the paper's orderings hold here: the method it proposes against every other of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from himatch.divergences import Summary
from himatch.reproduce.report.claimed import budget_of
from himatch.reproduce.report.differences import Verdict, compare, decide, pair
from himatch.reproduce.report.rows import RowKey
from himatch.reproduce.report.table import Cell, ResultTable
from himatch.reproduce.specification import Specification
from himatch.reproduce.suite import AVERAGE, TableColumn

MOST_NAMES = 6
READING = (
    "For each table, whether the difference between the method that the paper proposes and every other has the paper's "
    "sign, on the average over the tasks run, target by target as with claims (returns: in each column, by distance to "
    "the held-out episodes' own)."
)


@dataclass(frozen=True)
class Ordering:
    """One pair: whether the difference has the paper's sign."""

    name: str
    """The other method, with the column where the table has no average."""
    verdict: Verdict
    remark: str = ""


@dataclass(frozen=True)
class Orderings:
    """Those of a table."""

    table: ResultTable
    pairs: tuple[Ordering, ...]

    def named(self, *verdicts: Verdict) -> list[str]:
        """The pairs with one of these verdicts."""
        return [pair.name for pair in self.pairs if pair.verdict in verdicts]

    @property
    def score(self) -> str:
        """``3 of 4``: how many of those that were run hold."""
        held, ran = len(self.named("holds")), len(self.pairs) - len(self.named("not run"))
        return f"{held} of {ran}" if ran else "not run"

    @property
    def absent(self) -> str:
        """Those that were not run; of many, how many."""
        names = self.named("not run")
        return ", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} methods"

    @property
    def only(self) -> str:
        """Which tasks were averaged, where not all of the paper's."""
        complete = set(self.table.layout.tasks) <= set(self.table.tasks)
        return "" if complete else f" ({' and '.join(self.table.tasks)} only)"

    def __str__(self) -> str:
        close = ", ".join(self.named("too close to call"))
        wrong = ", ".join(self.named("does not hold"))
        absent = self.absent if self.score != "not run" else ""
        named = (("too close to call", close), ("not", wrong), ("not run", absent))
        return "; ".join((self.score, *(f"{words}: {names}" for words, names in named if names)))


def judge_orderings(tables: Sequence[ResultTable]) -> list[Orderings]:
    """Each table's of the paper, with the budget that claims are about."""
    budget = budget_of(tables)
    return [
        Orderings(table, tuple(_pairs(table, budget_of([table]) if table.layout.data else budget)))
        for table in tables
        if table.layout.is_papers
    ]


def _pairs(table: ResultTable, budget: str) -> list[Ordering]:
    proposed, columns, pairs = table.layout.proposed, _columns(table), []
    for rival in table.layout.paper.rows:
        if rival == proposed:
            continue
        written = table.layout.row_name(rival)
        for column in columns:
            name = written if len(columns) == 1 else f"{written} on {column.head} {column.title.lower()}"
            judged = _judged(table, column, proposed, rival, budget)
            pairs += [Ordering(name, *judged)] if judged is not None else []
    return pairs


def _columns(table: ResultTable) -> list[TableColumn]:
    """The average; in a table of one task what would be averaged; of returns, which have none, all."""
    averages = [column for column in table.columns if column.key == AVERAGE]
    groups = table.layout.averaged[:1] or table.layout.groups
    return averages or [column for column in table.columns if column.parts[0][1] in groups]


def _judged(
    table: ResultTable, column: TableColumn, first: Specification, second: Specification, budget: str
) -> tuple[Verdict, str] | None:
    """Nothing where the paper does not order the two."""
    i = table.columns.index(column)
    papers, other_papers = (_papers(table, i, method) for method in (first, second))
    if papers is None or other_papers is None or papers == other_papers:
        return None
    lower, higher = (first, second) if papers < other_papers else (second, first)
    below, above = (table.row(RowKey(method, "nominal", budget)) for method in (lower, higher))
    if below is None or above is None or below.cells[i].ours is None or above.cells[i].ours is None:
        return "not run", ""
    if table.layout.measure == "return":
        near, far = _to_goal(below.cells[i]), _to_goal(above.cells[i])
        return ("not run", "") if near is None or far is None else compare(near, far)
    both = pair(column.parts, below.jobs, above.jobs)
    return ("not run", "") if both is None else decide(both.difference)


def _papers(table: ResultTable, i: int, method: Specification) -> float | None:
    """The paper's figure, of returns the distance to the held-out episodes'; every row of a method has the same."""
    figure = next((row.cells[i].paper for row in table.methods if row.method == method), None)
    if table.layout.measure == "w1" or figure is None:
        return None if figure is None else figure.mean
    goal = None if table.reference is None else table.reference.cells[i].paper
    return None if goal is None else abs(figure.mean - goal.mean)


def _to_goal(cell: Cell) -> Summary | None:
    """How far a return lies from the held-out episodes'."""
    return None if cell.ours is None or cell.reference is None else _distance(cell.ours, cell.reference.mean)


def _distance(score: Summary, goal: float) -> Summary:
    """How far a score lies from a goal, its interval with it; an interval around the goal reaches zero."""
    ends = [abs(bound - goal) for bound in score.interval]
    around = score.interval[0] <= goal <= score.interval[1]
    known = score.mean_low is not None
    return Summary(
        abs(score.mean - goal),
        iqm=score.iqm,
        mean_low=(0.0 if around else min(ends)) if known else None,
        mean_high=max(ends) if known else None,
    )
