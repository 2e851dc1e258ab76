"""Binning: the aggregator of the Categorical Decision Transformer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64, Float, Int, UInt, shaped
from himatch.errors import HimatchError
from himatch.statistics.aggregators.aggregator import check_gamma, discounted_by, discounted_counts, discounted_sums
from himatch.statistics.bins import PAPER_BINS, Bins
from himatch.types import Array


@dataclass(frozen=True)
class Histogram:
    """Distribution of the rest: ``z_t`` proportional to ``onehot(phi_t) + gamma z_{t+1}``, each row sums to one.

    Several features are binned separately, side by side: ``k = d * bins``. ``fenced`` bins end where the usual values
    do; the paper's go from the minimum to the maximum.
    """

    kind: ClassVar[str] = "histogram"
    count: int = PAPER_BINS
    gamma: float = 1.0
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    fenced: bool = True

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        if self.count < 1:
            raise HimatchError(f"a histogram needs at least one bin, got {self.count}")
        object.__setattr__(self, "low", tuple(self.low))
        object.__setattr__(self, "high", tuple(self.high))

    @cached_property
    def bins(self) -> Bins:
        """The fitted bins."""
        if not self.low:
            raise HimatchError("this histogram has no range yet; fit it to training data first")
        return Bins(self.low, self.high, self.count)

    def fit(self, features: Iterable[Array]) -> Histogram:
        """Span the training data, unless a range was given."""
        if self.low:
            return self
        bins = Bins.fit(features, self.count, fenced=self.fenced)
        return replace(self, low=bins.low, high=bins.high)

    def width(self, dimensions: int) -> int:
        """One weight per bin and feature."""
        return dimensions * self.count

    @shaped
    def __call__(self, phi: Float[Array, "T d"]) -> Float[Array, "T d*{self.count}"]:
        """Normalised histograms of the rest."""
        places, width = self._places(phi), self.width(phi.shape[1])
        if self.gamma == 1.0:
            remaining = np.arange(len(places), 0, -1, dtype=np.float32)[:, None]
            return self.of_counts(counts_of_rest(places, width), remaining)
        weights = discounted_sums(self.contributions(phi), self.gamma)
        return self.of_counts(weights, discounted_counts(len(places), self.gamma))

    def of_counts(self, counts: NDArray[np.number], steps: Float[NDArray[np.floating], "*rows 1"]) -> Array:
        """The statistic of so many steps, or such a weight of them, with those counts in the bins."""
        z: Array = np.divide(counts, steps, dtype=steps.dtype).astype(np.float32, copy=False)
        return z

    def meaning(self, feature: str) -> str:
        """In words."""
        return (
            f"distribution of {feature} over the rest of the episode{discounted_by(self.gamma)}: shares in "
            f"{self.described_bins}"
        )

    @property
    def described_bins(self) -> str:
        """The bins in words."""
        ranges = ", ".join(f"{a:.9g} to {b:.9g}" for a, b in zip(self.bins.low, self.bins.high, strict=True))
        return f"{self.count} equal bins from {ranges}, what lies outside in the end bins"

    @shaped
    def contributions(self, phi: Float[NDArray[np.floating], "T d"]) -> Float[Array64, "T d*{self.count}"]:
        """A count in the bin of each feature."""
        places = self._places(phi)
        counts = np.zeros((len(places), self.width(places.shape[1])))
        counts[np.arange(len(places))[:, None], places] = 1.0
        return counts

    @shaped
    def of_total(self, total: Float[Array64, "*rows k"], steps: Float[Array64, "*rows 1"]) -> Float[Array64, "*rows k"]:
        """Counts normalised for each feature; a bin that was visited too often is empty, not less."""
        counts = np.maximum(total, 0.0).reshape(*total.shape[:-1], -1, self.count)
        mass = counts.sum(axis=-1, keepdims=True)
        shares: NDArray[np.float64] = counts / np.where(mass > 0, mass, np.nan)
        return shares.reshape(total.shape)

    def _places(self, phi: Float[NDArray[np.floating], "T d"]) -> Int[NDArray[np.int64], "T d"]:
        """The column of every value's bin."""
        indices = self.bins.indices(phi)
        return indices + np.arange(indices.shape[1]) * self.count


@shaped
def counts_of_rest(
    places: Int[NDArray[np.integer], "T d"], width: int
) -> UInt[NDArray[np.unsignedinteger], "T {width}"]:
    """How often each of ``width`` places occurs from step t on.

    A cumulative sum is bound by the latency of one addition after another. Several counters are therefore packed side
    by side into one 64-bit word and summed at once; none can overflow into its neighbour, for none exceeds T.
    """
    steps = len(places)
    lane = np.dtype(np.uint16 if steps < 2**16 else np.uint32)
    lanes = 8 // lane.itemsize
    counts = np.zeros((steps, -(-width // lanes) * lanes), dtype=lane)
    counts[np.arange(steps)[:, None], places] = 1
    words = counts.view(np.uint64)[::-1]
    np.cumsum(words, axis=0, out=words)
    return counts[:, :width]
