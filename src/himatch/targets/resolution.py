"""Whether the bins of a histogram tell a feature's behaviours apart, or lie so wide that any target looks matched."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Bool, Float, shaped
from himatch.statistics.bins import Bins
from himatch.statistics.fences import FEWEST, GAP, OUTER, fences, sample_rows
from himatch.types import Array

ONE_BIN = 0.99  # of the usual values: what the others differ in is less than rollouts can be told by
MOST_MARKS = 0.5  # of all values: a number that comes more often than all others is where the feature rests


@shaped
def resolved(values: Float[Array, "n d"], bins: Bins) -> Bool[NDArray[np.bool_], " d"]:
    """Of every feature whether its bins tell values apart: not where one holds more than 99 % of the usual ones.

    Extreme values and marks of missing ones, such as -999, are not usual: bins that are stretched by them tell these
    from the others and nothing else. A bin that holds a single number hides nothing: of a sensor that is 0 but for a
    few steps, bins tell all there is. Those of a constant tell nothing.
    """
    some = values[sample_rows(len(values))]
    if not len(some):
        return np.ones(bins.dimensions, dtype=bool)
    found = []
    for column, places, usual in zip(some.T, bins.indices(some).T, usual_values(some).T, strict=True):
        counts = np.bincount(places[usual])
        fullest = column[usual & (places == counts.argmax())]
        alone = fullest.min() == fullest.max()
        found.append(counts.max() <= ONE_BIN * counts.sum() or bool(alone and (places != places[0]).any()))
    return np.array(found)


@shaped
def usual_values(values: Float[Array, "n d"]) -> Bool[NDArray[np.bool_], "n d"]:
    """Which values are neither extreme nor marks of missing ones."""
    low, high = fences(values)
    usual = (values >= low) & (values <= high)
    for column, inside in zip(values.T, usual.T, strict=True):
        inside &= ~_marked(column, inside)
    return usual


def _marked(column: Float[Array, " n"], usual: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a column is its lowest or highest number, if that comes several times and far from many different ones."""
    for mark in (column[usual].min(), column[usual].max()):
        marked: NDArray[np.bool_] = usual & (column == mark)
        others = column[usual & ~marked]
        if not 1 < marked.sum() <= MOST_MARKS * len(column) or len(np.unique(others)) < FEWEST:
            continue
        low, high = np.quantile(others, (OUTER, 1 - OUTER))
        if max(low - mark, mark - high) > GAP * (high - low):
            return marked
    return np.zeros(len(column), dtype=bool)
