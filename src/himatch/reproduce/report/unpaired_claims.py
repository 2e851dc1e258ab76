"""Claims about numbers that share no targets: W1 of two columns or tables, and the slope of shifted targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from himatch.divergences import Difference, Summary
from himatch.reproduce.report import text as wording
from himatch.reproduce.report.claimed import ClaimedRow, Found, Gap, find_row, missing
from himatch.reproduce.report.differences import compare, decide_level, pair_with
from himatch.reproduce.report.findings import Finding, Side, Source
from himatch.reproduce.report.robustness import Robustness, Steady, left_out
from himatch.reproduce.report.slopes import slope_of, slopes_by_episode
from himatch.reproduce.report.stumbles import steady, stumbling
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

    @property
    def table(self) -> str:
        """That of the first place."""
        return self.ours.table

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
        robust = _either(*((tables[p.table], p, one) for p, one in zip(places, (mine, theirs), strict=True)))
        ours, other = (
            Side(f"{one.row.name} on {_where(place)}", wording.with_interval(one.score, tables[place.table]))
            for place, one in ((self.ours, mine), (self.other, theirs))
        )
        apart = f"{mine.score.mean - theirs.score.mean:+.3f}"
        return Finding(self.text, verdict, ours, other, remark, apart, self.source, robust)


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
        slope, each = slope_of(found.row.jobs, column, WITHIN), slopes_by_episode(found.row.jobs, column, WITHIN)
        if table.slopes is None or slope is None:
            return _not_run(self, "no histograms of rollouts")
        less = _beside_one(slope)
        verdict, remark = decide_level(less, self.margin)
        rest = {name: mean - 1 for name, mean in _without_each(each).items()}
        turning = [name for name, mean in rest.items() if (abs(mean) <= self.margin) != (abs(less.mean) <= self.margin)]
        without = slope_of({task: steady(job) for task, job in found.row.jobs.items()}, column, WITHIN)
        stumble = any(stumbling(job.targets) for job in found.row.jobs.values())
        steadily = Steady(without.mean, 1.0, _beside_one(without)) if stumble and without is not None else None
        robust = left_out(less.mean, rest, turning, steadily)
        ours, other = (
            Side(found.row.name, f"slope {wording.with_interval(slope, table.slopes)}"),
            Side("the shift", "slope 1"),
        )
        return Finding(self.text, verdict, ours, other, remark, wording.difference(less), self.source, robust)


def _beside_one(slope: Summary) -> Difference:
    """A slope less 1."""
    low, high = slope.mean_low, slope.mean_high
    return Difference(slope.mean - 1, *((None, None) if low is None or high is None else (low - 1, high - 1)))


def _without_each(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of the means of some parts without each episode; the only one of its part cannot be left out."""
    found = {}
    for part in parts:
        for name in part if len(part) > 1 else ():
            left = [[value for key, value in other.items() if key != name] for other in parts]
            found[name] = float(np.mean([np.mean(values) for values in left]))
    return found


def _either(*sides: tuple[ResultTable, Place, Found]) -> Robustness | None:
    """The first's mean less the second's without each target of either, named after its suite where these are two."""
    rows = []
    for table, place, found in sides:
        column = next(column for column in table.columns if column.key == place.column)
        plain = pair_with(column.parts, found.row.jobs, lambda _: 0.0)
        without = {task: steady(job) for task, job in found.row.jobs.items()}
        steadier = pair_with(column.parts, without, lambda _: 0.0)
        stumble = any(stumbling(found.row.jobs[task].targets) for task, _ in column.parts)
        rows.append((TABLES[place.table][0].name, plain.difference.mean, plain.without_each, steadier, stumble))
    (suite, ours, mine, ours_steady, one), (other_suite, other, theirs, other_steady, two) = rows
    several = suite != other_suite
    rest = {(f"{suite}: {name}" if several else name): mean - other for name, mean in mine.items()}
    rest |= {(f"{other_suite}: {name}" if several else name): ours - mean for name, mean in theirs.items()}
    steadily = None
    if (one or two) and all((*ours_steady.ours, *other_steady.ours)):
        means = ours_steady.difference.mean, other_steady.difference.mean
        steadily = Steady(*means, Difference(means[0] - means[1]))
    turning = [name for name, mean in rest.items() if (mean < 0) != (ours - other < 0)]
    return left_out(ours - other, rest, turning, steadily)


def _where(place: Place) -> str:
    return TABLES[place.table][0].name if place.column == AVERAGE else place.column.replace("/", " ")


def _not_run(claim: UnpairedClaim | FollowingClaim, why: str) -> Finding:
    return Finding(claim.text, "not run", remark=why, source=claim.source)
