"""A value and the time until then: goals with a deadline (GCSL)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from himatch._runtime.shapes import Float, shaped
from himatch.errors import HimatchError
from himatch.statistics.aggregators.aggregator import Signs
from himatch.types import Array


@dataclass(frozen=True)
class TimedValue:
    """``z_t = (phi_T, (T - t) / scale)``: where the trajectory ends up, and in how many steps."""

    kind: ClassVar[str] = "timed_value"
    timed: ClassVar[bool] = True
    beyond: ClassVar[int] = 0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise HimatchError(f"the scale of the steps left must be positive, got {self.scale}")

    def fit(self, features: Iterable[Array]) -> TimedValue:
        """Nothing to learn."""
        return self

    def width(self, dimensions: int) -> int:
        """The feature, and the steps."""
        return dimensions + 1

    @shaped
    def __call__(self, phi: Float[Array, "T d"]) -> Float[Array, "T d+1"]:
        """The last row at every step, with the steps until then."""
        return self.kept(np.repeat(phi[-1:], len(phi), axis=0))

    @shaped
    def kept(self, phi: Float[Array, "T d"]) -> Float[Array, "T d+1"]:
        """Every step's own value, and the steps that follow it."""
        left = np.arange(len(phi) - 1, -1, -1, dtype=np.float32)[:, None] / np.float32(self.scale)
        return np.concatenate([phi, left], axis=1, dtype=np.float32)

    @staticmethod
    def signs(width: int) -> Signs:
        """The value of the later step; between both, the difference of the steps that follow them."""
        here, there = np.zeros(width, np.float32), np.ones(width, np.float32)
        here[-1], there[-1] = 1.0, -1.0
        return here, there

    def meaning(self, feature: str) -> str:
        """In words."""
        return f"{feature} at the end of the episode, and the steps until then, divided by {self.scale:g}"
