"""What pictures show of a table: which targets, which methods."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from himatch.reproduce.report.table import ResultRow, ResultTable
from himatch.reproduce.results import JobResult, TargetScore
from himatch.viz.style import BinShares

MOST_METHODS = 6


def shown_methods(table: ResultTable) -> list[ResultRow]:
    """Methods with rollouts; of many, those that match best, in the order of the table."""
    rows = [row for row in table.methods if row.jobs]
    if len(rows) > MOST_METHODS:
        # A method that ran on fewer tasks is not better for it: first come those that ran on most.
        ranks = [(-len(row.jobs), np.mean([np.mean(job.scores()) for job in row.jobs.values()])) for row in rows]
        rows = [rows[i] for i in sorted(sorted(range(len(rows)), key=ranks.__getitem__)[:MOST_METHODS])]
    return rows


def first_targets(rows: Sequence[ResultRow], task: str) -> list[TargetScore]:
    """The first target of every kind: best and middle episode, each velocity, each behaviour."""
    kinds: dict[tuple[str, str], TargetScore] = {}
    for target in targets_of(rows, task):
        kinds.setdefault((target.group, re.sub(r"[\d\s]+", "", target.name)), target)
    return list(kinds.values())


def targets_of(rows: Sequence[ResultRow], task: str) -> list[TargetScore]:
    """Targets of a task that can be drawn; all methods share them."""
    jobs = [row.jobs[task] for row in rows if task in row.jobs]
    return [target for job in jobs[:1] for target in job.targets if drawable(target)]


def drawable(target: TargetScore) -> bool:
    """Whether a result kept the histograms."""
    return {"edges", "target"} <= target.histograms.keys()


def found(row: ResultRow, task: str, wanted: TargetScore) -> TargetScore | None:
    """The same target in a method's results, with rollouts to draw."""
    return None if task not in row.jobs else _same(row.jobs[task], wanted)


def _same(job: JobResult, wanted: TargetScore) -> TargetScore | None:
    key = (wanted.name, wanted.group, wanted.shift, wanted.ordering)
    others = (t for t in job.targets if (t.name, t.group, t.shift, t.ordering) == key)
    return next((t for t in others if drawable(t) and "rollouts" in t.histograms), None)


def edges(target: TargetScore, dimension: int = 0) -> list[float]:
    """Bin edges of one dimension."""
    given: list[Any] = target.histograms["edges"]
    return list(given[dimension]) if isinstance(given[0], list) else given


def histogram(target: TargetScore, which: str = "target") -> BinShares:
    """One dimension of a target, or of its ``rollouts``; it may come wrapped in a list."""
    return BinShares(edges(target), np.ravel(np.asarray(target.histograms[which], dtype=np.float64)))
