"""Equal bins over a feature's range: how a distribution becomes a vector and back (Appendix "Details for CDT")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch._runtime.shapes import Array64, Float, Int, shaped
from himatch.errors import DataError, HimatchError
from himatch.statistics.fences import Fences, Sample

PAPER_BINS = 31  # Table dt_hyper
_FARTHEST = 2.0**62  # cells from the range; further than that, integers end
MOST_BINS = int(np.iinfo(np.int16).max)  # indices are kept for every step of the data


@dataclass(frozen=True)
class Bins:
    """``count`` equal bins from ``low`` to ``high`` in each of ``d`` feature dimensions.

    Values outside the range fall into the end bins of every z and of the paper's W1. Distances that must tell how far
    outside use :meth:`cells`, which go on beyond the range.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    count: int = PAPER_BINS

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", tuple(float(x) for x in self.low))
        object.__setattr__(self, "high", tuple(float(x) for x in self.high))
        if not 1 <= self.count <= MOST_BINS:
            raise HimatchError(f"a histogram needs at least one bin and at most {MOST_BINS}, got {self.count}")
        if len(self.low) != len(self.high) or not self.low:
            raise HimatchError(f"bins need one low and one high per dimension, got {self.low} and {self.high}")
        if not np.all(np.isfinite(self.low + self.high)) or any(
            a >= b for a, b in zip(self.low, self.high, strict=True)
        ):
            raise HimatchError(f"every bin range must be finite with low < high, got {self.low} to {self.high}")

    @classmethod
    def fit(cls, features: Iterable[NDArray[np.floating]], count: int = PAPER_BINS, *, fenced: bool = False) -> Bins:
        """Span the minimum to the maximum of all rows of all ``(T, d)`` arrays, as the paper does.

        ``fenced`` leaves out extreme values (:mod:`himatch.statistics.fences`): one bad reading, or a number that marks
        missing ones, would put all others into a single bin. Where no value is extreme the bins are the same.
        """
        if fenced and isinstance(features, Iterator):
            features = list(features)  # they may be looked at twice
        lows: list[NDArray[np.floating]] = []
        highs: list[NDArray[np.floating]] = []
        sample = Sample()
        for episode, phi in enumerate(features):
            if lows and phi.shape[1:] != lows[0].shape:
                raise DataError(
                    f"the feature has width {lows[0].size} in episode 0 and {phi.shape[1]} in episode {episode}; it "
                    "must have the same in all of them"
                )
            lows.append(phi.min(axis=0))
            highs.append(phi.max(axis=0))
            if fenced:
                sample.add(phi)
        if not lows:
            raise HimatchError("bins cannot be fitted to an empty dataset")
        low, high = np.min(lows, axis=0).astype(np.float64), np.max(highs, axis=0).astype(np.float64)
        if fenced:
            fences = Fences(sample.rows)
            if fences.passed_by(low, high):
                for phi in features:
                    fences.add(phi)
                low, high = fences.usual
        # A constant feature still needs a range; the same convention as numpy.histogram. The width also has to
        # survive rounding where the constant is huge.
        slack = np.where(high - low > np.spacing(np.abs(high)) * count, 0.0, np.maximum(0.5, np.abs(high) * 1e-6))
        return cls(tuple(low - slack), tuple(high + slack), count)

    @property
    def dimensions(self) -> int:
        """How many feature dimensions are binned."""
        return len(self.low)

    @property
    @shaped
    def widths(self) -> Float[Array64, " d"]:
        """Width of one bin in each dimension, in feature units."""
        widths: Array64 = (np.array(self.high) - np.array(self.low)) / self.count
        return widths

    @property
    @shaped
    def centers(self) -> Float[Array64, "d {self.count}"]:
        """Bin representatives."""
        steps = np.arange(self.count) + 0.5
        return np.array(self.low)[:, None] + self.widths[:, None] * steps

    @property
    @shaped
    def edges(self) -> Float[Array64, "d {self.count}+1"]:
        """Bin edges."""
        return np.linspace(self.low, self.high, self.count + 1, axis=1)

    @shaped
    def indices(self, phi: ArrayLike) -> Int[NDArray[np.int16], "T d"]:
        """Bin of every value, in ``[0, count)``, for ``(T, d)`` features."""
        values = np.asarray(phi, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != self.dimensions:
            raise HimatchError(f"expected features of shape (T, {self.dimensions}), got {values.shape}")
        position = values - np.array(self.low)
        position /= self.widths
        np.clip(position, 0, self.count - 1, out=position)
        indices: NDArray[np.int16] = position.astype(np.int16)
        return indices

    @shaped
    def histogram(self, phi: ArrayLike) -> Float[Array64, "d {self.count}"]:
        """Marginal distributions of ``(T, d)`` features; each row sums to one."""
        indices = self.indices(phi)
        counts = [np.bincount(column, minlength=self.count) for column in indices.T]
        return np.asarray(counts, dtype=np.float64) / len(indices)

    @shaped
    def cells(self, phi: ArrayLike) -> Int[NDArray[np.int64], "T d"]:
        """Bin of every value where bins of the same widths go on beyond the range: below 0, and from ``count`` on."""
        clipped = self.indices(phi)
        values = np.asarray(phi, dtype=np.float64)
        beyond = np.floor((values - np.array(self.low)) / self.widths)
        outside = (values < np.array(self.low)) | (values > np.array(self.high))
        return np.where(outside, np.clip(beyond, -_FARTHEST, _FARTHEST).astype(np.int64), clipped)

    def narrowed(self, start: Float[Array64, " d"], widths: Float[Array64, " d"]) -> Bins:
        """The bins, or where they are more than twice as wide those from ``start``; for :meth:`cells`, which go on."""
        kept = self.widths <= 2 * widths
        low, high = np.where(kept, self.low, start), np.where(kept, self.high, start + self.count * widths)
        return Bins(tuple(low), tuple(high), self.count)

    @shaped
    def joint(self, phi: ArrayLike) -> tuple[Float[Array64, "n d"], Float[Array64, " n"]]:
        """Occupied cells of the joint histogram of ``(T, d)`` features: their centres and weights."""
        cells, counts = np.unique(self.indices(phi), axis=0, return_counts=True)
        points = np.array(self.low) + (cells + 0.5) * self.widths
        return points, counts / counts.sum()
