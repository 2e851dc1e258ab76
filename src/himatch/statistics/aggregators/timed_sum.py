"""A sum and the steps in which it is earned: commands of upside-down reinforcement learning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.errors import HimatchError
from himatch.statistics.aggregators.aggregator import Signs, discounted_sums
from himatch.types import Array


@dataclass(frozen=True)
class TimedSum:
    """``z_t = (sum_i phi_{t+i}, T - t + 1) / scale``: what is earned from here on, and in how many steps."""

    kind: ClassVar[str] = "timed_sum"
    timed: ClassVar[bool] = True
    beyond: ClassVar[int] = 1
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise HimatchError(f"the scale of a sum must be positive, got {self.scale}")

    def fit(self, features: Iterable[Array]) -> TimedSum:
        """Nothing to learn."""
        return self

    def width(self, dimensions: int) -> int:
        """One sum per feature, and the steps."""
        return dimensions + 1

    @shaped
    def __call__(self, phi: Float[Array, "T d"]) -> Float[Array, "T d+1"]:
        """Sums of the rest, of each episode by itself and in double precision, and its steps."""
        steps = np.arange(len(phi), 0, -1, dtype=np.float64)[:, None]
        return (np.concatenate([discounted_sums(phi, 1.0), steps], axis=1) / self.scale).astype(np.float32)

    def kept(self, phi: Float[Array, "T d"]) -> Float[Array, "T d+1"]:
        """The sums of the rest: those of a stretch are their differences."""
        return self(phi)

    @staticmethod
    def signs(width: int) -> Signs:
        """What is earned from the earlier step on, less what is earned behind the later one."""
        return np.ones(width, np.float32), -np.ones(width, np.float32)

    def meaning(self, feature: str) -> str:
        """In words."""
        return f"sum of {feature} over the rest of the episode, and its steps, both divided by {self.scale:g}"

    @shaped
    def contributions(self, phi: Float[NDArray[np.floating], "T d"]) -> Float[Array64, "T d"]:
        """The feature itself."""
        return np.asarray(phi, dtype=np.float64)

    @shaped
    def of_total(
        self, total: Float[Array64, "*rows d"], steps: Float[Array64, "*rows 1"]
    ) -> Float[Array64, "*rows d+1"]:
        """The total and the steps, scaled; more than all may have been earned, but no time is left twice."""
        left = np.broadcast_to(np.maximum(steps, 0.0), (*total.shape[:-1], 1))
        return np.concatenate([total, left], axis=-1) / self.scale
