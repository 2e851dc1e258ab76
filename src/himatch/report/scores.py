"""The numbers in a cell: mean, deviation, interquartile mean and their intervals, of one group or of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Strata = Sequence[Sequence[float]]
"""Scores of a group: for every target, one per seed."""

RESAMPLES = 2000


@dataclass(frozen=True)
class Score:
    """What a cell says; a plain mean has no interval, an average over groups no deviation.

    ``low`` and ``high`` bound the interquartile mean, ``mean_low`` and ``mean_high`` the mean; with a single seed there
    is nothing to resample, and the mean has no interval.
    """

    mean: float
    std: float | None = None
    iqm: float | None = None
    low: float | None = None
    high: float | None = None
    count: int = 0
    mean_low: float | None = None
    mean_high: float | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """That of the mean; a number without one is its own."""
        return (
            self.mean if self.mean_low is None else self.mean_low,
            self.mean if self.mean_high is None else self.mean_high,
        )

    @property
    def is_one_seed(self) -> bool:
        """Whether the number is a sample that says nothing about its own noise."""
        return self.iqm is not None and self.mean_low is None


def plain(values: Sequence[float]) -> Score:
    """Mean and deviation of numbers that are no samples: references, returns of the held-out episodes."""
    return Score(float(np.mean(values)), float(np.std(values)), count=len(values))


def average(scores: Sequence[Score]) -> Score:
    """Mean of plain scores."""
    return Score(float(np.mean([score.mean for score in scores])), count=sum(score.count for score in scores))


def scored(groups: Sequence[Strata]) -> Score:
    """Score of one group, or the average over several, each weighing the same.

    Intervals are of resampled seeds. A seed is one trained model: it is drawn with all its targets, not target by
    target.
    """
    pooled = [np.concatenate([np.asarray(stratum, dtype=np.float64) for stratum in strata]) for strata in groups]
    resampled = list(_resampled(groups))
    low, high = _interval([_middle(draws) for draws in resampled])
    single = all(len(stratum) == 1 for strata in groups for stratum in strata)
    mean_low, mean_high = (None, None) if single else _interval([draws.mean(axis=1) for draws in resampled])
    return Score(
        mean=float(np.mean([values.mean() for values in pooled])),
        std=float(pooled[0].std()) if len(groups) == 1 else None,
        iqm=float(np.mean([_middle(values[None])[0] for values in pooled])),
        low=low,
        high=high,
        count=sum(len(values) for values in pooled),
        mean_low=mean_low,
        mean_high=mean_high,
    )


def _resampled(groups: Sequence[Strata]) -> Iterator[NDArray[np.float64]]:
    """Every group with its seeds drawn anew, the same ones for all of its targets, ``(RESAMPLES, scores)``."""
    rng = np.random.default_rng(0)
    counts = sorted({len(stratum) for strata in groups for stratum in strata})
    seeds = {count: rng.integers(count, size=(RESAMPLES, count)) for count in counts}
    for strata in groups:
        yield np.concatenate([np.asarray(s, dtype=np.float64)[seeds[len(s)]] for s in strata], axis=1)


def _interval(values: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Where 95 % of the averages over groups lie."""
    low, high = np.quantile(np.mean(values, axis=0), [0.025, 0.975])
    return float(low), float(high)


def _middle(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Interquartile mean of every row."""
    count = rows.shape[1]
    cut = int(0.25 * count)
    middle: NDArray[np.float64] = np.sort(rows, axis=1)[:, cut : count - cut].mean(axis=1)
    return middle
