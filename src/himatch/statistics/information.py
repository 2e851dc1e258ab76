"""Information statistics I^Phi: a feature and an aggregator together (Table him_summary).

The functions at the end recover the five categories of the paper's table:

====================  ==========================================  ==========================================
category              statistic                                   preset
====================  ==========================================  ==========================================
goal-based            ``phi_T``                                   :func:`goal_based`
multi-task            ``argmax_j sum gamma^t r_j(s_t, a_t)``      :func:`multi_task`
return-based          ``sum gamma^t r_t``                         :func:`return_based` (DT)
full trajectory       ``tau``                                     :func:`full_trajectory` (BDT, DT-X, FOCAL)
distribution-based    ``histogram(phi_t, gamma)``                 :func:`distribution_based` (CDT)
====================  ==========================================  ==========================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from himatch.errors import DataError, note
from himatch.statistics.aggregators import (
    Additive,
    Aggregator,
    BestTask,
    Counts,
    DiscountedSum,
    FinalValue,
    Histogram,
    Moments,
    Stretchwise,
    Tasked,
    TimedSum,
    TimedValue,
    aggregator_from_spec,
    aggregator_spec,
)
from himatch.statistics.bins import PAPER_BINS, Bins
from himatch.statistics.features import Feature, of_each, resolve_feature
from himatch.statistics.histograms import LONGEST, Allocate, HistogramsOfRest
from himatch.tasks import Task
from himatch.types import Array, StepRows, Trajectory


class EpisodeSet(Protocol):
    """A dataset, as far as a statistic is concerned."""

    @property
    def steps(self) -> int:
        """Steps of all episodes."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of every episode."""

    def __len__(self) -> int:
        """Number of episodes."""

    def __iter__(self) -> Iterator[Trajectory]:
        """Every episode."""


class Statistic:
    """What a policy is conditioned on. This one has nothing that could be computed before training."""

    @property
    def matched(self) -> Feature | None:
        """The feature that rollouts match, where there is one."""
        return None

    @property
    def bins(self) -> Bins | None:
        """Those of a histogram."""
        return None

    @property
    def binned(self) -> bool:
        """Whether it is a histogram."""
        return False

    @property
    def timed(self) -> bool:
        """Whether it says how much time is left, too."""
        return False

    @property
    def additive(self) -> Additive | None:
        """The aggregator, if its statistic follows from a total."""
        return None

    @property
    def gamma(self) -> float:
        """The discount, where there is one."""
        return 1.0

    @property
    def kind(self) -> str:
        """What kind of statistic it is."""
        return "learned"

    def of_values(self, values: Array) -> Array:
        """``z_t`` for every step of feature values, ``(T, d)`` to ``(T, k)``."""
        raise TypeError(f"{type(self).__name__} is no statistic of feature values")

    @property
    def tasked(self) -> bool:
        """Whether it says which task is served, so that a target may name one."""
        return False

    def of_task(self, parameter: Array) -> Array:
        """What serves the task with this parameter, ``(d,)`` to ``(k,)``."""
        raise TypeError(f"{type(self).__name__} tells no tasks apart")

    def named_by(self, label: str | None) -> Array | None:
        """The parameter that an episode's label names, for statistics of labels."""
        return None

    def fit(self, episodes: Iterable[Trajectory]) -> Self:
        """The statistic with what it learns from training episodes filled in."""
        return self

    def from_minimum_to_maximum(self) -> Self:
        """The statistic whose bins will span all values, extreme ones too: the paper's protocol."""
        return self

    def width_on(self, episode: Trajectory) -> int:
        """How many numbers z has (k)."""
        return 0

    def relabel(self, episodes: EpisodeSet, out: Array | None = None, *, hindsight: bool = False) -> Array | None:
        """``z_t`` for every step of a dataset, where it can be known before training.

        With ``hindsight``, in its place what a sampler keeps of every step, to relabel windows with any later one.
        """
        return None

    def on_demand(self, episodes: EpisodeSet, allocate: Allocate) -> StepRows | None:
        """The same without storing it, where it is cheap to compute when rows are read."""
        return None

    def spec(self) -> dict[str, Any] | None:
        """Plain JSON values for a checkpoint."""
        return None


@dataclass(frozen=True)
class InformationStatistic(Statistic):
    """A fixed statistic: computed once for every step of the data, before training."""

    feature: Feature
    aggregator: Aggregator

    @property
    def matched(self) -> Feature:
        """The feature."""
        return self.feature

    @property
    def bins(self) -> Bins | None:
        """The fitted bins of a histogram; other aggregators have none."""
        return self.aggregator.bins if isinstance(self.aggregator, Histogram) else None

    @property
    def binned(self) -> bool:
        """Whether the aggregator is a histogram, fitted or not."""
        return isinstance(self.aggregator, Histogram)

    @property
    def timed(self) -> bool:
        """As the aggregator says."""
        return bool(getattr(self.aggregator, "timed", False))

    @property
    def kind(self) -> str:
        """The aggregator's."""
        return self.aggregator.kind

    @property
    def gamma(self) -> float:
        """The aggregator's discount."""
        return float(getattr(self.aggregator, "gamma", 1.0))

    def of_values(self, values: Array) -> Array:
        """What the aggregator makes of feature values, ``(T, d)`` to ``(T, k)``."""
        return self.aggregator(values)

    @property
    def additive(self) -> Additive | None:
        """The aggregator, if its statistic follows from a total."""
        return self.aggregator if isinstance(self.aggregator, Additive) else None

    @property
    def tasked(self) -> bool:
        """Where the aggregator is."""
        return isinstance(self.aggregator, Tasked)

    def of_task(self, parameter: Array) -> Array:
        """As the aggregator has it."""
        return self.aggregator.of_task(parameter) if isinstance(self.aggregator, Tasked) else super().of_task(parameter)

    @property
    def meaning(self) -> str:
        """The statistic in words, with the numbers needed to compute it."""
        describe = getattr(self.aggregator, "meaning", None)
        if describe is None:  # an aggregator of the user's own need not say
            return f"{self.aggregator.kind} of {self.feature.name} over the rest of the episode"
        return str(describe(self.feature.name))

    def width_on(self, episode: Trajectory) -> int:
        """How many numbers z has (k)."""
        return int(self(episode).shape[1])

    def fit(self, episodes: Iterable[Trajectory]) -> InformationStatistic:
        """The statistic with bin ranges and the like taken from training episodes; warns if it is constant."""
        episodes = episodes if isinstance(episodes, Sequence) else list(episodes)  # a generator gives them only once
        fitted = InformationStatistic(self.feature, self.aggregator.fit(of_each(self.feature, episodes)))
        first: Array | None = None
        for episode in episodes:  # as a rule no further than the first
            z = fitted(episode)
            if first is None:
                fitted._check_anti_causal(self.feature(episode), z)
                first = z[0]
            if (z != first).any():
                return fitted
        if first is not None:
            note(
                f"the statistic of the feature {self.feature.name!r} is the same at every step of all training "
                "episodes, so it tells a policy nothing; choose a feature that varies"
            )
        return fitted

    def from_minimum_to_maximum(self) -> InformationStatistic:
        """The statistic whose bins will span all values, extreme ones too: the paper's protocol."""
        if not isinstance(self.aggregator, Histogram):
            return self
        return replace(self, aggregator=replace(self.aggregator, fenced=False))

    def _check_anti_causal(self, phi: Array, z: Array) -> None:
        """Refuse an aggregator that sees the past: its z holds what no target can say."""
        half = len(phi) // 2
        moved = phi.copy()
        moved[:half] += 1.0 + np.ptp(phi)
        slack = 1e-4 * max(1.0, float(np.abs(z).max()))
        if not np.allclose(self._aggregated(moved)[half:], z[half:], rtol=0.0, atol=slack):
            raise DataError(
                f"aggregator {self.aggregator.kind!r} looks into the past: what it gives for step {half} and later of "
                f"an episode changes with earlier steps; row t may depend on steps t, t + 1, ... only"
            )

    def __call__(self, trajectory: Trajectory) -> Array:
        """``z_t`` for every step of one trajectory, ``(T, k)``."""
        return self._aggregated(self.feature(trajectory))

    def relabel(self, episodes: EpisodeSet, out: Array | None = None, *, hindsight: bool = False) -> Array:
        """``z_t`` for every step of a dataset, episode after episode, ``(steps, k)``; into ``out`` where given.

        With ``hindsight`` what the aggregator keeps of every step instead, of the same width.
        """
        of_rows = self._aggregated
        if hindsight:
            assert isinstance(self.aggregator, Stretchwise)
            of_rows = self.aggregator.kept
        if len(episodes) == 0:
            raise DataError("there are no episodes to relabel")
        z, row = out, 0
        for episode, phi in enumerate(of_each(self.feature, episodes)):
            width = self.aggregator.width(phi.shape[1])
            if z is None:
                z = np.empty((episodes.steps, width), dtype=np.float32)
            if z.shape[1] != width:
                raise DataError(
                    f"feature {self.feature.name!r} has width {phi.shape[1]} in episode {episode} and another before; "
                    "it must have the same in all of them"
                )
            z[row : row + len(phi)] = of_rows(phi)
            row += len(phi)
        assert z is not None
        return z

    def on_demand(self, episodes: EpisodeSet, allocate: Allocate) -> StepRows | None:
        """Histograms without a discount, counted when rows are read; ``allocate`` makes room for what that needs."""
        aggregator, lengths = self.aggregator, episodes.lengths
        if not isinstance(aggregator, Histogram) or aggregator.gamma != 1.0 or lengths.max() >= LONGEST:
            return None
        return HistogramsOfRest(aggregator, of_each(self.feature, episodes), lengths, allocate)

    def _aggregated(self, phi: Array) -> Array:
        """What the aggregator makes of one episode; it may be a user's, so that is looked at as a feature's is."""
        z = np.asarray(self.aggregator(phi))
        wanted, what = (len(phi), self.aggregator.width(phi.shape[1])), f"aggregator {self.aggregator.kind!r}"
        if z.shape != wanted:
            raise DataError(f"{what} returned shape {z.shape} where its width and the episode's steps are {wanted}")
        if not np.isfinite(z).all():
            step = int(np.argwhere(~np.isfinite(z))[0][0])
            raise DataError(
                f"{what} returned NaN or infinity for {self.feature.name!r} at step {step} of an episode of {len(phi)}"
            )
        return z

    def spec(self) -> dict[str, Any]:
        """Plain JSON values for a checkpoint; the feature is stored by name."""
        return {"feature": self.feature.name, "aggregator": aggregator_spec(self.aggregator)}

    @classmethod
    def from_spec(cls, spec: dict[str, Any], task: Task) -> InformationStatistic:
        """The statistic that a checkpoint describes, its feature looked up in the task."""
        return cls(resolve_feature(spec["feature"], task), aggregator_from_spec(spec["aggregator"]))


@dataclass(frozen=True)
class LearnedStatistic(Statistic):
    """A code of ``width`` numbers (m) that a network makes inside the training step; 0 for no conditioning at all.

    Which network, and what it reads, is the method's.
    """

    width: int

    def width_on(self, episode: Trajectory) -> int:
        """How many numbers the code has (m)."""
        return self.width


def goal_based(task: Task, feature: str | Feature, *, timed: bool = False) -> InformationStatistic:
    """Where the trajectory ends up, ``phi_T``; ``timed`` also in how many steps, divided by the horizon."""
    aggregator = TimedValue(float(task.horizon)) if timed else FinalValue()
    return InformationStatistic(resolve_feature(feature, task), aggregator)


def multi_task(task: Task, rewards: str | Feature | Sequence[str], gamma: float = 1.0) -> InformationStatistic:
    """Which of several reward features the rest serves best."""
    joined = rewards if isinstance(rewards, str) or not isinstance(rewards, Sequence) else ",".join(rewards)
    return InformationStatistic(resolve_feature(joined, task), BestTask(gamma))


def return_based(
    task: Task, feature: str | Feature = "reward", gamma: float = 1.0, scale: float | None = None
) -> InformationStatistic:
    """DT: the sum of the feature to the end, divided by ``scale``, or where that is left out by the horizon."""
    divided_by = float(task.horizon) if scale is None else scale
    return InformationStatistic(resolve_feature(feature, task), DiscountedSum(gamma, divided_by))


def command_based(task: Task, feature: str | Feature = "reward") -> InformationStatistic:
    """Upside-down RL: the sum of the feature to the end and the steps until then, both divided by the horizon."""
    return InformationStatistic(resolve_feature(feature, task), TimedSum(float(task.horizon)))


def full_trajectory(m: int = 16) -> LearnedStatistic:
    """BDT, DT-X, Meta-BC and FOCAL: the trajectory itself, as a code that a network makes of it."""
    return LearnedStatistic(m)


def distribution_based(
    task: Task, feature: str | Feature, bins: int = PAPER_BINS, gamma: float = 1.0, *, counts: bool = False
) -> InformationStatistic:
    """CDT: the distribution of the feature over the rest; as ``counts``, divided by the horizon, with its length."""
    aggregator = Counts(bins, gamma, scale=float(task.horizon)) if counts else Histogram(bins, gamma)
    return InformationStatistic(resolve_feature(feature, task), aggregator)


def moment_based(task: Task, feature: str | Feature, order: int = 2, gamma: float = 1.0) -> InformationStatistic:
    """Mean, standard deviation and higher moments of the feature over the rest."""
    return InformationStatistic(resolve_feature(feature, task), Moments(order, gamma))
