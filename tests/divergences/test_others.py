from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from himatch.divergences import energy_distance, kl_bins, moment_errors
from himatch.errors import HimatchError

samples = arrays(np.float64, st.integers(1, 30), elements=st.floats(-50, 50))


@given(samples, samples)
def test_energy_against_scipy(x: np.ndarray, y: np.ndarray) -> None:
    # Both take the root of a small difference, so compare the squares.
    assert energy_distance(x, y) ** 2 == pytest.approx(scipy.stats.energy_distance(x, y) ** 2, abs=1e-9)


def test_energy_in_several_dimensions_against_its_definition() -> None:
    rng = np.random.default_rng(0)
    x, y, wx = rng.normal(size=(3000, 2)), rng.normal(0.5, 1, size=(200, 2)), rng.random(3000)
    a, b = wx / wx.sum(), np.full(200, 1 / 200)
    squared = 2 * a @ cdist(x, y) @ b - a @ cdist(x, x) @ a - b @ cdist(y, y) @ b
    assert energy_distance(x, y, wx) == pytest.approx(np.sqrt(squared), rel=1e-9)


def test_weights_are_repetitions() -> None:
    x, y = np.array([0.0, 1.0, 1.0, 1.0]), np.array([0.5, 2.0])
    assert energy_distance([0.0, 1.0], y, [1, 3]) == pytest.approx(energy_distance(x, y))
    pairs = np.array([[0.0, 1.0], [2.0, 1.0]])
    assert energy_distance(pairs, pairs[[0, 1, 1]], [1, 2]) == pytest.approx(0, abs=1e-7)


def test_kl_against_scipy() -> None:
    rng = np.random.default_rng(0)
    p, q = rng.random((4, 31)), rng.random((4, 31))
    expected = scipy.stats.entropy(p, q, axis=1)
    np.testing.assert_allclose(kl_bins(p, q, smoothing=0.0), expected, atol=1e-12)
    np.testing.assert_allclose(kl_bins(p, q), expected, atol=1e-3)


def test_kl_of_disjoint_histograms() -> None:
    p, q = [1.0, 0.0], [0.0, 1.0]
    assert kl_bins(p, q, smoothing=0.0) == np.inf
    assert 10 < kl_bins(p, q) < np.inf
    assert kl_bins(p, p) == pytest.approx(0, abs=1e-12)


def test_moment_errors() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 2))
    errors = moment_errors(x, x * 2 + [3.0, 0.0], order=4)
    assert errors.shape == (4, 2)
    np.testing.assert_allclose(errors[0], np.abs(x.mean(axis=0) + np.array([3.0, 0.0])), atol=1e-9)
    np.testing.assert_allclose(errors[1], x.std(axis=0), atol=1e-9)
    np.testing.assert_allclose(errors[3], scipy.stats.moment(x, 4, axis=0) ** 0.25, atol=1e-9)


def test_mismatched_widths_are_refused() -> None:
    for call in (energy_distance, moment_errors):
        with pytest.raises(HimatchError, match="dimensions"):
            call(np.zeros((3, 2)), np.zeros((3, 1)))
    with pytest.raises(HimatchError, match="order"):
        moment_errors(np.zeros(3), np.zeros(3), order=0)
