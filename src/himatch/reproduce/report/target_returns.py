"""Returns of targets that a result does not know itself: shifted targets are held-out episodes that were moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from himatch.reproduce.report.captions import data_hash
from himatch.reproduce.report.differences import episodes
from himatch.reproduce.results import JobResult, TargetScore


def with_returns(results: Sequence[JobResult]) -> list[JobResult]:
    """Results whose targets have the return of their episode, where another result on the same data knows it."""
    known: dict[tuple[str, str, str], float] = {}
    for result in results:
        for target, name in _named(result):
            if target.target_return is not None:
                known.setdefault((data_hash(result), result.task, name), target.target_return)
    found = []
    for result in results:
        if any(target.shift is not None and target.target_return is None for target in result.targets):
            where = data_hash(result), result.task
            targets = [
                replace(target, target_return=known.get((*where, name))) if target.target_return is None else target
                for target, name in _named(result)
            ]
            result = replace(result, targets=targets)
        found.append(result)
    return found


def _named(result: JobResult) -> list[tuple[TargetScore, str]]:
    """Every target with the name of its episode."""
    named = zip(result.targets, episodes(result.targets), strict=True)
    return [(target, episode.name) for target, episode in named]
