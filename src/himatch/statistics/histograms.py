"""Histograms of the rest for data larger than memory: counted when a window is cut instead of kept for every step.

``(steps, k)`` floats are the largest array of a training. Bins take a byte a step, and with counts at the end of every
block of steps any histogram is a sum over one block. Counts are whole numbers, so z is that of
:class:`~himatch.statistics.aggregators.Histogram` to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Float, Int, shaped
from himatch.statistics.aggregators import Histogram
from himatch.types import Array

BLOCK = 64  # steps: the counts of 31 bins then take as much room as the bins of the steps themselves
TOGETHER = 4096  # windows that are counted at once: what that takes stays in the processor's cache
LONGEST = 2**24  # steps of an episode: beyond, single precision does not hold every count

Allocate = Callable[[tuple[int, ...], np.dtype[Any]], NDArray[Any]]
"""Gives an array of that shape and type to fill, in memory or in a mapped file."""


class HistogramsOfRest:
    """``z_t`` of every step of a dataset, episode after episode, computed when rows are read: ``z[rows]``.

    Of every block of steps, ``places`` has the bins of its steps, and ``later`` how often each bin occurs after the
    block in the episode that goes on there.
    """

    def __init__(
        self, histogram: Histogram, features: Iterable[Array], lengths: NDArray[np.int64], allocate: Allocate
    ) -> None:
        self._histogram = histogram
        self.ends, self.bins = np.cumsum(lengths), histogram.bins
        self.shape = (int(lengths.sum()), histogram.width(self.bins.dimensions))
        self.lane = np.dtype(np.uint16 if lengths.max() < 2**16 else np.uint32)  # as Histogram counts
        place = np.dtype(np.uint8 if histogram.count <= 2**8 else np.int16)
        layout = np.dtype([("later", self.lane, (self.shape[1],)), ("places", place, (BLOCK, self.bins.dimensions))])
        # As a plain array: NumPy makes one of its own class of whatever is read from a mapped one.
        self.blocks = np.asarray(allocate((-(-self.shape[0] // BLOCK),), layout))
        self._columns = np.arange(self.bins.dimensions) * histogram.count
        start = 0
        for phi in features:
            self._add(start, self.bins.indices(phi))
            start += len(phi)

    def _add(self, start: int, indices: Int[NDArray[np.int16], "T d"]) -> None:
        """Take over an episode from row ``start`` on."""
        block, inside = np.divmod(np.arange(start, start + len(indices)), BLOCK)
        self.blocks["places"][block, inside] = indices
        first, last = int(block[0]), int(block[-1])
        flat = ((block - first) * self.shape[1])[:, None] + indices + self._columns
        counts = np.bincount(flat.ravel(), minlength=(last - first + 1) * self.shape[1]).reshape(-1, self.shape[1])
        # The last block's is the next episode's to say.
        self.blocks["later"][first:last] = np.cumsum(counts[:0:-1], axis=0)[::-1]

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All of it at once, for whoever has the memory."""
        return np.asarray(self[:], dtype=dtype)

    def __getitem__(self, key: slice | NDArray[np.int64]) -> Array:
        """Some rows. Of an index of several axes the last one is a window: rows in order, the last one repeated."""
        rows = np.arange(*key.indices(len(self))) if isinstance(key, slice) else np.asarray(key)
        windows = rows.reshape(-1, rows.shape[-1] if rows.ndim > 1 else 1)
        z = np.empty((*windows.shape, self.shape[1]), dtype=np.float32)
        for first in range(0, len(windows), TOGETHER):
            z[first : first + TOGETHER] = self._windows(windows[first : first + TOGETHER])
        return z.reshape(*rows.shape, self.shape[1])

    @shaped
    def _windows(self, rows: Int[NDArray[np.int64], "M N"]) -> Float[Array, "M N k"]:
        """Histograms for windows inside episodes: the counts after a window, then those of its steps from the last."""
        size, window = rows.shape
        steps, width = np.diff(rows, axis=1), self.shape[1]
        if ((steps != 0) & (steps != 1)).any():
            raise IndexError("the rows of a window must follow one another")
        ends = self.ends[np.searchsorted(self.ends, rows[:, -1], side="right")][:, None]
        lanes = 8 // self.lane.itemsize  # several counters are added at once, as in counts_of_rest
        counts = np.zeros((size, window, -(-width // lanes) * lanes), dtype=self.lane)
        columns = self.blocks["places"][rows // BLOCK, rows % BLOCK] + self._columns
        new = np.append(steps == 1, np.ones((size, 1), dtype=bool), axis=1)  # a row that is repeated counts once
        numbers, times = np.nonzero(new)
        counts[numbers[:, None], times[:, None], columns[numbers, times]] = 1
        counts[:, -1, :width] += self._after(rows[:, -1:], ends)
        words = counts.view(np.uint64)
        for time in range(window - 2, -1, -1):
            words[:, time] += words[:, time + 1]
        return self._histogram.of_counts(counts[..., :width], (ends - rows).astype(np.float32)[..., None])

    def _after(self, row: Int[NDArray[np.int64], "M 1"], end: Int[NDArray[np.int64], "M 1"]) -> NDArray[Any]:
        """How often each bin occurs after a row in its episode, ``(M, k)``."""
        start, width = row // BLOCK * BLOCK, self.shape[1]
        found, steps = self.blocks[start[:, 0] // BLOCK], np.arange(BLOCK)
        inside = (steps > row - start) & (steps < end - start)
        # What is not inside is counted in a column of its own: faster than to pick out what is.
        columns = np.where(inside[..., None], found["places"] + self._columns, width)
        flat = columns + (np.arange(len(row)) * (width + 1))[:, None, None]
        counts = np.bincount(flat.ravel(), minlength=len(row) * (width + 1)).reshape(-1, width + 1)[:, :width]
        later = np.where(end > start + BLOCK, found["later"], self.lane.type(0))
        return counts.astype(self.lane) + later
