"""Claims about the size of codes: whether W1 falls, or follows no trend, as m grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from himatch.divergences import Difference
from himatch.reproduce.report import text as wording
from himatch.reproduce.report.claimed import ClaimedRow, Found, Gap, find_row, missing
from himatch.reproduce.report.differences import Paired, decide, pair
from himatch.reproduce.report.findings import Finding, Side, Source
from himatch.reproduce.report.robustness import robustness, steady_averages
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.suite import AVERAGE
from himatch.reproduce.suites import TABLES

Family = tuple[ClaimedRow, ...]
"""A method with codes of growing size, each some times the one before."""


@dataclass(frozen=True)
class Trend:
    """W1 of a family by size, and the largest code's less the smallest's.

    Sizes that grow by the same factor are equally far apart in log m, so that the slope of a line through three of them
    is half that difference, whatever lies between.
    """

    rows: tuple[Found, ...]
    paired: Paired
    less: Difference

    @property
    def means(self) -> str:
        """``0.315, 0.305, 0.295``."""
        return ", ".join(f"{row.score.mean:.3f}" for row in self.rows)

    @property
    def is_clear(self) -> bool:
        """Whether W1 rises or falls all the way, and from end to end by more than noise."""
        means = [row.score.mean for row in self.rows]
        steps = [after - before for before, after in pairwise(means)]
        one_way = all(step > 0 for step in steps) or all(step < 0 for step in steps)
        low, high = self.less.low, self.less.high
        return one_way and low is not None and high is not None and (low > 0 or high < 0)


@dataclass(frozen=True)
class FallingClaim:
    """That W1 of a family falls with the size of its codes."""

    text: str
    table: str
    family: Family
    source: Source = "himatch"

    def judge(self, tables: Mapping[str, ResultTable], budget: str) -> Finding:
        """The verdict on some tables."""
        trend = _trend(tables, self.table, self.family, budget)
        if isinstance(trend, str):
            return Finding(self.text, "not run", remark=trend, source=self.source)
        verdict, remark = decide(trend.less)
        table, first, last = tables[self.table], trend.rows[0], trend.rows[-1]
        parts = next(column.parts for column in table.columns if column.key == AVERAGE)
        steadily = steady_averages(parts, last.row.jobs, first.row.jobs)
        robust = robustness(trend.paired, lambda mean: mean < 0, steadily)
        remarks = "; ".join(filter(None, (remark, f"by size {trend.means}")))
        apart = wording.difference(trend.less)
        return Finding(self.text, verdict, _side(last, table), _side(first, table), remarks, apart, self.source, robust)


@dataclass(frozen=True)
class NoTrendClaim:
    """That no family shows a clear trend, up or down, in the size of its codes."""

    text: str
    table: str
    families: tuple[Family, ...]
    source: Source = "himatch"

    def judge(self, tables: Mapping[str, ResultTable], budget: str) -> Finding:
        """The verdict on some tables; the numbers are those of the clearest trend."""
        found = [_trend(tables, self.table, family, budget) for family in self.families]
        gaps = [gap for gap in found if isinstance(gap, str)]
        if gaps:
            return Finding(self.text, "not run", remark="; ".join(dict.fromkeys(gaps)), source=self.source)
        trends = [trend for trend in found if isinstance(trend, Trend)]
        clear = [trend for trend in trends if trend.is_clear]
        shown = max(clear or trends, key=lambda trend: abs(trend.less.mean))
        table = tables[self.table]
        ours, other = _side(shown.rows[-1], table), _side(shown.rows[0], table)
        said = "; ".join(f"{trend.rows[-1].row.name}: by size {trend.means}" for trend in clear)
        remark = f"clear trends in {len(clear)} of {len(trends)}" + (f": {said}" if said else "")
        apart = wording.difference(shown.less)
        return Finding(self.text, "does not hold" if clear else "holds", ours, other, remark, apart, self.source)


def _side(found: Found, table: ResultTable) -> Side:
    return Side(found.row.name, wording.with_interval(found.score, table))


def _trend(tables: Mapping[str, ResultTable], label: str, family: Sequence[ClaimedRow], budget: str) -> Trend | str:
    """The trend of a family, or what is missing."""
    if label not in tables:
        return f"suite {TABLES[label][0].name} missing"
    table = tables[label]
    found = [find_row(table, claimed, budget, AVERAGE) for claimed in family]
    gaps = [gap for gap in found if isinstance(gap, Gap)]
    if gaps:
        return missing(gaps)
    rows = tuple(row for row in found if isinstance(row, Found))
    parts = next(column.parts for column in table.columns if column.key == AVERAGE)
    paired = pair(parts, rows[-1].row.jobs, rows[0].row.jobs)
    return "not on the same targets" if paired is None else Trend(rows, paired, paired.difference)
