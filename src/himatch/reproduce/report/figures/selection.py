"""What pictures show of a table: which targets, which methods."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from himatch.reproduce.report.table import ResultRow, ResultTable
from himatch.reproduce.results import JobResult, TargetScore

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


def shares(target: TargetScore, which: str = "target") -> list[float]:
    """Shares of the bins of a one-dimensional histogram; one dimension may come wrapped in a list."""
    flat: list[float] = np.ravel(np.asarray(target.histograms[which], dtype=np.float64)).tolist()
    return flat


def span(histograms: Iterable[tuple[list[float], list[float]]]) -> tuple[float, float]:
    """Range that holds nearly everything of some histograms (edges, shares): panels are too small to waste width."""
    low, high = np.inf, -np.inf
    for bounds, weights in histograms:
        filled = np.flatnonzero(np.asarray(weights) > 2e-3)
        if len(filled):
            low, high = min(low, bounds[max(filled[0] - 1, 0)]), max(high, bounds[min(filled[-1] + 2, len(weights))])
    return (float(low), float(high)) if low < high else (0.0, 1.0)
