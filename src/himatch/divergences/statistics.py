"""Summaries of many scores: mean, deviation, interquartile mean, bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import trim_mean

from himatch.errors import HimatchError


@dataclass(frozen=True)
class Summary:
    """What a table shows of a group of scores."""

    mean: float
    std: float
    iqm: float
    low: float
    high: float
    count: int


def interquartile_mean(scores: ArrayLike) -> float:
    """Mean of the middle half: steadier than the mean, more efficient than the median."""
    return float(trim_mean(np.ravel(_scores(scores)), 0.25))


def bootstrap_interval(
    strata: Sequence[ArrayLike],
    statistic: Callable[[NDArray[np.float64]], float] = interquartile_mean,
    *,
    confidence: float = 0.95,
    samples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile interval by resampling within each stratum (a task, a target group) and pooling.

    Resampling inside strata keeps every resample as balanced as the experiment was.
    """
    groups = [np.ravel(_scores(group)) for group in strata]
    if not groups or not 0 < confidence < 1 or samples < 1:
        raise HimatchError("a bootstrap needs scores, a confidence between 0 and 1 and at least one resample")
    rng = np.random.default_rng(seed)
    draws = np.concatenate([group[rng.integers(len(group), size=(samples, len(group)))] for group in groups], axis=1)
    if statistic is interquartile_mean:  # all resamples at once
        values = trim_mean(draws, 0.25, axis=1)
    else:
        values = np.array([statistic(draw) for draw in draws])
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def summarize(strata: Sequence[ArrayLike], *, seed: int = 0) -> Summary:
    """Mean, standard deviation, interquartile mean and its 95 % stratified bootstrap interval of pooled scores."""
    pooled = np.concatenate([np.ravel(_scores(group)) for group in strata]) if strata else _scores([])
    low, high = bootstrap_interval(strata, seed=seed)
    return Summary(float(pooled.mean()), float(pooled.std()), interquartile_mean(pooled), low, high, len(pooled))


def _scores(values: ArrayLike) -> NDArray[np.float64]:
    scores = np.asarray(values, dtype=np.float64)
    if scores.size == 0 or not np.isfinite(scores).all():
        raise HimatchError("scores must be finite and at least one")
    return scores
