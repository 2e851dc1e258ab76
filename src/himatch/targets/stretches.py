"""What plans are made of: some training episodes, or stretches of them, that are far apart.

Where the feature changes in an episode, a stretch of it does what no whole episode does: on the way to its speed a
cheetah is slower than any cheetah of the data is on average.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from himatch.divergences import wasserstein_bins
from himatch.errors import TargetError
from himatch.targets.reference import FOLLOWED, EpisodeReference


def far_apart(reference: EpisodeReference, count: int) -> list[int]:
    """So many episodes, each the furthest from those before it, by the W1 of their features' histograms."""
    shares, widths = reference.histograms, (reference.frame.bins.widths / reference.spread)[None]
    if len(shares) <= count:
        return list(range(len(shares)))
    chosen = [reference.typical(np.arange(len(shares)))]
    nearest = np.full(len(shares), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, wasserstein_bins(shares, shares[chosen[-1]][None], widths).sum(axis=1))
        chosen.append(int(nearest.argmax()))
    return chosen


@lru_cache(maxsize=4)  # a controller plans again and again
def some_episodes(reference: EpisodeReference, count: int) -> tuple[EpisodeReference, tuple[int, ...]]:
    """At most so many episodes, far apart, and their numbers."""
    chosen = far_apart(reference, count)
    return EpisodeReference.of_rows(reference.frame, [reference.episode(number) for number in chosen]), tuple(chosen)


@lru_cache(maxsize=4)
def some_stretches(
    reference: EpisodeReference, steps: int, count: int
) -> tuple[EpisodeReference, tuple[tuple[int, int], ...]]:
    """At most so many stretches of so many steps in the place of episodes, and of each its episode and first step.

    Episodes are cut one stretch after another. The end of one that ended early is left out: it leads to a fall.
    """
    lengths = reference.lengths
    usable = np.where(lengths < reference.frame.horizon, FOLLOWED * lengths, lengths).astype(np.int64)
    places = [(e, first) for e, end in enumerate(usable.tolist()) for first in range(0, end - steps + 1, steps)]
    if not places:
        raise TargetError(
            f"there are no stretches of {steps} steps: the longest training episode has {int(lengths.max(initial=0))}"
            + (", and its last tenth is left out" if (usable < lengths).any() else "")
        )
    ends = np.cumsum(lengths)
    starts = np.array([ends[episode] - lengths[episode] + first for episode, first in places])
    rows = reference.values[starts[:, None] + np.arange(steps)]
    chosen = far_apart(EpisodeReference.of_rows(reference.frame, rows), count)
    return EpisodeReference.of_rows(reference.frame, rows[chosen]), tuple(places[number] for number in chosen)
