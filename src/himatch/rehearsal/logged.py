"""A promise without a simulator: logged episodes stand for what the policy would do under each part of a plan.

Under the z of an episode a policy does, at best, what the episodes like it did. So every part of a plan is played by a
stand-in, drawn from the logged episodes that are nearest to the one that it names. How far a policy departs from these
no log says: the interval is widened by what three pretrained policies did (``benchmarks/promises.py``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from himatch.divergences import wasserstein_bins
from himatch.rehearsal.arena import Achieved, Judge
from himatch.rehearsal.promise import expectation
from himatch.rollout.expected import Expected
from himatch.rollout.programs import Program, place_of, scheduled
from himatch.targets import EpisodeReference, Target
from himatch.types import Array

ALIKE = 8  # stand-ins of one episode, itself among them
ROLLOUTS = 64  # that are put together
DEPARTS, SLIPS = 0.1, 0.02  # of the score, of the feature's spread: how far policies were from what episodes did
SEED = 0


def from_logs(reference: EpisodeReference, target: Target, episodes: int) -> Expected:
    """What so many rollouts of ``planned`` will score, by logged episodes."""
    judge = Judge(target, reference)
    program, cast = scheduled(target, reference, judge.steps), _Cast(reference)
    rng = np.random.default_rng(SEED)
    falls = bool((reference.lengths < reference.frame.horizon).any())
    found = expectation(judge, [[[cast.rollout(program, rng) for _ in range(ROLLOUTS)]]], episodes, falls=falls)
    slips = SLIPS * (float(reference.spread[0]) if len(reference.spread) == 1 else 1.0)  # joint W1 is in spreads
    low, high = (1 - DEPARTS) * found.low, (1 + DEPARTS) * found.high + slips
    return replace(found, low=low, high=high, basis="logs", held=None)  # of bounds these logs say nothing


class _Cast:
    """Logged episodes, and who stands in for each."""

    def __init__(self, reference: EpisodeReference) -> None:
        self._reference = reference
        self._widths = (reference.frame.bins.widths / reference.spread)[None]
        self._alike: dict[int, NDArray[np.int64]] = {}

    def rollout(self, program: Program, rng: np.random.Generator) -> Achieved:
        """One that follows a program, each part played by a stand-in; it ends where a stand-in ended."""
        rows: list[Array] = []
        clock = 0
        for part in program:
            standing = self._standing_in(place_of(part.entry)[0])
            rows.append(self._reference.episode(int(rng.choice(standing)))[clock : clock + part.steps])
            clock += part.steps
            if len(rows[-1]) < part.steps:
                break
        return Achieved(np.concatenate(rows))

    def _standing_in(self, number: int) -> NDArray[np.int64]:
        """The nearest ones by the W1 of their histograms."""
        if number not in self._alike:
            shares = self._reference.histograms
            away = wasserstein_bins(shares, shares[number][None], self._widths).sum(axis=1)
            self._alike[number] = np.argsort(away, kind="stable")[:ALIKE]
        return self._alike[number]
