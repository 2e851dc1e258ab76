"""Summation: the aggregator of the Decision Transformer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.errors import HimatchError
from himatch.statistics.aggregators.aggregator import check_gamma, discounted_by, discounted_sums
from himatch.types import Array


@dataclass(frozen=True)
class DiscountedSum:
    """``z_t = sum_i gamma^i phi_{t+i} / scale``; DT divides by the horizon so that z stays near one."""

    kind: ClassVar[str] = "sum"
    gamma: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        if not self.scale > 0:
            raise HimatchError(f"the scale of a sum must be positive, got {self.scale}")

    def fit(self, features: Iterable[Array]) -> DiscountedSum:
        """Nothing to learn."""
        return self

    def width(self, dimensions: int) -> int:
        """One sum per feature."""
        return dimensions

    @shaped
    def __call__(self, phi: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """Sums of the rest."""
        return (discounted_sums(phi, self.gamma) / self.scale).astype(np.float32)

    def meaning(self, feature: str) -> str:
        """In words."""
        return f"sum of {feature} over the rest of the episode{discounted_by(self.gamma)}, divided by {self.scale:g}"

    @shaped
    def contributions(self, phi: Float[NDArray[np.floating], "T d"]) -> Float[Array64, "T d"]:
        """The feature itself."""
        return np.asarray(phi, dtype=np.float64)

    @shaped
    def of_total(self, total: Float[Array64, "*rows k"], steps: Float[Array64, "*rows 1"]) -> Float[Array64, "*rows k"]:
        """The total, scaled; more than all may have been earned."""
        return total / self.scale
