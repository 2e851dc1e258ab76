"""Histograms that are counted when they are read: those of the aggregator, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import himatch as hm
from himatch.statistics.aggregators import Counts, Histogram
from himatch.statistics.histograms import HistogramsOfRest

LENGTHS = st.lists(st.integers(1, 200), min_size=1, max_size=8)  # blocks hold several episodes, and the reverse


def made(histogram: Histogram, features: list[np.ndarray]) -> HistogramsOfRest:
    return HistogramsOfRest(histogram, features, np.array([len(phi) for phi in features]), np.zeros)


@given(
    st.sampled_from([Histogram, partial(Counts, scale=200.0)]),
    LENGTHS,
    st.integers(1, 3),
    st.sampled_from([1, 7, 31, 300]),
    st.integers(1, 90),
    st.integers(0, 2**32 - 1),
)
def test_windows_have_the_histograms_of_their_episodes(
    make: Callable[[int], Histogram], lengths: list[int], dimensions: int, count: int, window: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(length, dimensions)).astype(np.float32) for length in lengths]
    histogram = make(count).fit(features)
    expected = np.concatenate([histogram(phi) for phi in features])
    z = made(histogram, features)
    assert z.shape == expected.shape
    np.testing.assert_array_equal(z[:], expected)
    ends = np.cumsum(lengths)
    first = rng.integers(len(expected), size=(2, 5))
    last = ends[np.searchsorted(ends, first, side="right")] - 1
    rows = np.minimum(first[..., None] + np.arange(window), last[..., None])  # as the sampler clips them
    found = z[rows]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected[rows])


def test_an_episode_longer_than_16_bits_count() -> None:
    phi = np.random.default_rng(0).normal(size=(2**16 + 100, 1)).astype(np.float32)
    histogram = Histogram(5).fit([phi])
    np.testing.assert_array_equal(made(histogram, [phi])[:], histogram(phi))


def test_rows_that_are_no_window_are_refused() -> None:
    phi = np.arange(10, dtype=np.float32)[:, None]
    z = made(Histogram(5).fit([phi]), [phi])
    with pytest.raises(IndexError, match="follow one another"):
        z[np.array([[0, 2]])]


def test_what_cannot_be_counted_is_stored() -> None:
    task = hm.Task("toy", 50)
    arrays = {"observations": np.arange(4.0)[:, None], "actions": np.ones((4, 1)), "lengths": [4]}
    data = hm.load_dataset(arrays, task)
    for statistic in (hm.distribution_based(task, "obs[0]", gamma=0.9), hm.goal_based(task, "obs[0]")):
        assert statistic.on_demand(data, np.zeros) is None
    assert hm.distribution_based(task, "obs[0]").fit(data).on_demand(data, np.zeros) is not None
