from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from himatch.divergences import bootstrap_interval, interquartile_mean, summarize
from himatch.errors import HimatchError


def test_interquartile_mean_ignores_the_tails() -> None:
    assert interquartile_mean([-1e9, 1, 2, 3, 4, 5, 6, 1e9]) == pytest.approx(3.5)
    scores = np.random.default_rng(0).normal(size=(8, 25))
    inner = np.sort(scores.ravel())[50:150]
    assert interquartile_mean(scores) == pytest.approx(inner.mean())


def test_bootstrap_against_scipy() -> None:
    scores = np.random.default_rng(0).gamma(2.0, size=60)
    ours = bootstrap_interval([scores], lambda s: float(s.mean()), samples=20_000)
    theirs = scipy.stats.bootstrap((scores,), np.mean, n_resamples=20_000, method="percentile", rng=0)
    np.testing.assert_allclose(ours, theirs.confidence_interval, rtol=0.01)


def test_bootstrap_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for seed in range(200):
        low, high = bootstrap_interval([rng.normal(size=40)], lambda s: float(s.mean()), samples=300, seed=seed)
        hits += low <= 0 <= high
    assert 0.88 <= hits / 200 <= 0.99


def test_resampling_within_strata_keeps_their_balance() -> None:
    """Two constant strata: resampling inside each cannot change anything, pooled resampling would."""
    low, high = bootstrap_interval([np.zeros(10), np.ones(10)], lambda s: float(s.mean()))
    assert (low, high) == (0.5, 0.5)


def test_summary() -> None:
    summary = summarize([[1.0, 2.0, 3.0], [4.0, 5.0]])
    assert summary.mean == 3.0
    assert summary.std == pytest.approx(np.sqrt(2.0))
    assert summary.count == 5
    assert summary.low <= summary.iqm <= summary.high
    assert summarize([[1.0, 2.0, 3.0], [4.0, 5.0]]) == summary


@pytest.mark.parametrize("strata", [[], [[]], [[np.nan]]])
def test_no_scores(strata: list[list[float]]) -> None:
    with pytest.raises(HimatchError):
        summarize(strata)
