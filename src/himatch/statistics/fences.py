"""Fences: between which values a feature usually lies, and beyond which one is a fault of the log rather than data.

One 9999 among 71,000 rows would stretch 31 bins so far that all the others fall into one of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64, Float, shaped

OUTER, REACH = 0.005, 3.0  # a fence is so many spans of the values between the outer parts beyond them
SENTINELS, GAP = 0.05, 10.0  # at most this part of the values, so many ranges of the others away from them
FEWEST = 20  # of fewer values none is unusual
SAMPLE, RUN = 200_000, 1000  # values that quantiles are estimated from, in runs that lie together in a file

Rows = NDArray[np.int64]


@shaped
def fences(values: Float[NDArray[np.floating], "n d"]) -> tuple[Float[Array64, " d"], Float[Array64, " d"]]:
    """The smallest and the largest value of each column that are not extreme: minimum and maximum where none is."""
    low, high = bounds(values[sample_rows(len(values))])
    inside = (values >= low) & (values <= high)
    return (
        np.where(inside, values, np.inf).min(axis=0).astype(np.float64),
        np.where(inside, values, -np.inf).max(axis=0).astype(np.float64),
    )


@shaped
def bounds(sample: Float[NDArray[np.floating], "n d"]) -> tuple[Float[Array64, " d"], Float[Array64, " d"]]:
    """Beyond which numbers a value of each column is extreme; infinite where none would be."""
    found = [_column_bounds(np.sort(np.ascontiguousarray(column)).astype(np.float64)) for column in sample.T]
    low, high = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return low, high


def sample_rows(count: int) -> Rows:
    """Rows to estimate quantiles from: all, or runs of them that are spread evenly."""
    if count <= SAMPLE:
        return np.arange(count)
    starts = np.linspace(0, count - RUN, SAMPLE // RUN).astype(np.int64)
    return (starts[:, None] + np.arange(RUN)).ravel()


class Sample:
    """Every so many-th row of what is added bit by bit: no more than twice :data:`SAMPLE`, however many there are."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.floating]] = []
        self._kept, self._step, self._skip = 0, 1, 0

    def add(self, rows: Float[NDArray[np.floating], "n d"]) -> None:
        """Take what is due of some rows."""
        taken = rows[self._skip :: self._step].copy()  # a view would keep all of them
        self._skip = (self._skip - len(rows)) % self._step
        self._parts.append(taken)
        self._kept += len(taken)
        if self._kept > 2 * SAMPLE:
            self._parts = [self.rows[::2].copy()]
            self._kept, self._step = len(self._parts[0]), 2 * self._step
            self._skip %= self._step

    @property
    def rows(self) -> Float[NDArray[np.floating], "n d"]:
        """What was taken."""
        return np.concatenate(self._parts)


def _column_bounds(ordered: Array64) -> tuple[float, float]:
    """The bounds of one column, whose values are sorted."""
    if len(ordered) < FEWEST:
        return -np.inf, np.inf
    first, last = _without_sentinels(ordered)
    usual = ordered[first:last]
    rest = usual[len(usual) // 2]
    others = usual[usual != rest]
    if 2 * len(others) >= len(usual):
        outer = max(1, int(OUTER * len(usual)))  # at least one on each side: of few values an outlier is an outer one
        low, high = usual[outer], usual[-1 - outer]
        return low - REACH * (high - low), high + REACH * (high - low)
    # Most are the same, as of a contact sensor, and the rare values are what it tells. Only among these is one odd.
    low, high = _column_bounds(others)
    if first > 0 and low == -np.inf:  # without a span of the others, a sentinel is what lies across its gap
        low = (ordered[first - 1] + usual[0]) / 2
    if last < len(ordered) and high == np.inf:
        high = (ordered[last] + usual[-1]) / 2
    return min(low, rest), max(high, rest)


def _without_sentinels(ordered: Array64) -> tuple[int, int]:
    """From where to where the values go on without a gap that only a sentinel, such as -999, explains."""
    most = int(SENTINELS * len(ordered))
    if most == 0:
        return 0, len(ordered)
    first, last = most, len(ordered) - most  # what lies between is no sentinel
    upper, lower = ordered[last - 1 :], ordered[: first + 1]
    far_above = _far(np.diff(upper), upper[:-1] - ordered[first])
    far_below = _far(np.diff(lower)[::-1], ordered[last - 1] - lower[1:][::-1])
    return (
        0 if far_below is None else first - far_below,
        len(ordered) if far_above is None else last + far_above,
    )


def _far(gaps: Array64, ranges: Array64) -> int | None:
    """The first gap that is many times the range of the values before it, of which there are at least two."""
    far = np.flatnonzero((ranges > 0) & (gaps > GAP * ranges))
    return int(far[0]) if len(far) else None
