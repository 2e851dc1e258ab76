"""Wasserstein-1, the paper's metric: how far mass has to be moved, in feature units."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron, vstack
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.errors import HimatchError

MOST_PAIRS = 100_000  # of points, without POT


def wasserstein_samples(
    x: ArrayLike, y: ArrayLike, x_weights: ArrayLike | None = None, y_weights: ArrayLike | None = None
) -> float:
    """Exact W1 between two samples of one feature, ``(n,)`` and ``(m,)``, optionally weighted."""
    if x_weights is not None or y_weights is not None:
        return float(wasserstein_distance(_column(x), _column(y), x_weights, y_weights))
    # Without weights it is the mean distance of quantiles, many times faster: a search compares thousands of samples.
    first, second = np.sort(_column(x)), np.sort(_column(y))
    if len(first) == len(second):
        return float(np.abs(first - second).mean())
    n, m = len(first), len(second)
    # In parts of n m: where either quantile function has a step. Two sorted runs are merged, which is fast.
    ends = np.sort(np.concatenate([m * np.arange(1, n + 1), n * np.arange(1, m + 1)]), kind="stable")
    apart = np.abs(first[(ends - 1) // m] - second[(ends - 1) // n])
    return float((apart * np.diff(ends, prepend=0)).sum()) / (n * m)  # a product of BLAS would wait for its threads


@shaped
def wasserstein_marginal(
    x: Float[NDArray[np.floating], "n d"], y: Float[NDArray[np.floating], "m d"]
) -> Float[Array64, " d"]:
    """Exact W1 of every feature by itself, in its own units."""
    return np.array([wasserstein_samples(a, b) for a, b in zip(x.T, y.T, strict=True)])


def wasserstein_bins(p: ArrayLike, q: ArrayLike, width: ArrayLike) -> Array64:
    """Exact W1 between histograms on the same equal bins: the area between their cumulative distributions.

    ``p`` and ``q`` are ``(..., bins)`` and broadcast; ``width`` is the bin width, a number or ``(...)``.
    """
    difference = np.cumsum(normalized(p) - normalized(q), axis=-1)
    distance: Array64 = np.abs(difference).sum(axis=-1) * np.asarray(width)
    return distance


def wasserstein_joint(
    x: ArrayLike, y: ArrayLike, x_weights: ArrayLike | None = None, y_weights: ArrayLike | None = None
) -> float:
    """Exact W1 in n dimensions with Euclidean cost, by optimal transport between ``(n, d)`` and ``(m, d)`` points.

    Use it on the occupied cells of a joint histogram; on raw samples the cost grows as n times m. POT solves it where
    it is installed (the extra ``joint``), else SciPy's HiGHS up to 100,000 pairs of points.
    """
    x, y = _points(x), _points(y)
    if x.shape[1] != y.shape[1]:
        raise HimatchError(f"cannot compare points of {x.shape[1]} and {y.shape[1]} dimensions")
    a, b = (
        np.full(len(points), 1.0 / len(points)) if weights is None else normalized(weights)
        for points, weights in ((x, x_weights), (y, y_weights))
    )
    try:
        import ot  # half a second to import, and only n-D metrics need it
    except ImportError:
        return _by_linear_program(a, b, cdist(x, y))
    cost = ot.dist(x, y, metric="euclidean")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # POT only warns when its solver gives up
        return float(ot.emd2(a, b, cost, numItermax=1_000_000))


def wasserstein_cells(x: ArrayLike, y: ArrayLike, widths: ArrayLike, x_weights: ArrayLike | None = None) -> float:
    """W1 in n dimensions between the cells of a grid that hold the samples, ``(n, d)`` and ``(m, d)`` integers.

    ``widths`` are those of a cell, in the units in which the distance is wanted.
    """
    points, inverse = np.unique(np.asarray(x), axis=0, return_inverse=True)
    mass = np.bincount(inverse.ravel(), None if x_weights is None else np.asarray(x_weights), len(points))
    goal, counts = np.unique(np.asarray(y), axis=0, return_counts=True)
    return wasserstein_joint(points * widths, goal * widths, mass, counts)


@shaped
def _by_linear_program(a: Float[Array64, " n"], b: Float[Array64, " m"], cost: Float[Array64, "n m"]) -> float:
    """The cheapest plan with marginals ``a`` and ``b``, by SciPy; without POT for what SciPy solves in seconds."""
    if cost.size > MOST_PAIRS:
        raise HimatchError(
            f'W1 between {len(a)} and {len(b)} cells takes more than SciPy\'s solver can: pip install "himatch[joint]"'
        )
    rows = kron(eye_array(len(a)), np.ones((1, len(b))))
    columns = kron(np.ones((1, len(a))), eye_array(len(b)))
    # One of the constraints follows from the others, since both marginals sum to one.
    marginals = csr_array(vstack([rows, columns]))[:-1]
    solution = linprog(cost.ravel(), A_eq=marginals, b_eq=np.concatenate([a, b])[:-1], method="highs")
    if solution.status != 0:
        raise HimatchError(f"the linear program for W1 failed: {solution.message}")
    return float(solution.fun)


@shaped
def normalized(weights: ArrayLike) -> Float[Array64, "*rows n"]:
    """Weights that sum to one along the last axis; negative or empty ones are refused."""
    values = np.asarray(weights, dtype=np.float64)
    total = values.sum(axis=-1, keepdims=True)
    if (values < 0).any() or not np.isfinite(total).all() or (total <= 0).any():
        raise HimatchError("a distribution needs weights that are not negative and not all zero")
    shares: Array64 = values / total
    return shares


@shaped
def _column(values: ArrayLike) -> Float[Array64, " n"]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise HimatchError(f"expected a non-empty sample of one finite feature, got shape {array.shape}")
    return array


@shaped
def _points(values: ArrayLike) -> Float[Array64, "n d"]:
    array = np.asarray(values, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not len(array) or not np.isfinite(array).all():
        raise HimatchError(f"expected finite points of shape (n, d), got {array.shape}")
    return array
