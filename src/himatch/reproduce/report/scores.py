"""The numbers in a cell: mean, deviation, interquartile mean and their intervals, of one group or of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from himatch.divergences import summarize

Strata = Sequence[Sequence[float]]
"""Scores of a group: for every target, one per seed."""


@dataclass(frozen=True)
class Score:
    """What a cell says; a plain mean has no interval, an average over groups no deviation.

    ``low`` and ``high`` bound the interquartile mean, ``mean_low`` and ``mean_high`` the mean; with a single seed
    neither has an interval.
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


def scored(parts: Sequence[tuple[str, Strata]]) -> Score:
    """Score of a task's group, or the average over several, each weighing the same: parts name the task they are of."""
    return Score(**asdict(summarize([strata for _, strata in parts], [task for task, _ in parts])))
