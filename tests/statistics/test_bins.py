from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import himatch as hm
from himatch.errors import DataError, HimatchError

values = arrays(np.float32, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=st.floats(-1e3, 1e3, width=32))


@given(values)
def test_histogram_equals_numpy(phi: np.ndarray) -> None:
    bins = hm.Bins.fit([phi])
    for i in range(phi.shape[1]):
        # NumPy's own edges; values within rounding of an edge may fall on either side, so compare cumulative counts.
        counts, _ = np.histogram(phi[:, i].astype(np.float64), bins=bins.edges[i])
        ours = bins.histogram(phi)[i] * len(phi)
        near_edge = (np.abs(phi[:, i, None] - bins.edges[i]) < 1e-6 * (1 + np.abs(bins.edges[i]))).any(axis=1).sum()
        assert np.abs(np.cumsum(counts) - np.cumsum(ours)).max() <= near_edge + 1e-9


@given(values)
def test_every_training_value_lies_inside(phi: np.ndarray) -> None:
    bins = hm.Bins.fit([phi])
    indices = bins.indices(phi)
    centers = np.stack([bins.centers[i][indices[:, i]] for i in range(phi.shape[1])], axis=1)
    assert (np.abs(centers - phi) <= bins.widths / 2 * 1.001 + 1e-6).all()


def test_values_outside_fall_into_the_end_bins() -> None:
    bins = hm.Bins((0.0,), (31.0,))
    np.testing.assert_array_equal(bins.indices([[-1e9], [0.0], [30.9], [31.0], [1e9]])[:, 0], [0, 0, 30, 30, 30])


def test_a_constant_feature_still_has_a_range() -> None:
    for constant in (0.0, 3.5, 1e8, -1e12):
        bins = hm.Bins.fit([np.full((4, 1), constant, dtype=np.float32)])
        assert bins.low[0] < bins.high[0]
        assert bins.histogram(np.full((4, 1), constant, dtype=np.float32)).max() == 1.0


def test_joint_histogram_has_the_marginals() -> None:
    phi = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
    bins = hm.Bins.fit([phi], 7)
    points, weights = bins.joint(phi)
    for i in range(2):
        marginal = [weights[np.isclose(points[:, i], center)].sum() for center in bins.centers[i]]
        np.testing.assert_allclose(marginal, bins.histogram(phi)[i], atol=1e-12)


@pytest.mark.parametrize(
    ("low", "high", "count"),
    [
        ((0.0,), (0.0,), 3),
        ((0.0,), (1.0,), 0),
        ((0.0,), (1.0,), 40_000),
        ((0.0, 1.0), (1.0,), 3),
        ((np.nan,), (1.0,), 3),
        ((), (), 3),
    ],
)
def test_impossible_bins_are_refused(low: tuple[float, ...], high: tuple[float, ...], count: int) -> None:
    with pytest.raises(HimatchError):
        hm.Bins(low, high, count)


def test_the_last_of_the_most_bins_is_found() -> None:
    assert hm.Bins((0.0,), (1.0,), 32_767).indices([[1.0]]) == 32_766


def test_wrong_width_is_refused() -> None:
    with pytest.raises(HimatchError, match="shape"):
        hm.Bins((0.0,), (1.0,)).indices(np.zeros((3, 2)))


def test_episodes_of_different_widths_have_no_bins() -> None:
    with pytest.raises(DataError, match="width 1 in episode 0 and 2 in episode 1"):
        hm.Bins.fit([np.zeros((3, 1)), np.zeros((4, 2))])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e3, 9999.0, -1e6]))
def test_fenced_bins_survive_a_bad_reading_and_are_the_papers_without_one(seed: int, reading: float) -> None:
    rng = np.random.default_rng(seed)
    clean = [rng.normal(rng.normal(), 1.0, (100, 1)) for _ in range(30)]
    assert hm.Bins.fit(clean, fenced=True) == hm.Bins.fit(clean)
    dirty = [phi.copy() for phi in clean]
    dirty[7][50] = reading
    bins = hm.Bins.fit(dirty, fenced=True)
    assert bins.low[0] >= hm.Bins.fit(clean).low[0] - 1e-9
    assert bins.high[0] <= hm.Bins.fit(clean).high[0] + 1e-9
    assert len(np.unique(bins.indices(np.concatenate(clean)))) > 15
    assert len(np.unique(hm.Bins.fit(dirty).indices(np.concatenate(clean)))) < 5
