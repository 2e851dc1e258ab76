"""The task that the rest of a trajectory serves best, among candidates: relabelling by inverse RL.

A return alone says little: an easy task gives much to everybody. So the rest of an episode is compared with what
training episodes earn in as many last steps under the same task: :class:`LikeliestTask` by the partition function
(HIPI), :class:`HighestRankedTask` by the percentile (generalized hindsight).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from himatch._runtime.shapes import Array64, Float, Int, shaped
from himatch.errors import HimatchError
from himatch.statistics.aggregators.aggregator import check_gamma, discounted_by, discounted_counts, discounted_sums
from himatch.statistics.bins import Bins
from himatch.statistics.rewards import find_rewards
from himatch.types import Array

CANDIDATES = 31
FEW = 20  # episodes; what fewer earn in so many steps says little of others
LEVELS = (*(1.0 - 0.5 ** np.arange(11.0)).tolist(), 1.0)  # half of the episodes, three quarters, ...: the best matter
_SAME = 1e-6  # of a range: medians that are nearer are one task
_EQUAL = 1e-4  # of all episodes: ranks that are nearer are the same
_DIGITS = 7  # of what is kept, as many as single precision has

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class InferredTask(ABC):
    """``argmax_psi`` of how good the rest is for psi, ``r_psi`` being one of the families of rewards.

    ``tasks`` are the candidates, ``lengths`` the steps left for which ``known`` says what training episodes earn, as a
    mean over these steps; in between it is interpolated over the logarithm of the steps.
    """

    kind: ClassVar[str]
    gamma: float = 1.0
    rewards: str = "distance"
    count: int = CANDIDATES
    tasks: Rows = ()
    lengths: tuple[int, ...] = ()
    known: Rows = ()

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        find_rewards(self.rewards)
        if self.count < 2:
            raise HimatchError(f"the best of several tasks needs two candidates at least, got {self.count}")
        for name in ("tasks", "known"):
            object.__setattr__(self, name, tuple(tuple(row) for row in getattr(self, name)))
        object.__setattr__(self, "lengths", tuple(self.lengths))

    # -- what a kind says ---------------------------------------------------------------------------------------

    @abstractmethod
    def summary(self, earned: Float[Array64, "E n"], steps: float) -> Float[Array64, "j n"]:
        """What is kept of the mean rewards of E episodes in their last steps, of which there are so many."""

    @abstractmethod
    def goodness(self, earned: Float[Array64, "T n"], known: Float[Array64, "T j n"]) -> Float[Array64, "T n"]:
        """How good mean rewards are beside what is known of others'; the best is greatest."""

    # -- an aggregator ------------------------------------------------------------------------------------------

    def fit(self, features: Iterable[Array]) -> Self:
        """Choose candidates and take what training episodes earn under them, unless that was given."""
        if self.tasks:
            return self
        again = list(features) if isinstance(features, Iterator) else features
        middles = [np.median(phi, axis=0).astype(np.float64) for phi in again]
        if not middles:
            raise HimatchError("tasks cannot be inferred from an empty dataset")
        chosen = replace(self, tasks=_plain(candidates(np.stack(middles), self.count)))
        longest = sorted((len(phi) for phi in again), reverse=True)[min(FEW, len(middles)) - 1]
        lengths = sorted({*(2 ** np.arange(longest.bit_length())).tolist(), longest})
        earned: dict[int, list[Array64]] = {steps: [] for steps in lengths}
        for phi in again:
            means = chosen.mean_rewards(phi)
            for steps in lengths[: int(np.searchsorted(lengths, len(phi), side="right"))]:
                earned[steps].append(means[len(phi) - steps])
        total = discounted_counts(longest, self.gamma)[::-1, 0]
        known = [self.summary(np.stack(earned[steps]), float(total[steps - 1])).ravel() for steps in lengths]
        return replace(chosen, lengths=tuple(lengths), known=_plain(known))

    def width(self, dimensions: int) -> int:
        """A parameter is as wide as the feature."""
        return dimensions

    @shaped
    def __call__(self, phi: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """Parameters of the best tasks."""
        left = np.arange(len(phi), 0, -1)
        best = self.goodness(self.mean_rewards(phi), self._known_at(left)).argmax(axis=1)
        found: Array = self._tasks[best].astype(np.float32)
        return found

    @shaped
    def of_task(self, parameter: Float[Array, " d"]) -> Float[Array, " d"]:
        """The parameter itself, whether it is a candidate or not."""
        return parameter

    @shaped
    def mean_rewards(self, phi: Float[Array, "T d"]) -> Float[Array64, "T n"]:
        """The discounted mean of the rest's rewards under every candidate."""
        values = find_rewards(self.rewards)(phi.astype(np.float64), self._tasks)
        return discounted_sums(values, self.gamma) / discounted_counts(len(phi), self.gamma)

    def meaning(self, feature: str) -> str:
        """In words."""
        low, high = self._tasks.min(axis=0), self._tasks.max(axis=0)
        span = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in zip(low, high, strict=True))
        return (
            f"the parameter psi, {span}, for whose reward {self.rewards}({feature}, psi) the rest of the "
            f"episode{discounted_by(self.gamma)} is best, by {self.compared}"
        )

    compared: ClassVar[str]
    """What the rest is compared by, in words."""

    @cached_property
    def _tasks(self) -> Float[Array64, "n d"]:
        if not self.tasks:
            raise HimatchError("this statistic has no candidate tasks yet; fit it to training data first")
        return np.array(self.tasks)

    @cached_property
    def _known(self) -> Float[Array64, "lengths j n"]:
        return np.array(self.known).reshape(len(self.lengths), -1, len(self.tasks))

    @shaped
    def _known_at(self, left: Int[np.ndarray, " T"]) -> Float[Array64, "T j n"]:
        """What is known of others with so many steps left."""
        known = self._known
        place = np.interp(np.log(left), np.log(self.lengths), np.arange(len(known)))
        below = place.astype(np.int64)
        part = (place - below)[:, None, None]
        found: Array64 = known[below] * (1 - part) + known[np.minimum(below + 1, len(known) - 1)] * part
        return found


@dataclass(frozen=True)
class LikeliestTask(InferredTask):
    """The mode of ``q(psi | rest)``, proportional to ``exp(R_psi - log Z(psi))``, R the return of the rest (HIPI).

    Z is the mean of ``exp(R_psi)`` over training episodes; returns are in units of ``temperature``.
    """

    kind: ClassVar[str] = "likeliest_task"
    compared: ClassVar[str] = "its return less the logarithm of the partition function"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.temperature < np.inf:
            raise HimatchError(f"the temperature of returns must be above 0 and finite, got {self.temperature}")

    @shaped
    def summary(self, earned: Float[Array64, "E n"], steps: float) -> Float[Array64, "1 n"]:
        """``log Z``, a step's share of it in units of reward."""
        unit = self.temperature / steps
        best = earned.max(axis=0)
        total: Array64 = best + unit * np.log(np.exp((earned - best) / unit).mean(axis=0))
        return total[None]

    @shaped
    def goodness(self, earned: Float[Array64, "T n"], known: Float[Array64, "T 1 n"]) -> Float[Array64, "T n"]:
        """The logarithm of q, a step's share of it, but for what is the same for all tasks."""
        return earned - known[:, 0]


@dataclass(frozen=True)
class HighestRankedTask(InferredTask):
    """The task under which the return of the rest has the highest percentile among training episodes (AIR)."""

    kind: ClassVar[str] = "highest_ranked_task"
    compared: ClassVar[str] = "the percentile of its return among training episodes"

    @shaped
    def summary(self, earned: Float[Array64, "E n"], steps: float) -> Float[Array64, "j n"]:
        """Quantiles, closer and closer together towards the best."""
        found: Array64 = np.quantile(earned, LEVELS, axis=0)
        return found

    @shaped
    def goodness(self, earned: Float[Array64, "T n"], known: Float[Array64, "T j n"]) -> Float[Array64, "T n"]:
        """The part of training episodes that earn less, interpolated; among equals the reward decides.

        An episode is often the best of all at several tasks, and one that is better than all at most of them.
        """
        rank: Array64 = np.zeros(earned.shape)
        for level, share in enumerate(np.diff(LEVELS)):
            low, high = known[:, level], known[:, level + 1]
            with np.errstate(divide="ignore", invalid="ignore"):
                part = (earned - low) / (high - low)
            rank += share * np.clip(np.where(high > low, part, earned >= high), 0.0, 1.0)
        span = known.max(axis=(1, 2)) - known.min(axis=(1, 2))
        rank += _EQUAL * earned / np.maximum(span, np.finfo(np.float64).tiny)[:, None]
        return rank


@shaped
def candidates(middles: Float[Array64, "E d"], count: int) -> Float[Array64, "n d"]:
    """Tasks that training episodes serve, given the median of each.

    Of one feature they are spread evenly over the usual medians; of several they are medians that lie far apart.
    """
    usual = Bins.fit(list(middles[:, None]), count, fenced=True)
    low, high = np.array(usual.low), np.array(usual.high)
    if len(low) == 1:
        return np.linspace(low, high, count)
    points = np.clip(middles, low, high) / (high - low)
    chosen = [int(np.linalg.norm(points - points.mean(axis=0), axis=1).argmin())]
    away = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < count and away.max() > _SAME:
        chosen.append(int(away.argmax()))
        away = np.minimum(away, np.linalg.norm(points - points[chosen[-1]], axis=1))
    found: Array64 = points[chosen] * (high - low)
    return found


def _plain(rows: Any) -> Rows:
    """Rows as numbers that JSON gives back."""
    return tuple(tuple(float(f"{x:.{_DIGITS}g}") for x in row) for row in rows)
