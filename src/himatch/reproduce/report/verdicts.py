"""How a claim is put to the results: which two numbers it compares, and what may be said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from himatch.divergences import Difference, Summary
from himatch.reproduce.report import text as wording
from himatch.reproduce.report.captions import data_used
from himatch.reproduce.report.differences import Verdict, compare, decide, row_difference
from himatch.reproduce.report.rows import RowKey, main_budget
from himatch.reproduce.report.table import MIXTURE, Cell, ResultRow, ResultTable
from himatch.reproduce.results import JobResult
from himatch.reproduce.specification import Specification, display_name, qualified
from himatch.reproduce.suite import AVERAGE
from himatch.reproduce.suites import TABLES


class Side(NamedTuple):
    """One of the numbers compared: whose it is, and the number with its interval."""

    name: str
    figure: str


@dataclass(frozen=True)
class Finding:
    """A claim, the numbers that decide it, and the verdict; ``remark`` qualifies it or says what is missing."""

    claim: str
    verdict: Verdict
    ours: Side | None = None
    other: Side | None = None
    remark: str = ""
    difference: str = ""
    """Ours less the other's, target by target; only rows that were run have it."""

    def __str__(self) -> str:
        return f"{self.verdict} ({self.remark})" if self.remark else self.verdict


@dataclass(frozen=True)
class ClaimedRow:
    """A row that a claim is about; without a budget, that of the whole report."""

    method: Specification
    conditioning: str = "nominal"
    budget: str | None = None
    steps: int | None = None
    policy: str = "paper"

    def key(self, budget: str) -> RowKey:
        """Where the row is found in a report about this budget."""
        return RowKey(self.method, self.conditioning, self.budget or budget, self.steps, self.policy)

    @property
    def missing_name(self) -> str:
        """How it is called where it was not run."""
        policy = None if self.policy == "paper" else self.policy
        return qualified(display_name(self.method), policy, self.conditioning, self.budget, self.steps)


class Found(NamedTuple):
    """A claimed row that was run, with the cell and the score that the claim is about."""

    row: ResultRow
    cell: Cell
    score: Summary


class Gap(NamedTuple):
    """A claimed row that was not run, or not on some tasks."""

    name: str
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """That a row's W1 lies below those of others, or is at most ``factor`` times the paper's or the reference's."""

    text: str
    table: str
    ours: ClaimedRow
    others: tuple[ClaimedRow, ...] = ()
    against: Literal["methods", "paper", "mixture"] = "methods"
    factor: float = 1.0
    column: str = AVERAGE
    informs: bool = False
    """Whether the numbers are shown without a verdict."""

    def judge(self, tables: Mapping[str, ResultTable], budget: str) -> Finding:
        """The verdict on some tables."""
        table = tables.get(self.table)
        if table is None:
            return Finding(self.text, "not run", remark=f"suite {TABLES[self.table][0].name} missing")
        found = [_find(table, claimed, budget, self.column) for claimed in (self.ours, *self.others)]
        gaps = [gap for gap in found if isinstance(gap, Gap)]
        if gaps:
            return Finding(self.text, "not run", remark=_missing(gaps))
        (row, cell, score), *rivals = [cells for cells in found if isinstance(cells, Found)]
        apart = ""
        if self.against == "methods":
            column = next(column for column in table.columns if column.key == self.column)
            differences = [row_difference(table, column, row, rival.row, self.factor) for rival in rivals]
            pairs = [(rival, less) for rival, less in zip(rivals, differences, strict=True) if less is not None]
            if len(pairs) < len(rivals):
                return Finding(self.text, "not run", remark="not on the same targets")
            rival, less = _deciding(pairs)
            name, other, lasted = rival.row.name, rival.score, _played(rival.cell)
            verdict, remark = decide(less, at_most=self.factor != 1)
            apart = wording.difference(less)
        else:
            lasted = ""
            name, given = _given(table, cell, self.against)
            if given is None:
                return Finding(self.text, "not run", remark=f"{name} has no figure for these tasks")
            other = given
            verdict, remark = compare(score, other, self.factor, at_most=True)
        scaled = "" if self.factor == 1 else f"; {wording.TIMES}{self.factor:g} is {self.factor * other.mean:.3f}"
        sides = (
            Side(row.name, wording.with_interval(score, table) + _played(cell)),
            Side(name + scaled, wording.with_interval(other, table) + lasted),
        )
        if self.informs:
            return Finding(self.text, "information", *sides, f"{wording.TIMES}{score.mean / other.mean:.2f}", apart)
        remarks = (remark, _middle(score, other, table) if self.factor == 1 else "")
        return Finding(self.text, verdict, *sides, "; ".join(filter(None, remarks)), apart)


@dataclass(frozen=True)
class TimeClaim:
    """That training took at most so many seconds for each model of a stack; the slowest task counts."""

    text: str
    table: str
    ours: ClaimedRow
    seconds: float

    def judge(self, tables: Mapping[str, ResultTable], budget: str) -> Finding:
        """The verdict on some tables."""
        row = tables[self.table].row(self.ours.key(budget)) if self.table in tables else None
        timed = [] if row is None else [(_seconds(job), job) for job in row.jobs.values() if _seconds(job)]
        if row is None or not timed:
            return Finding(self.text, "not run", remark=f"{self.ours.missing_name} missing")
        seconds, slowest = max(timed, key=lambda pair: pair[0])
        seeds = len(slowest.seeds)
        stack = "trained alone" if seeds == 1 else f"a stack of {seeds} seeds in {seconds:.0f} s"
        ours = Side(f"{row.name} on {slowest.task}, {stack}", f"{seconds / seeds:.0f} s a model")
        device = str(slowest.provenance.get("device") or "machine not named")
        verdict: Verdict = "holds" if seconds / seeds <= self.seconds else "does not hold"
        return Finding(self.text, verdict, ours, Side(f"limit; on {device}", f"{self.seconds:.0f} s a model"))


def counted(findings: Iterable[Finding]) -> str:
    """``5 hold, 2 hold within noise, 3 do not hold, 4 not run``."""
    counts = Counter(finding.verdict for finding in findings)
    words: Mapping[Verdict, str] = {"holds": "hold", "holds within noise": "hold within noise"}
    words = {**words, "does not hold": "do not hold", "not run": "not run"}
    return ", ".join(f"{counts[verdict]} {word}" for verdict, word in words.items() if counts[verdict])


def budget_of(tables: Sequence[ResultTable]) -> str:
    """The budget that claims are about where they name none."""
    return main_budget(row.key.budget for table in tables for row in table.rows if row.key is not None)


def _middle(ours: Summary, other: Summary, table: ResultTable) -> str:
    """Said where interquartile means are apart the other way round: a few targets then decide the mean.

    Apart are intervals: without one, of one seed or of a figure that nobody ran, nothing is said.
    """
    if ours.low is None or ours.high is None or other.low is None or other.high is None:
        return ""
    apart = other.high < ours.low if ours.mean < other.mean else ours.high < other.low
    figures = f"{wording.middle(Cell(ours), table)} and {wording.middle(Cell(other), table)}"
    return f"interquartile means the other way round: {figures}" if apart else ""


def _played(cell: Cell) -> str:
    """How much of the time was played, behind a distance; nothing where that was not measured."""
    return "" if cell.played is None else f", {cell.played:.0%} played"


def _seconds(job: JobResult) -> float:
    return float((job.provenance.get("training") or {}).get("seconds") or 0.0)


def _find(table: ResultTable, claimed: ClaimedRow, budget: str, column: str) -> Found | Gap:
    row, keys = table.row(claimed.key(budget)), [c.key for c in table.columns]
    if row is None:
        return Gap(claimed.missing_name, ())
    needed = table.layout.tasks if column == AVERAGE else (column.split("/")[0],)
    missing = tuple(task for task in needed if task not in row.jobs)
    if missing:
        return Gap(row.name, missing)
    cell = row.cells[keys.index(column)]
    if cell.ours is None or (column == AVERAGE and table.tasks != needed):
        return Gap(row.name, ("an average over the paper's tasks alone",))
    return Found(row, cell, cell.ours)


def _missing(gaps: Sequence[Gap]) -> str:
    """``walker2d missing`` where all lack the same, else who lacks what."""
    if gaps[0].tasks and len({gap.tasks for gap in gaps}) == 1:
        return f"{', '.join(gaps[0].tasks)} missing"
    absent = [gap.name for gap in gaps if not gap.tasks]
    parts = [f"{', '.join(absent)} missing"] if absent else []
    parts += [f"{gap.name} without {', '.join(gap.tasks)}" for gap in gaps if gap.tasks]
    return "; ".join(parts)


def _deciding(pairs: Sequence[tuple[Found, Difference]]) -> tuple[Found, Difference]:
    """The rival that decides: the lowest mean if that is below ours, else the interval that comes nearest to it."""
    lowest = max(pairs, key=lambda pair: pair[1].mean)
    if lowest[1].mean >= 0:
        return lowest
    return max(pairs, key=lambda pair: (pair[1].mean if pair[1].high is None else pair[1].high, pair[1].mean))


def _given(table: ResultTable, cell: Cell, against: str) -> tuple[str, Summary | None]:
    """A figure that nobody ran: the paper's for the same cell, or the reference's for the same targets and data."""
    if against == "paper":
        same = table.layout.published and all(data.is_papers for data in data_used(table.results))
        name = "the paper" if same else "the paper, on other data"
        return name, None if cell.paper is None else Summary(cell.paper.mean)
    return MIXTURE, cell.reference
