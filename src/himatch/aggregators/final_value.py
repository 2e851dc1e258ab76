"""The last value: goal-conditioned policies (HER, GCSL, play)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

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
