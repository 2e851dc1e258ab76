"""Distances against libraries that nobody here wrote: SciPy for samples and bins, POT for points."""

from __future__ import annotations

import sys

import numpy as np
import ot
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from himatch.divergences import wasserstein_bins, wasserstein_joint, wasserstein_samples
from himatch.errors import HimatchError

numbers = st.floats(-100, 100)
samples = arrays(np.float64, st.integers(1, 30), elements=numbers)
weights = arrays(np.float64, 31, elements=st.floats(0, 1)).filter(lambda w: w.sum() > 1e-3)


@given(samples, samples)
def test_samples_against_pot(x: np.ndarray, y: np.ndarray) -> None:
    assert wasserstein_samples(x, y) == pytest.approx(ot.emd2_1d(x, y, metric="minkowski", p=1), abs=1e-9)


@pytest.mark.parametrize("lengths", [(1000,), (612,), (1000,) * 20, (1000, 812, 40, 333)])
def test_samples_as_long_as_rollouts_against_scipy(lengths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(lengths))
    rows = np.concatenate([rng.normal(n / 500, 1, n) for n in lengths]).astype(np.float32)
    wanted = np.round(rng.normal(1, 2, 1000), 1)  # with many ties
    expected = scipy.stats.wasserstein_distance(rows, wanted)
    assert wasserstein_samples(rows, wanted) == pytest.approx(expected, abs=1e-9)
    assert wasserstein_samples(wanted, rows) == pytest.approx(expected, abs=1e-9)
    weighed = wasserstein_samples(rows, wanted, np.full(len(rows), 0.5))
    assert weighed == pytest.approx(expected, abs=1e-9)


@given(weights, weights, st.floats(0.01, 10))
def test_bins_against_scipy(p: np.ndarray, q: np.ndarray, width: float) -> None:
    centers = np.arange(31) * width
    expected = scipy.stats.wasserstein_distance(centers, centers, p, q)
    assert wasserstein_bins(p, q, width) == pytest.approx(expected, abs=1e-9)


@given(weights, weights)
def test_bins_against_the_transport_program(p: np.ndarray, q: np.ndarray) -> None:
    """The definition itself: the cheapest plan between the two histograms."""
    centers = np.arange(31.0)
    cost = np.abs(centers[:, None] - centers)
    assert wasserstein_bins(p, q, 1.0) == pytest.approx(ot.emd2(p / p.sum(), q / q.sum(), cost), abs=1e-8)


@given(weights, weights, weights)
def test_bins_is_a_metric(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> None:
    def d(a: np.ndarray, b: np.ndarray) -> float:
        return float(wasserstein_bins(a, b, 0.5))

    assert d(p, p) == pytest.approx(0, abs=1e-12)
    assert d(p, q) == pytest.approx(d(q, p), abs=1e-12)
    assert d(p, r) <= d(p, q) + d(q, r) + 1e-9


def test_bins_broadcasts_over_many_histograms() -> None:
    rng = np.random.default_rng(0)
    many, one = rng.random((6, 2, 31)), rng.random((2, 31))
    width = np.array([0.5, 2.0])
    distances = wasserstein_bins(many, one, width)
    assert distances.shape == (6, 2)
    for e in range(6):
        for d in range(2):
            assert distances[e, d] == pytest.approx(float(wasserstein_bins(many[e, d], one[d], width[d])))


def test_moving_everything_costs_the_distance_moved() -> None:
    p = np.eye(31)
    assert wasserstein_bins(p[3], p[10], 0.25) == pytest.approx(7 * 0.25)
    points = np.random.default_rng(0).normal(size=(40, 2))
    assert wasserstein_joint(points, points + np.array([3.0, 4.0])) == pytest.approx(5.0)


@given(samples, samples)
def test_joint_in_one_dimension_is_the_exact_1d_distance(x: np.ndarray, y: np.ndarray) -> None:
    assert wasserstein_joint(x, y) == pytest.approx(wasserstein_samples(x, y), abs=1e-7)


def test_joint_against_an_assignment_problem() -> None:
    """With equally many equal weights transport is assignment, which SciPy solves."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(25, 3)), rng.normal(1, 2, size=(25, 3))
    cost = cdist(x, y)
    assert wasserstein_joint(x, y) == pytest.approx(cost[linear_sum_assignment(cost)].mean())


def test_joint_takes_weights_and_merges_duplicates() -> None:
    x, y = np.array([[0.0, 0], [1, 0]]), np.array([[0.0, 0], [0, 0], [0, 0], [1, 0]])
    assert wasserstein_joint(x, y, [3, 1], None) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda: wasserstein_samples([], [1.0]),
        lambda: wasserstein_samples([np.nan], [1.0]),
        lambda: wasserstein_bins([0.0, 0.0], [1.0, 0.0], 1.0),
        lambda: wasserstein_bins([-1.0, 2.0], [1.0, 0.0], 1.0),
        lambda: wasserstein_joint(np.zeros((2, 2)), np.zeros((2, 3))),
        lambda: wasserstein_joint(np.zeros((2, 2, 2)), np.zeros((2, 2))),
    ],
)
def test_what_is_no_distribution_is_refused(call: object) -> None:
    with pytest.raises(HimatchError):
        call()  # type: ignore[operator]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_without_pot_scipy_finds_the_same_plan(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(rng.integers(1, 25), 2)), rng.normal(size=(rng.integers(1, 25), 2))
    a, b = rng.random(len(x)), rng.random(len(y))
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "ot", None)
        found = wasserstein_joint(x, y, a, b)
    cost = ot.dist(x, y, metric="euclidean")
    assert found == pytest.approx(ot.emd2(a / a.sum(), b / b.sum(), cost), abs=1e-7)


def test_without_pot_a_large_problem_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(HimatchError, match=r'400 and 300 cells .*pip install "himatch\[joint\]"'):
        wasserstein_joint(np.zeros((400, 2)), np.ones((300, 2)))
