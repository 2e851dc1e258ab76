"""Targets that no episode shows, drawn from a seed over the range of what the training data does (suite ``unseen``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64
from himatch.tasks import Task
from himatch.types import Array

UNIFORM, MODES, NARROW, ORDER = KINDS = ("uniform", "three modes", "narrow", "in order")
REPORTED_SEED = 100  # 0 to 9 are for development
RANGE = (0.02, 0.98)  # quantiles of the training values that targets are drawn between
APART = 0.15  # of that range: modes that are nearer than this are one
LEAST, PARTS = 3, 20  # of the twenty parts of a rollout every target in an order has three
# Deviations of Gaussians and the shortest uniform, in parts of the range.
DEVIATIONS = {MODES: 0.05, NARROW: 0.04, ORDER: 0.05}
SHORTEST = 0.3


def drawn(values: Array, task: Task, each: int, seed: int) -> list[tuple[str, str]]:
    """Kind and expression of ``each`` targets of every kind, for training values of one feature of a task.

    Tasks and kinds draw independently of one another, so that more of each kind begin with the same ones.
    """
    ordered, found = np.sort(values, axis=None).astype(np.float64), []
    for kind in KINDS:
        rng = np.random.default_rng([seed, *f"{task.name} {kind}".encode()])
        draw = _Draw(rng, ordered, task.horizon)
        make = {UNIFORM: draw.uniform, MODES: draw.three_modes, NARROW: draw.narrow, ORDER: draw.in_order}[kind]
        found += [(kind, make()) for _ in range(each)]
    return found


class _Draw:
    """One random stream, and the range that it draws from."""

    def __init__(self, rng: np.random.Generator, values: Array64, horizon: int) -> None:
        self._rng, self._values, self._horizon = rng, values, horizon
        self._low, self._high = np.quantile(values, RANGE)
        self._width = float(self._high - self._low)

    def uniform(self) -> str:
        ends = self._rng.uniform(self._low, self._high, 2)
        half = max(SHORTEST * self._width, float(np.ptp(ends))) / 2
        return f"uniform({ends.mean() - half:.3g},{ends.mean() + half:.3g})"

    def three_modes(self) -> str:
        shares = np.round(self._rng.dirichlet(np.full(3, 4.0)), 2)
        shares[-1] = 1.0 - shares[:-1].sum()
        modes = zip(shares, self._means(3), strict=True)
        return "+".join(f"{share:.2g}*{self._normal(mean, MODES)}" for share, mean in modes)

    def narrow(self) -> str:
        """Between behaviours: where the training data is thinner than over its range on average."""
        reach = 2 * DEVIATIONS[NARROW] * self._width
        while True:
            mean = float(self._rng.uniform(self._low + reach, self._high - reach))
            first, last = np.searchsorted(self._values, (mean - reach, mean + reach))
            if (last - first) / len(self._values) < 2 * reach / self._width:
                return self._normal(mean, NARROW)

    def in_order(self) -> str:
        means = self._means(int(self._rng.integers(2, 4)))
        parts = self._durations(len(means)) * self._horizon // PARTS
        texts = [self._normal(mean, ORDER) for mean in means]
        return " then ".join([*(f"{t} for {n}" for t, n in zip(texts, parts[:-1], strict=False)), texts[-1]])

    def _means(self, count: int) -> Array64:
        """In any order, none near another."""
        while True:
            means = self._rng.uniform(self._low, self._high, count)
            if np.diff(np.sort(means)).min() >= APART * self._width:
                return means

    def _durations(self, count: int) -> NDArray[np.int64]:
        """In parts of the horizon."""
        while True:
            borders = np.sort(self._rng.choice(np.arange(1, PARTS), count - 1, replace=False))
            found: NDArray[np.int64] = np.diff(borders, prepend=0, append=PARTS)
            if found.min() >= LEAST:
                return found

    def _normal(self, mean: float, kind: str) -> str:
        return f"normal({mean:.3g},{DEVIATIONS[kind] * self._width:.3g})"
