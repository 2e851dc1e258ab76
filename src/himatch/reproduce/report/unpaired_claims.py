"""Claims about numbers that share no targets: W1 of two columns or tables, and the slope of shifted targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from himatch.divergences import Difference
from himatch.reproduce.report import text as wording
from himatch.reproduce.report.claimed import ClaimedRow, Gap, find_row, missing
from himatch.reproduce.report.differences import compare, decide_level
from himatch.reproduce.report.findings import Finding, Side, Source
from himatch.reproduce.report.slopes import slope_of
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.suite import AVERAGE
from himatch.reproduce.suites import TABLES

WITHIN = 0.01  # the share of a target that may lie outside the training range for it to count as within


@dataclass(frozen=True)
class Place:
    """A row in a column of a table."""

    row: ClaimedRow
    table: str
    column: str = AVERAGE


@dataclass(frozen=True)
class UnpairedClaim:
    """That W1 of one place lies below that of another, whose targets are others: their intervals decide."""

    text: str
    ours: Place
    other: Place
    source: Source = "himatch"

    def judge(self, tables: Mapping[str, ResultTable], budget: str) -> Finding:
        """The verdict on some tables."""
        places = (self.ours, self.other)
        absent = dict.fromkeys(TABLES[place.table][0].name for place in places if place.table not in tables)
        if absent:
            return _not_run(self, f"suite {' and '.join(absent)} missing")
        found = [find_row(tables[place.table], place.row, budget, place.column) for place in places]
        mine, theirs = found
        if isinstance(mine, Gap) or isinstance(theirs, Gap):
            return _not_run(self, missing([gap for gap in found if isinstance(gap, Gap)]))
        verdict, remark = compare(mine.score, theirs.score)
        ours, other = (
            Side(f"{one.row.name} on {_where(place)}", wording.with_interval(one.score, tables[place.table]))
            for place, one in ((self.ours, mine), (self.other, theirs))
        )
        return Finding(self.text, verdict, ours, other, remark, source=self.source)


@dataclass(frozen=True)
class FollowingClaim:
    """That rollouts follow a target that is moved within the support of the data: their slope is 1, up to a margin."""

    text: str
    table: str
    ours: ClaimedRow
    margin: float
    source: Source = "himatch"

    def judge(self, tables: Mapping[str, ResultTable], budget: str) -> Finding:
        """The verdict on some tables."""
        if self.table not in tables:
            return _not_run(self, f"suite {TABLES[self.table][0].name} missing")
        table = tables[self.table]
        found = find_row(table, self.ours, budget, AVERAGE)
        if isinstance(found, Gap):
            return _not_run(self, missing([found]))
        column = next(column for column in table.columns if column.key == AVERAGE)
        slope = slope_of(found.row.jobs, column, WITHIN)
        if table.slopes is None or slope is None:
            return _not_run(self, "no histograms of rollouts")
        low, high = slope.mean_low, slope.mean_high
        bounds = (None, None) if low is None or high is None else (low - 1, high - 1)
        verdict, remark = decide_level(Difference(slope.mean - 1, *bounds), self.margin)
        ours = Side(found.row.name, f"slope {wording.with_interval(slope, table.slopes)}")
        return Finding(self.text, verdict, ours, Side("the shift", "slope 1"), remark, source=self.source)


def _where(place: Place) -> str:
    return TABLES[place.table][0].name if place.column == AVERAGE else place.column.replace("/", " ")


def _not_run(claim: UnpairedClaim | FollowingClaim, why: str) -> Finding:
    return Finding(claim.text, "not run", remark=why, source=claim.source)
