"""Counting: the aggregator of the Categorical Decision Transformer as its authors' code has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.errors import HimatchError
from himatch.statistics.aggregators.aggregator import discounted_by
from himatch.statistics.aggregators.histogram import Histogram
from himatch.types import Array


@dataclass(frozen=True)
class Counts(Histogram):
    """Steps of the rest in each bin: ``z_t = (onehot(phi_t) + gamma z_{t+1}) / scale``.

    What a histogram says and how much time is left. Divided by the horizon it begins as the histogram does.
    """

    kind: ClassVar[str] = "counts"
    timed: ClassVar[bool] = True
    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.scale > 0:
            raise HimatchError(f"the scale of counts must be positive, got {self.scale}")

    def of_counts(self, counts: NDArray[np.number], steps: Float[NDArray[np.floating], "*rows 1"]) -> Array:
        """The counts themselves, scaled."""
        z: Array = np.divide(counts, self.scale).astype(np.float32)
        return z

    @shaped
    def of_total(self, total: Float[Array64, "*rows k"], steps: Float[Array64, "*rows 1"]) -> Float[Array64, "*rows k"]:
        """What is left of the counts, scaled; where nothing is left they are zero."""
        return np.maximum(total, 0.0) / self.scale

    def meaning(self, feature: str) -> str:
        """In words."""
        return (
            f"steps of the rest of the episode in each bin of {feature}{discounted_by(self.gamma)}, divided by "
            f"{self.scale:g}: {self.described_bins}"
        )
