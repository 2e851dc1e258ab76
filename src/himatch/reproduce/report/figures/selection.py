"""What pictures show of a table: which targets, which methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.methods import METHODS
from himatch.reproduce.policies import POLICIES
from himatch.reproduce.report.rows import main_budget
from himatch.reproduce.report.table import ResultRow, ResultTable
from himatch.reproduce.results import JobResult, TargetScore
from himatch.viz.style import BinShares


def shown_methods(table: ResultTable) -> list[ResultRow]:
    """The paper's rows in its order, however they match, and himatch's own after them.

    Rows of other budgets or steps repeat what the others show, and so do networks from before himatch had a policy of
    its own. Of codes of several sizes those of the proposed method's are shown, as in the paper.
    """
    budget = main_budget(row.key.budget for row in table.methods if row.key is not None)
    size = table.layout.proposed.get("m")
    rows = [
        (row, row.key)
        for row in table.methods
        if row.jobs and row.key is not None and row.key.method.get("m") == size and row.key.policy in POLICIES
    ]
    main = [row for row, key in rows if (key.budget, key.steps) == (budget, None)] or [row for row, _ in rows]
    return sorted(main, key=lambda row: not is_papers(row, table))


def is_papers(row: ResultRow, table: ResultTable) -> bool:
    """Whether the paper has the row: its policy, its conditioning, one of its methods."""
    key = row.key
    own = key is None or (key.policy, key.conditioning) != ("paper", "nominal")
    return not own and row.method in table.layout.paper.rows


def shown_targets(rows: Sequence[ResultRow], task: str) -> list[TargetScore]:
    """Two of each group, the first and the last: the best episode and the fifth, running and a back-flip, ..."""
    groups: dict[str, list[TargetScore]] = {}
    for target in targets_of(rows, task):
        groups.setdefault(target.group, []).append(target)
    return [target for group in groups.values() for target in (group[:1] if len(group) == 1 else (group[0], group[-1]))]


def target_levels(row: ResultRow, target: TargetScore) -> list[float]:
    """The target's mean, of every feature, where that is all that a method is conditioned on."""
    if not is_one_number(row):
        return []
    shares = np.squeeze(np.asarray(target.histograms["target"], dtype=np.float64))
    return [mean_of(edges(target, i), marginal(shares, i)) for i in range(shares.ndim)]


def is_one_number(row: ResultRow) -> bool:
    """Whether a method is conditioned on one number of what a table shows: the sum of it, and not of rewards."""
    known = None if row.method is None or row.method.get("feature") else METHODS.get(row.method.name)
    return known is not None and known.matches == "return"


def marginal(shares: NDArray[np.float64], dimension: int) -> NDArray[np.float64]:
    """Shares along one dimension."""
    return np.asarray(shares.sum(axis=tuple(i for i in range(shares.ndim) if i != dimension)), dtype=np.float64)


def mean_of(bounds: Sequence[float], shares: NDArray[np.float64]) -> float:
    """The mean of a histogram, every bin at its middle."""
    middles = np.convolve(bounds, [0.5, 0.5], "valid")
    return float(shares @ middles / shares.sum())


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
