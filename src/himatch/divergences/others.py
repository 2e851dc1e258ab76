"""Other ways to compare distributions: energy distance, moments, Kullback-Leibler on bins."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.divergences.wasserstein import _points, normalized
from himatch.errors import HimatchError

_BLOCK = 2048  # rows of a pairwise distance matrix held at a time


def energy_distance(
    x: ArrayLike, y: ArrayLike, x_weights: ArrayLike | None = None, y_weights: ArrayLike | None = None
) -> float:
    """``sqrt(2 E|X - Y| - E|X - X'| - E|Y - Y'|)`` between points ``(n, d)`` and ``(m, d)``; zero iff equal in law."""
    x, y = _points(x), _points(y)
    if x.shape[1] != y.shape[1]:
        raise HimatchError(f"cannot compare points of {x.shape[1]} and {y.shape[1]} dimensions")
    a = np.full(len(x), 1 / len(x)) if x_weights is None else normalized(x_weights)
    b = np.full(len(y), 1 / len(y)) if y_weights is None else normalized(y_weights)
    squared = 2 * _mean_distance(x, a, y, b) - _mean_distance(x, a, x, a) - _mean_distance(y, b, y, b)
    return float(np.sqrt(max(squared, 0.0)))


@shaped
def _mean_distance(
    x: Float[Array64, "n d"], a: Float[Array64, " n"], y: Float[Array64, "m d"], b: Float[Array64, " m"]
) -> float:
    if x.shape[1] == 1:
        return _mean_distance_1d(x[:, 0], a, y[:, 0], b)
    return float(sum(a[i : i + _BLOCK] @ cdist(x[i : i + _BLOCK], y) @ b for i in range(0, len(x), _BLOCK)))


@shaped
def _mean_distance_1d(
    x: Float[Array64, " n"], a: Float[Array64, " n"], y: Float[Array64, " m"], b: Float[Array64, " m"]
) -> float:
    """``E|X - Y|`` as the integral of ``F(1 - G) + G(1 - F)``: a sort instead of n times m distances."""
    values = np.concatenate([x, y])
    order = np.argsort(values, kind="stable")
    gaps = np.diff(values[order])
    f = np.cumsum(np.concatenate([a, np.zeros(len(y))])[order])[:-1]
    g = np.cumsum(np.concatenate([np.zeros(len(x)), b])[order])[:-1]
    return float(np.sum(gaps * (f * (1 - g) + g * (1 - f))))


@shaped
def moment_errors(x: ArrayLike, y: ArrayLike, order: int = 2) -> Float[Array64, "{order} d"]:
    """Absolute differences of the mean, standard deviation and higher rooted central moments."""
    if order < 1:
        raise HimatchError(f"moments start at order 1, got {order}")
    x, y = _points(x), _points(y)
    if x.shape[1] != y.shape[1]:
        raise HimatchError(f"cannot compare points of {x.shape[1]} and {y.shape[1]} dimensions")
    return np.abs(_moments(x, order) - _moments(y, order))


@shaped
def _moments(x: Float[Array64, "n d"], order: int) -> Float[Array64, "{order} d"]:
    mean = x.mean(axis=0)
    central = [np.mean((x - mean) ** p, axis=0) for p in range(2, order + 1)]
    return np.stack([mean, *(np.sign(m) * np.abs(m) ** (1 / p) for p, m in enumerate(central, start=2))])


def kl_bins(p: ArrayLike, q: ArrayLike, smoothing: float = 1e-6) -> Array64:
    """``KL(p || q)`` in nats between histograms ``(..., bins)``; every bin first gets ``smoothing`` extra weight.

    Without smoothing an empty bin of ``q`` makes it infinite.
    """
    a, b = normalized(p), normalized(q)
    a, b = normalized(a + smoothing), normalized(b + smoothing)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(a > 0, a * (np.log(a) - np.log(b)), 0.0)
    divergence: Array64 = terms.sum(axis=-1)
    return divergence
