"""Targets of features by name, and with bounds: ``x_velocity ~ normal(3,1) & height > 1.1``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Float, shaped
from himatch.errors import TargetError
from himatch.statistics.bins import Bins
from himatch.statistics.features import Feature
from himatch.targets.bound import Bound, quoted
from himatch.targets.sequence import Lasting
from himatch.targets.target import Frame, Samples, Target
from himatch.types import Array, Trajectory


@dataclass(frozen=True)
class OfFeatures(Target):
    """A target for each feature that is matched, by name and in any order.

    Of one feature it is the target itself. Those of several are laid out side by side and last as long as the shortest.
    """

    parts: tuple[tuple[str, Target], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.parts]
        for number, (name, part) in enumerate(self.parts):
            if name in names[:number]:
                raise TargetError(f"{name} has a target already", number)
            if len(names) > 1 and part.matches != "distribution":
                raise TargetError(f"{part.name} is no distribution, and only these go with those of others", number)
        object.__setattr__(self, "matches", self.parts[0][1].matches)

    @property
    def name(self) -> str:
        """The expression, as far as the parts have one."""
        return " & ".join(f"{quoted(name)} ~ {part.name}" for name, part in self.parts)

    @shaped
    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """A column for each feature, in the order of the matched one's."""
        own = self._in_order(frame)
        columns = [part.values(alone) for part, alone in own]
        steps = min(map(len, columns))
        for i, (part, alone) in enumerate(own):
            if len(columns[i]) > steps:
                columns[i] = Lasting(part, steps).values(alone)
        return np.concatenate(columns, axis=1)

    def compared(self, frame: Frame) -> Float[Array, "n d"]:
        """Of one feature all that is known of it."""
        if len(self.parts) > 1:
            return self.values(frame)
        ((part, alone),) = self._in_order(frame)
        return part.compared(alone)

    def alike(self, reached: NDArray[np.floating], frame: Frame) -> Target | None:
        """One for each feature, by its own column."""
        found = [part.alike(reached[:, [alone.column]], alone) for part, alone in self._in_order(frame)]
        names = [alone.feature.name for _, alone in self._in_order(frame)]
        parts = tuple((name, one) for name, one in zip(names, found, strict=True) if one is not None)
        return OfFeatures(parts) if len(parts) == len(found) else None

    def demonstration(self) -> Trajectory | None:
        """That of one feature's; several show no episode together."""
        return self.parts[0][1].demonstration() if len(self.parts) == 1 else None

    @property
    def task(self) -> tuple[float, ...] | None:
        """That of one feature's; of several each would be a part of it, and their values say as much."""
        return self.parts[0][1].task if len(self.parts) == 1 else None

    @property
    def in_time(self) -> bool:
        """Where one of them is."""
        return any(part.in_time for _, part in self.parts)

    def stretches(self, frame: Frame) -> tuple[Target, ...]:
        """A new one begins wherever one of the features has a new one."""
        own = self._in_order(frame)
        if len(own) == 1:
            return own[0][0].stretches(frame)
        borders: set[int] = set()
        for part, alone in own:
            lengths = [len(stretch.values(alone)) for stretch in part.stretches(alone)]
            borders |= set(np.cumsum(lengths)[:-1].tolist())
        if not borders:
            return (self,)
        values = self.values(frame)
        rows = np.split(values, sorted(border for border in borders if border < len(values)))
        return tuple(Samples(some, self.name, len(some)) for some in rows)

    def _in_order(self, frame: Frame) -> list[tuple[Target, Frame]]:
        """The target of every matched feature, with a frame of this feature alone."""
        given, feature, bins = dict(self.parts), frame.feature, frame.bins
        if list(given) == [feature.name]:
            return [(self.parts[0][1], frame)]
        names = feature.names(bins.dimensions)
        others, lacking = [n for n in given if n not in names], [n for n in names if n not in given]
        if others or lacking:
            what = f"{others[0]!r} is not among them" if others else f"{lacking[0]!r} is missing"
            raise TargetError(
                f"what is matched here is {', '.join(names)}, each to be named once with ~: {what}; features beside "
                "these can have bounds, such as NAME > 1"
            )
        alone = [
            Frame(FeatureColumn(feature, i, name), Bins((low,), (high,), bins.count), frame.horizon, i)
            for i, (name, low, high) in enumerate(zip(names, bins.low, bins.high, strict=True))
        ]
        return [(given[name], one) for name, one in zip(names, alone, strict=True)]


@dataclass(frozen=True)
class FeatureColumn:
    """One column of a feature, as a feature."""

    feature: Feature
    column: int
    name: str

    def names(self, width: int) -> tuple[str, ...]:
        """Its own."""
        return (self.name,)

    @shaped
    def __call__(self, trajectory: Trajectory) -> Float[Array, "T 1"]:
        """That column."""
        return self.feature(trajectory)[:, [self.column]]


@dataclass(frozen=True)
class Bounded(Target):
    """A target with bounds on features of the task. They do not condition a policy: rollouts are scored on them."""

    inner: Target
    limits: tuple[Bound, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "matches", self.inner.matches)

    @property
    def name(self) -> str:
        """The expression, as far as the inner target has one."""
        return " & ".join([self.inner.name, *map(str, self.limits)])

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Its own, after those of the inner target."""
        return (*self.inner.bounds, *self.limits)

    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """The inner target's, as all that follows."""
        return self.inner.values(frame)

    def compared(self, frame: Frame) -> Float[Array, "n d"]:
        """The inner target's."""
        return self.inner.compared(frame)

    def alike(self, reached: NDArray[np.floating], frame: Frame) -> Target | None:
        """The inner target's; the bounds stay."""
        found = self.inner.alike(reached, frame)
        return None if found is None else Bounded(found, self.limits)

    def demonstration(self) -> Trajectory | None:
        """The inner target's."""
        return self.inner.demonstration()

    @property
    def task(self) -> tuple[float, ...] | None:
        """The inner target's."""
        return self.inner.task

    @property
    def in_time(self) -> bool:
        """Where the inner target is."""
        return self.inner.in_time

    def stretches(self, frame: Frame) -> tuple[Target, ...]:
        """The inner target's."""
        return self.inner.stretches(frame)
