"""Bars on the bins of a feature: shares of values, and the expression of those that somebody drew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch._runtime.shapes import Array64
from himatch.errors import TargetError
from himatch.statistics.bins import Bins
from himatch.targets.distribution import apportion

PARTS = 10_000  # that a drawn target's weight is cut into; a rollout has about 1,000 steps
MOST_CELLS = 10_000  # of a plane that is drawn on


def drawable(bins: Bins) -> bool:
    """Whether there is a curve or a plane to draw on."""
    return bins.dimensions <= 2 and bins.count**bins.dimensions <= MOST_CELLS


def shares(bins: Bins, values: ArrayLike, mass: Array64 | None = None) -> Array64:
    """The part of the values ``(n, d)`` in every bin: of one feature a row, of two a plane, of more a row for each."""
    if not drawable(bins):
        indices = bins.indices(values).T.astype(np.int64)
        rows = [np.bincount(column, mass, bins.count).astype(np.float64) for column in indices]
        return np.array([row / row.sum() for row in rows])
    grid = (bins.count,) * bins.dimensions
    cells = np.ravel_multi_index(tuple(bins.indices(values).T.astype(np.int64)), grid)
    counts = np.bincount(cells, mass, bins.count**bins.dimensions).astype(np.float64)
    found: Array64 = (counts / counts.sum()).reshape(grid)
    return found


def expression_of(bins: Bins, heights: Sequence[Any]) -> str:
    """The expression of bars that somebody drew: a shuffled mixture of uniform parts, one for each bin that has any.

    Shuffled, because a drawing says nothing about an order in time. Every bin is a part of its own, so that it gets as
    many of the target's values as its bar says, and the parts of two features have the same weights in the same order,
    so that these belong together.
    """
    weights = apportion(_checked(bins, heights).ravel(), PARTS)
    cells = np.argwhere(weights.reshape((bins.count,) * bins.dimensions))
    mass = weights[weights > 0]
    columns = [_mixture(bins.edges[d], cells[:, d], mass) for d in range(bins.dimensions)]
    return f"shuffled({columns[0]})" if len(columns) == 1 else f"shuffled(joint({', '.join(columns)}))"


def _mixture(edges: Array64, indices: NDArray[np.int64], weights: NDArray[np.int64]) -> str:
    parts = [f"uniform({edges[i]:.7g},{edges[i + 1]:.7g})" for i in indices.tolist()]
    if len(parts) == 1:
        return parts[0]
    return "+".join(f"{weight / PARTS:g}*{part}" for weight, part in zip(weights.tolist(), parts, strict=True))


def _checked(bins: Bins, heights: Sequence[Any]) -> Array64:
    if not drawable(bins):
        raise TargetError(f"{bins.dimensions} features cannot be drawn; write an expression")
    shape = (bins.count,) * bins.dimensions
    try:
        drawn = np.asarray(heights, dtype=np.float64)
    except (TypeError, ValueError):
        drawn = np.zeros(0)
    if drawn.shape != shape:
        raise TargetError(f"a drawing has {' x '.join(map(str, shape))} heights, one for each bin")
    if not np.isfinite(drawn).all() or (drawn < 0).any():
        raise TargetError("the heights of a drawing are numbers from 0 up")
    highest = drawn.max()
    if highest <= 0:
        raise TargetError("nothing is drawn: all heights are 0")
    relative: Array64 = drawn / highest  # whose sum is a number, however high they are
    return relative
