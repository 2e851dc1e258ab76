"""Each aggregator against a brute-force recursion or NumPy on every suffix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from himatch.errors import HimatchError
from himatch.statistics.aggregators import BestTask, Counts, DiscountedSum, FinalValue, Histogram, Moments, Window

features = arrays(np.float32, st.tuples(st.integers(1, 20), st.integers(1, 3)), elements=st.floats(-10, 10, width=32))
gammas = st.sampled_from([1.0, 0.97, 0.5])


def onehot(index: int, count: int) -> np.ndarray:
    return np.eye(count)[index]


@given(features, gammas, st.sampled_from([1.0, 1000.0]))
def test_sum(phi: np.ndarray, gamma: float, scale: float) -> None:
    z, rest = np.zeros(phi.shape), np.zeros(phi.shape[1])
    for t in reversed(range(len(phi))):
        rest = phi[t] + gamma * rest
        z[t] = rest / scale
    np.testing.assert_allclose(DiscountedSum(gamma, scale)(phi), z, rtol=1e-5, atol=1e-4 / scale)


@given(features, gammas)
def test_histogram_is_the_papers_recursion(phi: np.ndarray, gamma: float) -> None:
    """z(t) proportional to onehot(phi_t) + gamma z(t + 1), unnormalised on the way and normalised at the end."""
    aggregator = Histogram(gamma=gamma).fit([phi])
    indices, count = aggregator.bins.indices(phi), 31
    z = np.zeros((len(phi), phi.shape[1] * count))
    rest = np.zeros((phi.shape[1], count))
    for t in reversed(range(len(phi))):
        rest = np.stack([onehot(i, count) for i in indices[t]]) + gamma * rest
        z[t] = (rest / rest.sum(axis=1, keepdims=True)).ravel()
    np.testing.assert_allclose(aggregator(phi), z, atol=1e-6)


@given(features, gammas)
def test_histograms_are_distributions(phi: np.ndarray, gamma: float) -> None:
    z = Histogram(gamma=gamma).fit([phi])(phi).reshape(len(phi), phi.shape[1], 31)
    assert (z >= 0).all()
    np.testing.assert_allclose(z.sum(axis=2), 1.0, atol=1e-5)


@given(features)
def test_counts_are_histograms_times_the_steps_that_remain(phi: np.ndarray) -> None:
    shares, remaining = Histogram().fit([phi])(phi), np.arange(len(phi), 0, -1)[:, None]
    np.testing.assert_allclose(Counts(scale=50.0).fit([phi])(phi), shares * remaining / 50.0, rtol=1e-5)


def test_histogram_counts_stay_exact_over_long_episodes() -> None:
    phi = np.random.default_rng(0).integers(0, 31, size=(20_000, 1)).astype(np.float32)
    z = Histogram(low=(0.0,), high=(31.0,))(phi)
    np.testing.assert_allclose(z[0] * len(phi), np.bincount(phi[:, 0].astype(int), minlength=31), atol=1e-2)


def test_a_given_range_is_kept_and_an_unfitted_histogram_refused() -> None:
    given_range = Histogram(low=(0.0,), high=(1.0,))
    assert given_range.fit([np.full((2, 1), 9.0, dtype=np.float32)]) == given_range
    with pytest.raises(HimatchError, match="fit it"):
        Histogram()(np.zeros((2, 1), dtype=np.float32))


@given(features)
def test_moments_of_every_suffix(phi: np.ndarray) -> None:
    z = Moments(order=4).fit([phi])(phi).reshape(len(phi), 4, phi.shape[1])
    for t in range(len(phi)):
        rest = phi[t:].astype(np.float64)
        np.testing.assert_allclose(z[t, 0], rest.mean(axis=0), atol=1e-4)
        np.testing.assert_allclose(z[t, 1], rest.std(axis=0), atol=2e-3)
        # Roots magnify rounding near zero, so compare the moments themselves.
        for p in (3, 4):
            expected = ((rest - rest.mean(axis=0)) ** p).mean(axis=0)
            np.testing.assert_allclose(np.sign(z[t, p - 1]) * np.abs(z[t, p - 1]) ** p, expected, rtol=1e-2, atol=0.05)


def test_discounted_moments_weigh_the_near_future_more() -> None:
    phi = np.array([[0.0], [10.0]], dtype=np.float32)
    assert Moments(order=1, gamma=0.5)(phi)[0, 0] == pytest.approx(10 * 0.5 / 1.5)


def test_final_value_best_task_and_window() -> None:
    phi = np.array([[1, 5], [2, 1], [9, 0]], dtype=np.float32)
    np.testing.assert_array_equal(FinalValue()(phi), [[9, 0]] * 3)
    np.testing.assert_array_equal(BestTask()(phi), [[1, 0], [1, 0], [1, 0]])
    np.testing.assert_array_equal(BestTask(gamma=0.1)(phi), [[0, 1], [1, 0], [1, 0]])
    np.testing.assert_array_equal(Window(2)(phi), [[1, 5, 2, 1], [2, 1, 9, 0], [9, 0, 9, 0]])


@pytest.mark.parametrize(
    "make",
    [
        lambda: DiscountedSum(scale=0),
        lambda: Histogram(count=0),
        lambda: Moments(order=5),
        lambda: Window(0),
        lambda: Moments().fit([]),
        lambda: Histogram().fit([]),
    ],
)
def test_impossible_settings_are_refused(make: object) -> None:
    with pytest.raises(HimatchError):
        make()  # type: ignore[operator]
