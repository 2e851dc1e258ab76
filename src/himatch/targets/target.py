"""Targets: what a rollout must match.

Whatever a target is made of, it can be written as the feature values that an ideal rollout would show, step by step:
``values(frame)`` is ``(T, d)``. The statistic z_t that the policy is fed follows from it by the aggregator, and so
does the histogram that a rollout is compared with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.errors import TargetError
from himatch.statistics.bins import Bins
from himatch.statistics.features import Feature
from himatch.targets.bound import Bound
from himatch.targets.distribution import Distribution, apportion, number, rounded
from himatch.types import Array, Trajectory, concatenate

Matches = Literal["distribution", "return", "goal"]


@dataclass(frozen=True)
class Frame:
    """What a target needs to become numbers: the matched feature, its bins and the task's horizon.

    Where the feature is one of several that have targets of their own, ``column`` is its number among them.
    """

    feature: Feature
    bins: Bins
    horizon: int
    column: int = 0

    def rng(self, seed: int) -> np.random.Generator:
        """What a target draws by: columns that have the same seed are independent nevertheless."""
        return np.random.default_rng((seed, self.column) if self.column else seed)


class Target(ABC):
    """Something to match. ``name`` says what in a table; ``matches`` says what of the rollout is compared."""

    matches: ClassVar[Matches] = "distribution"

    @property
    @abstractmethod
    def name(self) -> str:
        """Short text for tables and file names."""

    @abstractmethod
    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """Feature values of an ideal rollout."""

    def compared(self, frame: Frame) -> Float[Array, "n d"]:
        """What the pooled rollouts are compared with: the same, where no more of it is known."""
        return self.values(frame)

    @shaped
    def histogram(self, frame: Frame) -> Float[Array64, "d bins"]:
        """Marginal histograms of the target."""
        return frame.bins.histogram(self.compared(frame))

    def demonstration(self) -> Trajectory | None:
        """The state sequence behind the target, for policies that imitate one; most targets have none."""
        return None

    @property
    def task(self) -> tuple[float, ...] | None:
        """The parameter of the task that it names, for policies that are conditioned on one; most targets name none."""
        return None

    @property
    def in_time(self) -> bool:
        """Whether the order of its values means something: an episode's does, that of a distribution's draws not."""
        return False

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """What rollouts are scored on beside it."""
        return ()

    def stretches(self, frame: Frame) -> tuple[Target, ...]:
        """The targets that follow one another in it, whatever the horizon of the frame: most are only one."""
        return (self,)

    def alike(self, reached: NDArray[np.floating], frame: Frame) -> Target | None:
        """The target of the same form for what was reached, ``(n, d)``; ``None`` where it has no form to keep.

        Of a distribution these are values, of a return or goal the total or last value of every episode.
        """
        return None

    def _row(self, numbers: tuple[float, ...], frame: Frame) -> Float[Array, " d"]:
        if len(numbers) != frame.bins.dimensions:
            raise TargetError(
                f"{self.name} gives {len(numbers)} numbers, the feature {frame.feature.name} has "
                f"{frame.bins.dimensions}"
            )
        return np.asarray(numbers, dtype=np.float32)


@shaped
def checked_values(target: Target, frame: Frame) -> Float[Array, "T d"]:
    """A target's values; what a class of the user's own gives is looked at as a feature's is."""
    values = target.values(frame)
    if not isinstance(values, np.ndarray) or values.ndim != 2 or 0 in values.shape:
        found = f"shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise TargetError(f"{target.name}: its values must be an array of a row a step, (T, d), got {found}")
    if values.shape[1] != frame.bins.dimensions:
        raise TargetError(
            f"{target.name}: its values have {values.shape[1]} columns, the feature {frame.feature.name} has "
            f"{frame.bins.dimensions}"
        )
    if not np.isfinite(values).all():
        step = int(np.argwhere(~np.isfinite(values))[0][0])
        raise TargetError(f"{target.name}: its values hold NaN or infinity at step {step}")
    return values


@dataclass(frozen=True, eq=False)
class Demonstration(Target):
    """One logged episode, to be matched or imitated."""

    trajectory: Trajectory
    text: str = "demonstration"

    @property
    def name(self) -> str:
        """Where it came from."""
        return self.text

    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """The episode's own feature."""
        return frame.feature(self.trajectory)

    def demonstration(self) -> Trajectory:
        """The episode itself."""
        return self.trajectory

    @classmethod
    def held_out(cls, episode: Trajectory, group: str, number: int) -> Demonstration:
        """A held-out episode, counted from 0; people count from 1."""
        return cls(episode, f"{group} {number + 1}")

    @property
    def in_time(self) -> bool:
        """An episode is."""
        return True


@dataclass(frozen=True, eq=False)
class Samples(Target):
    """Feature values given directly, ``(n,)`` or ``(n, d)``; they become an episode in the given order.

    Whatever their number, the episode has ``steps``, by default the horizon: samples are repeated or left out, so that
    every quantile keeps its part (of several features: evenly). Rollouts are compared with all of them.
    """

    samples: Array
    text: str = "samples"
    steps: int | None = None

    def __post_init__(self) -> None:
        values = np.asarray(self.samples, dtype=np.float32)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or 0 in values.shape or not np.isfinite(values).all():
            raise TargetError(f"samples must be finite and of shape (n,) or (n, d), got {np.shape(self.samples)}")
        object.__setattr__(self, "samples", values)

    @property
    def name(self) -> str:
        """What was said about them."""
        return self.text

    @shaped
    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """As many of the samples as there are steps."""
        samples, steps = self.compared(frame), self.steps or frame.horizon
        chosen = ((np.arange(steps) + 0.5) * len(samples) / steps).astype(np.int64)
        if samples.shape[1] == 1:
            chosen = np.sort(np.argsort(samples[:, 0], kind="stable")[chosen])
        return samples[chosen]

    @shaped
    def compared(self, frame: Frame) -> Float[Array, "n d"]:
        """All samples, if they have the feature's width."""
        if self.samples.shape[1] != frame.bins.dimensions:
            raise TargetError(
                f"the samples have {self.samples.shape[1]} columns, the feature {frame.feature.name} has "
                f"{frame.bins.dimensions}"
            )
        return self.samples


@dataclass(frozen=True)
class Synthetic(Target):
    """Samples drawn from one distribution per feature dimension, ``horizon`` of them.

    The parts of a mixture follow one another in the listed order, as in the paper, unless ``shuffled``; those of
    several features go together either way.
    """

    parts: tuple[Distribution, ...]
    seed: int = 0
    shuffled: bool = False

    @property
    def name(self) -> str:
        """The expression that gives this target back."""
        text = str(self.parts[0]) if len(self.parts) == 1 else f"joint({', '.join(map(str, self.parts))})"
        return f"shuffled({text}, {self.seed})" if self.shuffled else text

    @shaped
    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """Draws, always the same for the same seed and horizon."""
        if len(self.parts) != frame.bins.dimensions:
            raise TargetError(
                f"{self.name} describes {len(self.parts)} features, {frame.feature.name} has "
                f"{frame.bins.dimensions}; write joint(A, B, ...) with one distribution for each"
            )
        rng = frame.rng(self.seed)
        columns = np.stack([part.sample(frame.horizon, rng) for part in self.parts], axis=1)
        return (rng.permutation(columns) if self.shuffled else columns).astype(np.float32)

    def alike(self, reached: NDArray[np.floating], frame: Frame) -> Target | None:
        """With the same weights, and other numbers in every component."""
        parts = tuple(part.fitted(column) for part, column in zip(self.parts, reached.T, strict=True))
        return replace(self, parts=parts)


@dataclass(frozen=True)
class Return(Target):
    """A total of the feature over the episode, or over its first ``within`` steps, earned evenly."""

    matches: ClassVar[Matches] = "return"
    totals: tuple[float, ...]
    within: int | None = None

    def __post_init__(self) -> None:
        _check_within(self.within)

    @property
    def name(self) -> str:
        """The expression that gives this target back."""
        return _whole_name("return", self.totals, self.within)

    @shaped
    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """The same share at every step."""
        steps = _steps_within(self, self.within, frame)
        return np.tile(self._row(self.totals, frame) / steps, (steps, 1))

    def alike(self, reached: NDArray[np.floating], frame: Frame) -> Target | None:
        """The mean of these, within as many steps."""
        return Return(tuple(map(rounded, reached.mean(axis=0).tolist())), self.within)


@dataclass(frozen=True)
class Goal(Target):
    """A feature value to end at, or to be at ``within`` so many steps: the episode then ends with these."""

    matches: ClassVar[Matches] = "goal"
    goal: tuple[float, ...]
    within: int | None = None

    def __post_init__(self) -> None:
        _check_within(self.within)

    @property
    def name(self) -> str:
        """The expression that gives this target back."""
        return _whole_name("goal", self.goal, self.within)

    @shaped
    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """The goal throughout; only the last row counts for a final-value statistic."""
        return np.tile(self._row(self.goal, frame), (_steps_within(self, self.within, frame), 1))

    def alike(self, reached: NDArray[np.floating], frame: Frame) -> Target | None:
        """The mean of these, within as many steps."""
        return Goal(tuple(map(rounded, reached.mean(axis=0).tolist())), self.within)


def _check_within(steps: int | None) -> None:
    if steps is not None and (not isinstance(steps, int | np.integer) or steps < 1):
        raise TargetError(f"within is a whole number of steps, one or more, got {steps}")


def _whole_name(word: str, numbers: tuple[float, ...], within: int | None) -> str:
    deadline = [] if within is None else [f"within={within}"]
    return f"{word}({', '.join([*map(number, numbers), *deadline])})"


def _steps_within(target: Target, within: int | None, frame: Frame) -> int:
    """Steps of the rollout: to the deadline, or to the horizon."""
    if within is not None and within > frame.horizon:
        raise TargetError(f"{target.name} goes beyond the horizon, which is {frame.horizon} steps")
    return within or frame.horizon


@dataclass(frozen=True, eq=False)
class Drawn(Target):
    """A histogram drawn by hand: weights over edges, one row per feature dimension.

    It becomes ``horizon`` values, as many in each bar as the weights say, spread evenly over it, in random order; those
    of several features are independent of one another.
    """

    edges: tuple[Array64, ...]
    weights: tuple[Array64, ...]
    text: str = "histogram"
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.weights) or not self.edges:
            raise TargetError("a drawn histogram needs one row of edges and one of weights per feature")
        for edges, weights in zip(self.edges, self.weights, strict=True):
            if len(edges) != len(weights) + 1 or not len(weights) or (np.diff(edges) <= 0).any():
                raise TargetError(
                    f"a drawn histogram needs rising edges, one more than weights; got {len(edges)} and {len(weights)}"
                )
            if not np.isfinite(edges).all() or not np.isfinite(weights).all() or (weights < 0).any():
                raise TargetError("a drawn histogram needs finite edges and weights that are not negative")
            if weights.sum() <= 0:
                raise TargetError("all weights of the drawn histogram are zero")

    @property
    def name(self) -> str:
        """Where it came from."""
        return self.text

    @shaped
    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """Values in proportion, shuffled."""
        if len(self.edges) != frame.bins.dimensions:
            raise TargetError(
                f"the drawn histogram has {len(self.edges)} rows, {frame.feature.name} has {frame.bins.dimensions}"
            )
        rng = frame.rng(self.seed)
        columns = []
        for edges, weights in zip(self.edges, self.weights, strict=True):
            counts = apportion(weights, frame.horizon)
            bars = zip(edges[:-1], np.diff(edges), counts.tolist(), strict=True)
            spread = [low + width * (np.arange(count) + 0.5) / count for low, width, count in bars if count]
            columns.append(rng.permutation(np.concatenate(spread)))
        return np.stack(columns, axis=1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Shifted(Target):
    """Another target with its values moved by a number of bin widths, before binning (Table shift_*)."""

    inner: Target
    bins: float

    def __post_init__(self) -> None:
        # Only distributions are shifted in the paper; a return or goal is shifted by saying another number.
        if self.inner.matches != "distribution":
            raise TargetError(f"cannot shift {self.inner.name}; give the number you mean instead", 0)

    @property
    def name(self) -> str:
        """The expression, as far as the inner target has one."""
        return f"shift({self.inner.name}, {number(self.bins)})"

    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """Moved values."""
        return self._moved(self.inner.values(frame), frame)

    def compared(self, frame: Frame) -> Float[Array, "n d"]:
        """Moved as well."""
        return self._moved(self.inner.compared(frame), frame)

    def alike(self, reached: NDArray[np.floating], frame: Frame) -> Target | None:
        """The same one, moved by as much as its mean is off; of one feature, for a shift is one number."""
        if frame.bins.dimensions > 1:
            return None
        moved = (reached.mean() - self.inner.compared(frame).mean()) / frame.bins.widths[0]
        return Shifted(self.inner, rounded(float(moved)))

    @shaped
    def _moved(self, values: Float[Array, "T d"], frame: Frame) -> Float[Array, "T d"]:
        return (values + self.bins * frame.bins.widths).astype(np.float32)

    @property
    def in_time(self) -> bool:
        """Where the inner target is."""
        return self.inner.in_time

    def stretches(self, frame: Frame) -> tuple[Target, ...]:
        """Moved as well."""
        return tuple(Shifted(part, self.bins) for part in self.inner.stretches(frame))


@dataclass(frozen=True, eq=False)
class Patched(Target):
    """The first part of one target and then the rest of another (the bi-modal targets of Table zvel).

    ``at`` is the step where the second takes over, half of the first by default.
    """

    first: Target
    second: Target
    at: int | None = None

    def __post_init__(self) -> None:
        if self.at is not None and self.at < 1:
            raise TargetError(f"the second target cannot take over at step {self.at}", 2)
        for i, part in enumerate((self.first, self.second)):
            if part.matches != "distribution":
                raise TargetError(f"cannot patch {part.name}; only distributions and demonstrations can be joined", i)

    @property
    def name(self) -> str:
        """The expression, as far as the inner targets have one."""
        at = "" if self.at is None else f", {self.at}"
        return f"patch({self.first.name}, {self.second.name}{at})"

    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """Values of the first up to ``at``, then those of the second from ``at`` on."""
        first, second = self.first.values(frame), self.second.values(frame)
        at = self._place(len(first), len(second))
        return np.concatenate([first[:at], second[at:]])

    def demonstration(self) -> Trajectory | None:
        """Both state sequences joined, if both targets have one."""
        first, second = self.first.demonstration(), self.second.demonstration()
        if first is None or second is None:
            return None
        at = self._place(len(first), len(second))
        return concatenate(first[:at], second[at:])

    @property
    def in_time(self) -> bool:
        """First one, then the other."""
        return True

    def _place(self, first: int, second: int) -> int:
        at = first // 2 if self.at is None else self.at
        if not 0 < at <= first or at >= second:
            raise TargetError(f"{self.name}: cannot switch at step {at} between targets of {first} and {second} steps")
        return at
