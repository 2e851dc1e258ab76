"""Claims about returns: whether a row's are nearer to the held-out episodes' than another's, or higher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from himatch.divergences import Difference, Summary, summarize
from himatch.reproduce.report.claimed import ClaimedRow
from himatch.reproduce.report.differences import Scorer, decide, pair
from himatch.reproduce.report.findings import Finding, Side, Source
from himatch.reproduce.report.robustness import robustness, steady_averages
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.results import TargetScore
from himatch.reproduce.suites import TABLES
from himatch.tasks import get_task


def return_error(task: str, target: TargetScore) -> Sequence[float]:
    """How far the return of each seed is from the target's, in points of D4RL's score: tasks then weigh the same."""
    wanted = target.target_return
    return [] if wanted is None else [abs(_points(task, got) - _points(task, wanted)) for got in target.returns]


def return_score(task: str, target: TargetScore) -> Sequence[float]:
    """D4RL's score of each seed."""
    return [_points(task, got) for got in target.returns]


def _points(task: str, total: float) -> float:
    score = get_task(task).normalized_return(total)
    return total if score is None else score  # the paper's tasks all have one


@dataclass(frozen=True)
class ReturnClaim:
    """That the returns of a row are nearer to the held-out episodes' than another's, or (``higher``) above them."""

    text: str
    table: str
    ours: ClaimedRow
    other: ClaimedRow
    higher: bool = False
    source: Source = "himatch"

    def judge(self, tables: Mapping[str, ResultTable], budget: str) -> Finding:
        """The verdict on some tables."""
        if self.table not in tables:
            return self._not_run(f"suite {TABLES[self.table][0].name} missing")
        table = tables[self.table]
        rows = [table.row(claimed.key(budget)) for claimed in (self.ours, self.other)]
        ours, other = rows
        needed = table.layout.tasks
        if ours is None or other is None or any(t not in row.jobs for row in (ours, other) for t in needed):
            absent = [c.missing_name for c, row in zip((self.ours, self.other), rows, strict=True) if row is None]
            tasks = [t for t in needed if any(row is not None and t not in row.jobs for row in rows)]
            return self._not_run(f"{', '.join(absent or tasks)} missing")
        scorer: Scorer = return_score if self.higher else return_error
        parts = [(task, group) for task in needed for group in table.layout.groups]
        both = pair(parts, ours.jobs, other.jobs, scorer=scorer)
        if both is None or not all((*both.ours, *both.theirs)):
            return self._not_run("not on the same targets")
        less = both.difference
        verdict, remark = decide(_turned(less) if self.higher else less)
        mine, theirs = (summarize(side, both.tasks) for side in (both.ours, both.theirs))
        sides = Side(ours.name, _figure(mine)), Side(other.name, _figure(theirs))
        steadily = steady_averages(parts, ours.jobs, other.jobs, scorer)
        robust = robustness(both, lambda mean: mean > 0 if self.higher else mean < 0, steadily)
        return Finding(self.text, verdict, *sides, remark, _apart(less), self.source, robust)

    def _not_run(self, why: str) -> Finding:
        return Finding(self.text, "not run", remark=why, source=self.source)


def _turned(less: Difference) -> Difference:
    """Theirs less ours."""
    return Difference(-less.mean, None if less.high is None else -less.high, None if less.low is None else -less.low)


def _figure(score: Summary) -> str:
    low, high = score.interval
    return f"{score.mean:.1f} [{low:.1f}, {high:.1f}] points"


def _apart(less: Difference) -> str:
    bounds = "" if less.low is None or less.high is None else f" [{less.low:+.1f}, {less.high:+.1f}]"
    return f"{less.mean:+.1f}{bounds}"
