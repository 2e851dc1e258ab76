"""Which targets stumble: episodes of the better agent that the middle of the order by returns selects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from himatch.reproduce.report.differences import episodes
from himatch.reproduce.results import JobResult, TargetScore
from himatch.reproduce.suite import AVERAGE, TableColumn

# By returns alone: neither a policy's score nor the name of a task has a part in it. The median of the medium targets
# would not do, since most of them may have stumbled.
RULE = (
    "A medium target stumbles if its return is nearer to the median of the expert targets' than to the lowest of the "
    "medium targets'. These are five neighbours in the order by returns, so those of one agent are alike; one so far "
    "above the lowest is among the worst episodes of the better agent."
)


def stumbling(targets: Sequence[TargetScore]) -> list[TargetScore]:
    """Those that stumble, by :data:`RULE`; none where returns are not known."""
    expert, medium = (
        [(t.target_return, t) for t in targets if t.group == group and t.target_return is not None]
        for group in ("expert", "medium")
    )
    if not expert or not medium:
        return []
    middle = (float(np.median([known for known, _ in expert])) + min(known for known, _ in medium)) / 2
    return [target for known, target in medium if known > middle]


def steady(result: JobResult) -> JobResult:
    """A result without targets that stumble."""
    without = stumbling(result.targets)
    return replace(result, targets=[target for target in result.targets if target not in without])


def listed(results: Iterable[JobResult]) -> str:
    """``halfcheetah medium 8 (8,241), medium 9 (8,616)``: those of some results with their returns; or nothing."""
    found: dict[str, None] = {}
    for result in results:
        without = stumbling(result.targets)
        named = zip(result.targets, episodes(result.targets), strict=True)
        if names := dict.fromkeys(f"{e.name} ({t.target_return:,.0f})" for t, e in named if t in without):
            found[f"{result.task} {', '.join(names)}"] = None
    return "; ".join(found)


def steady_columns(columns: Sequence[TableColumn], results: Iterable[JobResult]) -> dict[TableColumn, TableColumn]:
    """The average, and the totals of tasks in which targets stumble, each with a column that leaves these out."""
    tasks = {result.task for result in results if stumbling(result.targets)}
    wanted = {AVERAGE, *(f"{task}/total" for task in tasks)} if tasks else set()
    found = sorted((column for column in columns if column.key in wanted), key=lambda column: column.key != AVERAGE)
    return {column: replace(column, key=f"{column.key}/steady", title="without stumbling") for column in found}
