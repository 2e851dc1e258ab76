"""Summaries of many scores, and differences between two: means, deviations, intervals from what is resampled."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import trim_mean

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.errors import HimatchError

RESAMPLES = 2000
_CUT = 0.25  # of either end: what is left is the middle half


@dataclass(frozen=True)
class Summary:
    """Mean, deviation, interquartile mean and intervals of scores; an average over several groups has no deviation.

    ``low`` and ``high`` bound the interquartile mean, ``mean_low`` and ``mean_high`` the mean, each with 95 %
    confidence. A single seed says nothing about its noise: there is no interval then. Numbers that are no samples,
    such as those of a reference, have neither intervals nor an interquartile mean.
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


@dataclass(frozen=True)
class Difference:
    """By how much scores lie above others, with 95 % confidence; of a single seed there is no interval."""

    mean: float
    low: float | None = None
    high: float | None = None


def interquartile_mean(scores: ArrayLike) -> float:
    """Mean of the middle half: steadier than the mean, more efficient than the median."""
    return float(trim_mean(np.ravel(_finite(scores)), _CUT))


def summarize(groups: Sequence[ArrayLike], tasks: Sequence[Hashable] | None = None) -> Summary:
    """Summary of one group of scores ``(targets, seeds)``, or of the average over several, each weighing the same.

    Intervals are percentiles over resampled seeds. A seed is one trained model, so it is drawn with all its targets,
    in every group of its task; models of different ``tasks`` are drawn apart. Without tasks all groups share theirs.
    """
    tables = [_table(group) for group in groups]
    if not tables:
        raise HimatchError("there are no scores to sum up")
    draws = list(_resampled(tables, tasks or [None] * len(tables)))
    several = all(table.shape[1] > 1 for table in tables)
    low, high = _interval([trim_mean(drawn, _CUT, axis=1) for drawn in draws]) if several else (None, None)
    mean_low, mean_high = _interval([drawn.mean(axis=1) for drawn in draws]) if several else (None, None)
    return Summary(
        mean=float(np.mean([table.mean() for table in tables])),
        std=float(tables[0].std()) if len(tables) == 1 else None,
        iqm=float(np.mean([interquartile_mean(table) for table in tables])),
        low=low,
        high=high,
        count=sum(table.size for table in tables),
        mean_low=mean_low,
        mean_high=mean_high,
    )


def paired_difference(
    ours: Sequence[ArrayLike],
    theirs: Sequence[ArrayLike],
    tasks: Sequence[Hashable] | None = None,
    clusters: Sequence[Sequence[Hashable]] | None = None,
) -> Difference:
    """Ours less theirs, of one group of scores ``(targets, seeds)`` or of the average over several.

    Both sides share their targets, which are resampled together; the seeds of each side are resampled by themselves,
    each with all its targets, and in every group of a task the same (see :func:`summarize`). Targets that are made of
    the same episode are not independent: ``clusters`` names the episode of each, and episodes are resampled instead.
    """
    sides = _sides(ours, theirs)
    means = [np.mean([table.mean() for table in tables]) for tables in sides]
    mean = float(means[0] - means[1])
    if any(table.shape[1] == 1 for tables in sides for table in tables):
        return Difference(mean)
    rng = np.random.default_rng(0)
    seeds: dict[tuple[Hashable, int, int], Array64] = {}
    drawn = []
    members = _members(sides[0], clusters)
    for pair, task, member in zip(zip(*sides, strict=True), tasks or [None] * len(sides[0]), members, strict=True):
        weights = _draws(rng, member.max() + 1)[:, member]
        targets, difference = weights / weights.sum(axis=1, keepdims=True), np.zeros(RESAMPLES)
        for side, (table, sign) in enumerate(zip(pair, (1.0, -1.0), strict=True)):
            key = task, side, table.shape[1]
            if key not in seeds:
                seeds[key] = _draws(rng, table.shape[1])
            difference += sign * np.sum(targets @ table * seeds[key], axis=1)
        drawn.append(difference)
    return Difference(mean, *_interval(drawn))


def leave_one_out(
    ours: Sequence[ArrayLike], theirs: Sequence[ArrayLike], clusters: Sequence[Sequence[Hashable]] | None = None
) -> list[list[float]]:
    """The mean of :func:`paired_difference` without each target (or cluster) of every group, in order of appearance.

    A group's only one cannot be left out: its entry is NaN.
    """
    sides = _sides(ours, theirs)
    each = [a.mean(axis=1) - b.mean(axis=1) for a, b in zip(*sides, strict=True)]
    whole, found = [float(group.mean()) for group in each], []
    for i, (group, member) in enumerate(zip(each, _members(sides[0], clusters), strict=True)):
        others, rest = sum(whole) - whole[i], []
        for cluster in range(member.max() + 1):
            kept = group[member != cluster]
            rest.append((others + float(kept.mean())) / len(each) if len(kept) else float("nan"))
        found.append(rest)
    return found


def _sides(ours: Sequence[ArrayLike], theirs: Sequence[ArrayLike]) -> tuple[list[Array64], list[Array64]]:
    sides = [_table(group) for group in ours], [_table(group) for group in theirs]
    if not sides[0] or [len(table) for table in sides[0]] != [len(table) for table in sides[1]]:
        raise HimatchError("a paired difference is between scores of the same targets")
    return sides


def _members(tables: Sequence[Array64], clusters: Sequence[Sequence[Hashable]] | None) -> list[NDArray[np.int64]]:
    """Of every target the number of its cluster, counted as they appear; without clusters each is its own."""
    named = [range(len(table)) for table in tables] if clusters is None else clusters
    if [len(names) for names in named] != [len(table) for table in tables]:
        raise HimatchError("every target belongs to one cluster")
    numbers = []
    for names in named:
        order = {name: i for i, name in enumerate(dict.fromkeys(names))}
        numbers.append(np.array([order[name] for name in names], dtype=np.int64))
    return numbers


def _draws(rng: np.random.Generator, count: int) -> Float[Array64, "resamples count"]:
    """The weight of each of ``count`` things in a mean over as many draws of them."""
    return rng.multinomial(count, [1 / count] * count, size=RESAMPLES) / count


def _resampled(tables: Sequence[Array64], tasks: Sequence[Hashable]) -> Iterator[Float[Array64, "resamples scores"]]:
    """Every group with its seeds drawn anew."""
    rng = np.random.default_rng(0)
    drawn: dict[tuple[Hashable, int], NDArray[np.int64]] = {}
    for table, task in zip(tables, tasks, strict=True):
        seeds = table.shape[1]
        if (task, seeds) not in drawn:
            drawn[task, seeds] = rng.integers(seeds, size=(RESAMPLES, seeds))
        yield np.concatenate(table[:, drawn[task, seeds]], axis=1)


def _interval(values: Sequence[Float[Array64, " resamples"]]) -> tuple[float, float]:
    """Where 95 % of the averages over groups lie."""
    low, high = np.quantile(np.mean(values, axis=0), [0.025, 0.975])
    return float(low), float(high)


@shaped
def _table(group: ArrayLike) -> Float[Array64, "targets seeds"]:
    table = _finite(group)
    if table.ndim != 2:
        raise HimatchError("a group of scores has a row for each target")
    return table


def _finite(values: ArrayLike) -> Array64:
    try:
        scores = np.asarray(values, dtype=np.float64)
    except ValueError:  # rows of different lengths
        raise HimatchError("every target needs a score of every seed") from None
    if scores.size == 0 or not np.isfinite(scores).all():
        raise HimatchError("scores must be finite and at least one")
    return scores
