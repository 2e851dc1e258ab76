"""A task by its parameter: ``task(1.5)``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Float, shaped
from himatch.targets.distribution import number, rounded
from himatch.targets.target import Frame, Target
from himatch.types import Array


@dataclass(frozen=True)
class ServedTask(Target):
    """The task with that parameter, which is what it asks the matched feature to be: all rewards are highest there."""

    parameter: tuple[float, ...]

    @property
    def name(self) -> str:
        """The expression that gives this target back."""
        return f"task({','.join(map(number, self.parameter))})"

    @property
    def task(self) -> tuple[float, ...]:
        """The parameter."""
        return self.parameter

    @shaped
    def values(self, frame: Frame) -> Float[Array, "T d"]:
        """What the task asks for, at every step."""
        return np.tile(self._row(self.parameter, frame), (frame.horizon, 1))

    def alike(self, reached: NDArray[np.floating], frame: Frame) -> Target | None:
        """The task that values serve best by their distance."""
        return ServedTask(tuple(map(rounded, np.median(reached, axis=0).tolist())))
