"""The last value: goal-conditioned policies (HER, GCSL, play)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from himatch.types import Array


@dataclass(frozen=True)
class FinalValue:
    """``z_t = phi_T``: where the trajectory ends up."""

    kind: ClassVar[str] = "final"

    def fit(self, features: Iterable[Array]) -> FinalValue:
        """Nothing to learn."""
        return self

    def width(self, dimensions: int) -> int:
        """The feature itself."""
        return dimensions

    def __call__(self, phi: Array) -> Array:
        """The last row at every step, ``(T, d)``."""
        return np.repeat(phi[-1:], len(phi), axis=0)

    def meaning(self, feature: str) -> str:
        """In words."""
        return f"{feature} at the end of the episode"

    def contributions(self, phi: NDArray[np.floating]) -> NDArray[np.float64]:
        """Nothing: a goal is not used up on the way to it."""
        return np.zeros(phi.shape)

    def of_total(self, total: NDArray[np.float64], steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nothing that remains, so that the goal itself stays the conditioning."""
        return np.full_like(total, np.nan)
