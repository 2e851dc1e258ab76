"""The last value: goal-conditioned policies (HER, GCSL, play)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.statistics.aggregators.aggregator import Signs
from himatch.types import Array


@dataclass(frozen=True)
class FinalValue:
    """``z_t = phi_T``: where the trajectory ends up."""

    kind: ClassVar[str] = "final"
    beyond: ClassVar[int] = 0

    def fit(self, features: Iterable[Array]) -> FinalValue:
        """Nothing to learn."""
        return self

    def width(self, dimensions: int) -> int:
        """The feature itself."""
        return dimensions

    @shaped
    def __call__(self, phi: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """The last row at every step."""
        return np.repeat(phi[-1:], len(phi), axis=0)

    def kept(self, phi: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """Every step's own value."""
        return phi

    @staticmethod
    def signs(width: int) -> Signs:
        """The value of the later step."""
        return np.zeros(width, np.float32), np.ones(width, np.float32)

    def meaning(self, feature: str) -> str:
        """In words."""
        return f"{feature} at the end of the episode"

    @shaped
    def contributions(self, phi: Float[NDArray[np.floating], "T d"]) -> Float[Array64, "T d"]:
        """Nothing: a goal is not used up on the way to it."""
        return np.zeros(phi.shape)

    @shaped
    def of_total(self, total: Float[Array64, "*rows k"], steps: Float[Array64, "*rows 1"]) -> Float[Array64, "*rows k"]:
        """Nothing that remains, so that the goal itself stays the conditioning."""
        return np.full_like(total, np.nan)
