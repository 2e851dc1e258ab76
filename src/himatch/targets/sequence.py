"""Targets that follow one another: ``normal(4,1) for 500 then normal(10,1)``."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Float, shaped
from himatch.errors import TargetError
from himatch.targets.target import Frame, Target
from himatch.types import Array, Trajectory, concatenate


@dataclass(frozen=True)
class Lasting(Target):
    """A target laid out in so many steps, whole: a mixture has all its parts in them, an episode gives its first."""

    inner: Target
    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise TargetError(f"{self.inner.name} cannot last {self.steps} steps; it takes one or more", 1)
        _check_part(self.inner)
        shown = self.inner.demonstration()
        if shown is not None:
            self._check_length(len(shown))

    @property
    def name(self) -> str:
        """The expression, as far as the inner target has one."""
        nested = isinstance(self.inner, Lasting | Successive)
        return f"({self.inner.name}) for {self.steps}" if nested else f"{self.inner.name} for {self.steps}"

    @shaped
    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """The inner target's, as if the horizon came after these steps."""
        if self.steps > frame.horizon:
            raise TargetError(f"{self.name} goes beyond the horizon, which is {frame.horizon} steps")
        found = self.inner.values(replace(frame, horizon=self.steps))
        self._check_length(len(found))
        return found[: self.steps]

    def alike(self, reached: NDArray[np.floating], frame: Frame) -> Target | None:
        """The inner one's, for as many steps."""
        found = self.inner.alike(reached, replace(frame, horizon=self.steps))
        return None if found is None else Lasting(found, self.steps)

    def demonstration(self) -> Trajectory | None:
        """The first steps of the inner one."""
        shown = self.inner.demonstration()
        return None if shown is None else shown[: self.steps]

    @property
    def task(self) -> tuple[float, ...] | None:
        """That of the inner target."""
        return self.inner.task

    @property
    def in_time(self) -> bool:
        """Where the inner target is."""
        return self.inner.in_time

    def stretches(self, frame: Frame) -> tuple[Target, ...]:
        """Those of the inner target."""
        within = replace(frame, horizon=self.steps)
        inner = self.inner.stretches(within)
        if len(inner) == 1:
            return (self,)
        self._check_length(sum(len(one.values(within)) for one in inner))
        return inner

    def _check_length(self, steps: int) -> None:
        if steps < self.steps:
            raise TargetError(f"{self.inner.name} has {steps} steps, and is to last {self.steps}", 1)


@dataclass(frozen=True)
class Successive(Target):
    """Targets one after another, each for its own steps; the last one may go on until the horizon, or its own end."""

    parts: tuple[Target, ...]

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise TargetError("two targets or more can follow one another")
        for number, part in enumerate(self.parts):
            _check_part(part, number)
            if number < len(self.parts) - 1 and not isinstance(part, Lasting):
                raise TargetError(f"nothing says for how many steps {part.name} lasts before the next", number)

    @property
    def name(self) -> str:
        """The expression, as far as the parts have one."""
        return " then ".join(f"({p.name})" if isinstance(p, Successive) else p.name for p in self.parts)

    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """Those of every stretch, in turn."""
        return np.concatenate([part.values(frame) for part in self.stretches(frame)])

    def demonstration(self) -> Trajectory | None:
        """All state sequences joined, if every part has one."""
        shown = [part.demonstration() for part in self.parts]
        joined = shown[0]
        for following in shown[1:]:
            joined = None if joined is None or following is None else concatenate(joined, following)
        return joined

    @property
    def in_time(self) -> bool:
        """First one, then the next."""
        return True

    def stretches(self, frame: Frame) -> tuple[Target, ...]:
        """The parts, each with its steps; the last gets what is left."""
        found: list[Target] = []
        left = frame.horizon
        for part in self.parts:
            rest = replace(frame, horizon=left)
            if left and not isinstance(part, Lasting):
                part = Lasting(part, min(left, len(part.values(rest))))
            if not isinstance(part, Lasting) or part.steps > left:
                raise TargetError(f"{self.name} goes beyond the horizon, which is {frame.horizon} steps")
            left -= part.steps
            found += part.stretches(rest)
        return tuple(found)


def _check_part(part: Target, argument: int = 0) -> None:
    if part.matches != "distribution":
        raise TargetError(f"{part.name} is of a whole episode, and cannot last for a part of one", argument)
