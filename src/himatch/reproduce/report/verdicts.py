"""How a claim is put to the results: which two numbers it compares, and what may be said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from himatch.divergences import Difference, Summary
from himatch.reproduce.report import text as wording
from himatch.reproduce.report.captions import data_used
from himatch.reproduce.report.claimed import ClaimedRow, Found, Gap, among, find_row, missing, played, unlike
from himatch.reproduce.report.differences import Paired, Verdict, compare, decide, decide_level, pair, pair_with
from himatch.reproduce.report.findings import Finding, Side, Source
from himatch.reproduce.report.robustness import robustness, steady_averages
from himatch.reproduce.report.table import MIXTURE, Cell, ResultTable
from himatch.reproduce.results import JobResult
from himatch.reproduce.suite import AVERAGE, TableColumn
from himatch.reproduce.suites import TABLES

OF_THOSE_RUN = "of those run"  # what a remark says where rivals are missing


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
    source: Source = "himatch"
    level: float | None = None
    """That the two are level instead: apart by at most this part of the other's."""
    informs: bool = False
    """Whether the numbers are shown without a verdict."""
    among: str = ""
    """Of targets that have this in their names alone."""

    def judge(self, tables: Mapping[str, ResultTable], budget: str) -> Finding:
        """The verdict on some tables."""
        finding = self._judged(tables, budget)
        return replace(finding, source=self.source)

    def _judged(self, tables: Mapping[str, ResultTable], budget: str) -> Finding:
        absent = [label for label in dict.fromkeys(map(self._label, (self.ours, *self.others))) if label not in tables]
        if absent:
            suites = " and ".join(dict.fromkeys(TABLES[label][0].name for label in absent))
            return Finding(self.text, "not run", remark=f"suite {suites} missing")
        found = [find_row(tables[self._label(c)], c, budget, self.column) for c in (self.ours, *self.others)]
        gaps = [gap for gap in found if isinstance(gap, Gap)]
        table, ours = tables[self.table], found[0]
        if isinstance(ours, Gap):
            return Finding(self.text, "not run", remark=missing(gaps))
        column = next(column for column in table.columns if column.key == self.column)
        if self.against == "methods":
            rows = [cells for cells in found if isinstance(cells, Found)]
            mine, *rivals = [among(row, column.parts, self.among) for row in rows] if self.among else rows
            return self._against_rows(table, column, mine, rivals, missing(gaps) if gaps else "")
        return self._against_given(table, column, ours)

    def _label(self, claimed: ClaimedRow) -> str:
        return claimed.table or self.table

    def _against_rows(
        self, table: ResultTable, column: TableColumn, ours: Found, rivals: list[Found], lacking: str
    ) -> Finding:
        """Where rivals are ``lacking``, one that is complete and not above ours decides all the same."""
        paired = [pair(column.parts, ours.row.jobs, rival.row.jobs, self.factor) for rival in rivals]
        pairs = [(rival, both) for rival, both in zip(rivals, paired, strict=True) if both is not None]
        plain = self.factor == 1 and self.level is None and not self.informs
        if len(pairs) < len(rivals):
            lacking = "; ".join(filter(None, (lacking, "not on the same targets")))
        if lacking and not (plain and any(both.difference.mean >= 0 for _, both in pairs)):
            return Finding(self.text, "not run", remark=lacking)
        rival, both = _deciding(pairs)
        less, margin = both.difference, None if self.level is None else self.level * rival.score.mean
        verdict, remark = decide(less, at_most=self.factor != 1) if margin is None else decide_level(less, margin)
        if margin is not None and verdict == "does not hold":
            remark = "ours is lower" if less.mean < 0 else "ours is higher"
        steadily = steady_averages(column.parts, ours.row.jobs, rival.row.jobs)
        robust = robustness(both, lambda mean: self._is_right(mean, margin), steadily, [each for _, each in pairs])
        sides = self._sides(table, ours, rival.row.name, rival.score, played(rival.cell))
        apart = wording.difference(less)
        if self.informs:
            ratio = f"{wording.TIMES}{ours.score.mean / rival.score.mean:.2f}"
            return Finding(self.text, "information", *sides, ratio, apart, robustness=robust)
        middle = _middle(ours.score, rival.score, table) if plain else ""
        partly = f"{OF_THOSE_RUN}; {lacking}" if lacking else ""
        remarks = (partly, remark, middle, _slopes(table, column, ours, rival), unlike(ours, rival))
        return Finding(self.text, verdict, *sides, "; ".join(filter(None, remarks)), apart, robustness=robust)

    def _against_given(self, table: ResultTable, column: TableColumn, ours: Found) -> Finding:
        name, other = _given(table, ours.cell, self.against)
        if other is None:
            return Finding(self.text, "not run", remark=f"{name} has no figure for these tasks")
        verdict, remark = compare(ours.score, other, self.factor, at_most=True)
        fixed, factor = other.mean, self.factor  # a figure that was printed stays, whatever target of ours is left out
        both = pair_with(
            column.parts,
            ours.row.jobs,
            (lambda _: factor * fixed) if self.against == "paper" else (lambda t: factor * (t.reference or 0.0)),
        )
        robust = robustness(both, lambda mean: mean <= 0)
        if self.informs:
            verdict, remark = "information", f"{wording.TIMES}{ours.score.mean / other.mean:.2f}"
        return Finding(self.text, verdict, *self._sides(table, ours, name, other), remark, robustness=robust)

    def _is_right(self, mean: float, margin: float | None) -> bool:
        return abs(mean) <= margin if margin is not None else mean <= 0 if self.factor != 1 else mean < 0

    def _sides(self, table: ResultTable, ours: Found, name: str, other: Summary, lasted: str = "") -> tuple[Side, Side]:
        scaled = "" if self.factor == 1 else f"; {wording.TIMES}{self.factor:g} is {self.factor * other.mean:.3f}"
        return (
            Side(ours.row.name, wording.with_interval(ours.score, table) + played(ours.cell)),
            Side(name + scaled, wording.with_interval(other, table) + lasted),
        )


@dataclass(frozen=True)
class TimeClaim:
    """That training took at most so many seconds for each model of a stack; the slowest task counts."""

    text: str
    table: str
    ours: ClaimedRow
    seconds: float
    source: Source = "himatch"

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


def _slopes(table: ResultTable, column: TableColumn, *rows: Found) -> str:
    """Of targets that are moved, how far the rollouts of each row follow."""
    if table.slopes is None:
        return ""
    i, found = table.columns.index(column), [table.slopes.row(of.row.key) for of in rows if of.row.key is not None]
    known = [row.cells[i].ours for row in found if row is not None]
    return "slopes " + " and ".join("unknown" if one is None else f"{one.mean:.2f}" for one in known) if known else ""


def _middle(ours: Summary, other: Summary, table: ResultTable) -> str:
    """Said where interquartile means are apart the other way round: a few targets then decide the mean.

    Apart are intervals: without one, of one seed or of a figure that nobody ran, nothing is said.
    """
    if ours.low is None or ours.high is None or other.low is None or other.high is None:
        return ""
    apart = other.high < ours.low if ours.mean < other.mean else ours.high < other.low
    figures = f"{wording.middle(Cell(ours), table)} and {wording.middle(Cell(other), table)}"
    return f"interquartile means the other way round: {figures}" if apart else ""


def _seconds(job: JobResult) -> float:
    return float((job.provenance.get("training") or {}).get("seconds") or 0.0)


def _deciding(pairs: Sequence[tuple[Found, Paired]]) -> tuple[Found, Paired]:
    """The rival that decides: the lowest mean if that is below ours, else the interval that comes nearest to it."""
    known = [(both.difference, rival, both) for rival, both in pairs]
    less, rival, both = max(known, key=lambda entry: entry[0].mean)
    if less.mean < 0:
        _, rival, both = max(known, key=lambda entry: _reach(entry[0]))
    return rival, both


def _reach(less: Difference) -> tuple[float, float]:
    return less.mean if less.high is None else less.high, less.mean


def _given(table: ResultTable, cell: Cell, against: str) -> tuple[str, Summary | None]:
    """A figure that nobody ran: the paper's for the same cell, or the reference's for the same targets and data."""
    if against == "paper" and not cell.comparable:
        return "the paper, of another feature,", None
    if against == "paper":
        same = not table.layout.papers_data and all(data.is_papers for data in data_used(table.results))
        name = "the paper" if same else "the paper, on other data"
        return name, None if cell.paper is None else Summary(cell.paper.mean)
    return MIXTURE, cell.reference
