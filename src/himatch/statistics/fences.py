"""Fences: between which values a feature usually lies, and beyond which one is a fault of the log rather than data.

One 9999 among 71,000 rows would stretch 31 bins so far that all the others fall into one of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64, Float, shaped

OUTER, REACH = 0.005, 3.0  # a fence is so many spans of the values between the outer parts beyond them
ALONE = 3.0  # spans between a value beyond a fence and the next one; nearer ones are rare, not wrong
SENTINELS, GAP = 0.05, 10.0  # at most this part of the values, so many ranges of the others away from them
MARKED, REPEATED = 0.3, 10  # up to this part, if they are few numbers that each come so often: -999 for a missing value
FEWEST = 20  # of fewer values none is unusual
CORE, SPIKES = 0.125, 0.11  # spikes are at most the latter part of the values, beside a core without the outer parts
AWAY, FAR = 10.0, 30.0  # widths of the core from it: where spikes begin, and where at least half of them lie
BETWEEN, STAYING = 0.1, 2.0  # times as many values between core and spikes, at most, and steps that a spike lasts
MANY = 200  # values, of which spikes can be found
SAMPLE, RUN = 200_000, 1000  # values that quantiles are estimated from, in runs that lie together in a file

Rows = NDArray[np.int64]


@shaped
def fences(values: Float[NDArray[np.floating], "n d"]) -> tuple[Float[Array64, " d"], Float[Array64, " d"]]:
    """The smallest and the largest value of each column that are not extreme: minimum and maximum where none is."""
    found = Fences(values[sample_rows(len(values))])
    found.add(values)
    return found.usual


class Fences:
    """Beyond which numbers the values of each column are extreme, from a sample of them and then from all.

    A sample tells which values are unusual. Whether they are faults, all values tell: a robot that falls over moves
    through everything between, and a bad reading is alone. Where bad readings are so many that they lie densely, time
    tells: they come and go between usual ones, and a robot stays where it is for a while.
    """

    def __init__(self, sample: Float[NDArray[np.floating], "n d"]) -> None:
        found, bounds = list[tuple[float, float, float]](), list[tuple[float, float] | None]()
        for column in sample.T:
            ordered = np.sort(column.astype(np.float64))
            found.append(_column_bounds(ordered))
            bounds.append(_spike_bounds(ordered))
        self.low, self.high, self.span = np.array(found, dtype=np.float64).reshape(-1, 3).T
        self._least, self._most = np.full(len(found), np.inf), np.full(len(found), -np.inf)
        self._below: list[list[Array64]] = [[] for _ in found]
        self._above: list[list[Array64]] = [[] for _ in found]
        self._spiky = np.array([i for i, one in enumerate(bounds) if one is not None], dtype=np.int64)
        self._spike_low, self._spike_high = np.array([one for one in bounds if one is not None]).reshape(-1, 2).T
        self._spikes, self._runs = np.zeros((2, len(self._spiky)), dtype=np.int64)
        self._inner = np.array([[np.inf], [-np.inf]]) * np.ones(len(self._spiky))

    def passed_by(self, low: Float[Array64, " d"], high: Float[Array64, " d"]) -> bool:
        """Whether any of the values, which lie between these, is unusual at all."""
        spiky = (low[self._spiky] < self._spike_low) | (high[self._spiky] > self._spike_high)
        return bool((low < self.low).any() or (high > self.high).any() or spiky.any())

    def add(self, rows: Float[NDArray[np.floating], "n d"]) -> None:
        """Look at some of all the values, which follow each other in time."""
        if len(self._spiky):
            self._look_for_spikes(rows[:, self._spiky])
        below, above = rows < self.low, rows > self.high
        outside = below | above
        if not outside.any():
            self._least, self._most = (
                np.minimum(self._least, rows.min(axis=0)),
                np.maximum(self._most, rows.max(axis=0)),
            )
            return
        self._least = np.minimum(self._least, np.where(outside, np.inf, rows).min(axis=0))
        self._most = np.maximum(self._most, np.where(outside, -np.inf, rows).max(axis=0))
        for side, far in ((self._below, below), (self._above, above)):
            for column in np.flatnonzero(far.any(axis=0)):
                side[column].append(np.unique(rows[far[:, column], column].astype(np.float64)))

    def _look_for_spikes(self, rows: Float[NDArray[np.floating], "n s"]) -> None:
        """Count values beyond the bounds of spikes, and how often one follows a usual value."""
        beyond = (rows < self._spike_low) | (rows > self._spike_high)
        self._spikes += beyond.sum(axis=0)
        self._runs += beyond[0] + (beyond[1:] & ~beyond[:-1]).sum(axis=0)
        least, most = np.where(beyond, np.inf, rows).min(axis=0), np.where(beyond, -np.inf, rows).max(axis=0)
        self._inner = np.stack([np.minimum(self._inner[0], least), np.maximum(self._inner[1], most)])

    @property
    def bounds(self) -> tuple[Float[Array64, " d"], Float[Array64, " d"]]:
        """Beyond which numbers a value is extreme; infinite where none is."""
        return -self._alone(-1)[0], self._alone(1)[0]

    @property
    def usual(self) -> tuple[Float[Array64, " d"], Float[Array64, " d"]]:
        """The smallest and the largest value that are not extreme."""
        return -self._alone(-1)[1], self._alone(1)[1]

    def _alone(self, sign: int) -> tuple[Float[Array64, " d"], Float[Array64, " d"]]:
        """On one side of all columns, where the gap is that ends the usual values, and the last of these."""
        sides, last = (self._above, self._most) if sign > 0 else (self._below, -self._least)
        found = [_gap([sign * part for part in far], *ends) for far, *ends in zip(sides, last, self.span, strict=True)]
        bound, usual = np.array([middle for middle, _ in found]), np.array([value for _, value in found])
        short = (self._spikes > 0) & (self._spikes <= STAYING * self._runs)
        columns = self._spiky[short]
        bound[columns] = (self._spike_high if sign > 0 else -self._spike_low)[short]
        usual[columns] = (self._inner[1] if sign > 0 else -self._inner[0])[short]
        return bound, usual


def _gap(far: list[Array64], last: float, span: float) -> tuple[float, float]:
    """The middle of the first gap that parts far values from the others, infinite without one, and the value before."""
    if not far:
        return np.inf, last
    values = np.concatenate([[last], np.sort(np.concatenate(far))])
    gaps = np.flatnonzero(np.diff(values) > ALONE * span)
    if not len(gaps):
        return np.inf, float(values[-1])
    before, after = values[gaps[0]], values[gaps[0] + 1]
    return float(before + after) / 2, float(before)


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


def _column_bounds(ordered: Array64) -> tuple[float, float, float]:
    """The bounds of one column, whose values are sorted, and the span of the usual ones."""
    if len(ordered) < FEWEST:
        return -np.inf, np.inf, 0.0
    first, last = _without_marks(ordered)
    inner = _without_sentinels(ordered[first:last])
    first, last = first + inner[0], first + inner[1]
    usual = ordered[first:last]
    rest = usual[len(usual) // 2]
    others = usual[usual != rest]
    if 2 * len(others) >= len(usual):
        outer = max(1, int(OUTER * len(usual)))  # at least one on each side: of few values an outlier is an outer one
        low, high = usual[outer], usual[-1 - outer]
        return low - REACH * (high - low), high + REACH * (high - low), high - low
    # Most are the same, as of a contact sensor, and the rare values are what it tells. Only among these is one odd.
    low, high, span = _column_bounds(others)
    if first > 0 and low == -np.inf:  # without a span of the others, a sentinel is what lies across its gap
        low = (ordered[first - 1] + usual[0]) / 2
    if last < len(ordered) and high == np.inf:
        high = (ordered[last] + usual[-1]) / 2
    return min(low, rest), max(high, rest), span


def _spike_bounds(ordered: Array64) -> tuple[float, float] | None:
    """The bounds of a column, whose values are sorted, without many bad readings that lie anywhere; ``None`` if few.

    They are far from the core of the values, and hardly anything is between: the tails of data thin out with distance,
    and become no denser again.
    """
    count = len(ordered)
    low, high = ordered[int(CORE * count)], ordered[count - 1 - int(CORE * count)]
    if count < MANY or high <= low:
        return None
    away = np.maximum(low - ordered, ordered - high) / (high - low)
    spikes = away > AWAY
    found = int(spikes.sum())
    if not 0 < found <= SPIKES * count or np.median(away[spikes]) < FAR:
        return None
    if ((away > REACH) & ~spikes).sum() > BETWEEN * found:
        return None
    below, above, _ = _column_bounds(ordered[~spikes])
    return max(below, low - AWAY * (high - low)), min(above, high + AWAY * (high - low))


def _without_marks(ordered: Array64) -> tuple[int, int]:
    """From where to where the values go on without numbers that mark missing ones, on either side or on both.

    Such a number comes again and again, and nothing lies between it and the others, of which there are many. Behaviours
    that are far apart, such as standing and running, are no marks: a robot moves from one to the other.
    """
    count = len(ordered)
    lows = [0, *_cuts(ordered)]
    highs = [count, *(count - cut for cut in _cuts(-ordered[::-1]))]
    pairs = [(low, high) for low in lows for high in highs if count - (high - low) <= MARKED * count]
    for first, last in sorted(pairs, key=lambda pair: pair[1] - pair[0]):
        extent = ordered[last - 1] - ordered[first]
        far_below = first == 0 or ordered[first] - ordered[first - 1] > GAP * extent
        far_above = last == count or ordered[last] - ordered[last - 1] > GAP * extent
        if far_below and far_above and len(np.unique(ordered[first:last])) >= FEWEST:
            return first, last
    return 0, count


def _cuts(ordered: Array64) -> list[int]:
    """How many of the lowest values may be marks: few numbers, or few values, with a wide gap behind them."""
    most = int(MARKED * len(ordered))
    if most == 0:
        return []
    low = ordered[: most + 1]
    wide = np.flatnonzero(np.diff(low) > GAP * (ordered[-1 - most] - low[1:])) + 1
    different = np.cumsum(np.diff(low, prepend=-np.inf) > 0)
    return [
        int(cut)
        for cut in wide
        if cut <= SENTINELS * len(ordered) or different[cut - 1] <= max(1, int(cut) // REPEATED)
    ]


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
