"""Claims about the size of codes: whether W1 falls, or follows no trend, as m grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from himatch.divergences import Difference
from himatch.reproduce.report import text as wording
from himatch.reproduce.report.claimed import ClaimedRow, Found, Gap, find_row, missing
from himatch.reproduce.report.differences import Paired, Parts, Verdict, decide, episodes, pair
from himatch.reproduce.report.findings import Finding, Side, Source
from himatch.reproduce.report.robustness import Steady, left_out, robustness, steady_averages
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.results import JobResult
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
    parts: Parts
    means: tuple[float, ...]
    paired: Paired

    @cached_property
    def less(self) -> Difference:
        """Of the largest code less the smallest."""
        return self.paired.difference

    @property
    def sizes(self) -> str:
        """``0.315, 0.305, 0.295``."""
        return ", ".join(f"{mean:.3f}" for mean in self.means)

    @property
    def is_clear(self) -> bool:
        """Whether W1 rises or falls all the way, and from end to end by more than noise."""
        steps = [after - before for before, after in pairwise(self.means)]
        if not (all(step > 0 for step in steps) or all(step < 0 for step in steps)):
            return False
        low, high = self.less.low, self.less.high
        return low is not None and high is not None and (low > 0 or high < 0)

    @property
    def steadily(self) -> Steady | None:
        """The largest and the smallest code without targets that stumble."""
        return steady_averages(self.parts, self.rows[-1].row.jobs, self.rows[0].row.jobs)

    def without(self, name: str) -> Trend:
        """Without one target, by its task and name."""
        found = _measured(self.rows, self.parts, name)
        assert found is not None  # it was measured with that target
        return found


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
        robust = robustness(trend.paired, lambda mean: mean < 0, trend.steadily)
        remarks = "; ".join(filter(None, (remark, f"by size {trend.sizes}")))
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
        said = "; ".join(f"{trend.rows[-1].row.name}: by size {trend.sizes}" for trend in clear)
        remark = f"clear trends in {len(clear)} of {len(trends)}" + (f": {said}" if said else "")
        apart = wording.difference(shown.less)
        verdict: Verdict = "does not hold" if clear else "holds"
        # Those that are clear with every target come first: one that stays so is enough.
        ordered, rest = [*clear, *(trend for trend in trends if trend not in clear)], shown.paired.without_each
        turning = [name for name in rest if any(trend.without(name).is_clear for trend in ordered) != bool(clear)]
        robust = left_out(shown.less.mean, rest, turning, shown.steadily)
        return Finding(self.text, verdict, ours, other, remark, apart, self.source, robust)


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
    return _measured(rows, parts) or "not on the same targets"


def _measured(rows: tuple[Found, ...], parts: Parts, without: str = "") -> Trend | None:
    """The trend over some rows, without one target; nothing where their targets are not the same."""
    jobs = [{task: _left_out(found.row.jobs[task], without) for task, _ in parts} for found in rows]
    paired = pair(parts, jobs[-1], jobs[0])
    if paired is None:
        return None
    scores = [
        [[t.w1 for t in by_task[task].targets if t.belongs_to(group)] for task, group in parts] for by_task in jobs
    ]
    means = tuple(float(np.mean([np.mean(part) for part in row])) for row in scores)
    return Trend(rows, parts, means, paired)


def _left_out(job: JobResult, name: str) -> JobResult:
    named = zip(job.targets, episodes(job.targets), strict=True)
    return replace(job, targets=[target for target, episode in named if f"{job.task} {episode.name}" != name])
