"""The numbers in a cell: mean, deviation, interquartile mean and its interval, of one group or of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Strata = Sequence[Sequence[float]]
"""Scores of a group: for every target, one per seed."""

RESAMPLES = 2000


@dataclass(frozen=True)
class Score:
    """What a cell says; a plain mean has no interval, an average over groups no deviation."""

    mean: float
    std: float | None = None
    iqm: float | None = None
    low: float | None = None
    high: float | None = None
    count: int = 0


def plain(values: Sequence[float]) -> Score:
    """Mean and deviation of numbers that are no samples: references, returns of the held-out episodes."""
    return Score(float(np.mean(values)), float(np.std(values)), count=len(values))


def average(scores: Sequence[Score]) -> Score:
    """Mean of plain scores."""
    return Score(float(np.mean([score.mean for score in scores])), count=sum(score.count for score in scores))


def scored(groups: Sequence[Strata]) -> Score:
    """Score of one group, or the average over several, each weighing the same.

    The interval is that of :func:`himatch.divergences.summarize` (the same draws, a stratum a target), with all
    resamples taken at once: a report has hundreds of cells.
    """
    rng = np.random.default_rng(0)
    pooled, resampled = [], []
    for strata in groups:
        arrays = [np.asarray(stratum, dtype=np.float64) for stratum in strata]
        draws = [array[rng.integers(len(array), size=(RESAMPLES, len(array)))] for array in arrays]
        pooled.append(np.concatenate(arrays))
        resampled.append(_middle(np.concatenate(draws, axis=1)))
    low, high = np.quantile(np.mean(resampled, axis=0), [0.025, 0.975])
    return Score(
        mean=float(np.mean([values.mean() for values in pooled])),
        std=float(pooled[0].std()) if len(groups) == 1 else None,
        iqm=float(np.mean([_middle(values[None])[0] for values in pooled])),
        low=float(low),
        high=float(high),
        count=sum(len(values) for values in pooled),
    )


def _middle(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Interquartile mean of every row."""
    count = rows.shape[1]
    cut = int(0.25 * count)
    middle: NDArray[np.float64] = np.sort(rows, axis=1)[:, cut : count - cut].mean(axis=1)
    return middle
