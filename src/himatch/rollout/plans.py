"""Plans of ``planned`` beyond the mixture of whole episodes: over logged stretches, and of what is left of a target.

All of it is on the bins of z, which is all that a policy sees of a target, so that a plan takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from himatch._runtime.settings import whole
from himatch._runtime.shapes import Array64, Float, shaped
from himatch.errors import HimatchError, TargetError
from himatch.rollout.programs import Program, ProgramPart, Shares, Within, episode_entry, stretch_entry
from himatch.statistics.information import Statistic
from himatch.targets import EpisodeReference, Target, some_episodes, some_stretches
from himatch.targets.distribution import apportion
from himatch.targets.mixture import nearest_binned_mixture
from himatch.types import Array

MOST = 200  # entries that are mixed: from 4,000 stretches no mixture is nearer than from 200 that are far apart
LASTING, LEAST = 0.95, 0.02  # of the time that an episode of a pool must last; of the episodes, that an entry gets
FEW = 0.01  # of a feature's spread: so much further off may a whole target be for fewer parts


@dataclass(frozen=True)
class Plans:
    """What ``planned`` is laid out over, whether it is made again while it is played, and who plays it.

    ``stretches`` are so many steps of training episodes, in the place of whole ones. A plan is made again every
    ``replan`` steps, from what is left of the target. Every episode follows a plan (or a rehearsed program) for the
    whole target, or episodes share the target out among them: ``within`` an ``episode``, or a ``pool`` of them.
    """

    stretches: int | None = None
    replan: int | None = None
    within: Within = "episode"

    def __post_init__(self) -> None:
        for name, value in (("stretches", self.stretches), ("replan", self.replan)):
            if value is not None:
                object.__setattr__(self, name, steps := whole(name, value))
                if steps < 1:
                    raise HimatchError(f"{name} is a number of steps, 1 or more, got {steps}")
        if self.within not in get_args(Within):
            raise HimatchError(f"within is {' or '.join(get_args(Within))}, got {self.within!r}")
        if self.within == "pool" and (self.stretches, self.replan) != (None, None):
            what = "stretches" if self.stretches is not None else "replan"
            raise HimatchError(f"{what} is for plans within an episode; in a pool each follows one conditioning")

    def check(self, conditioning: str, statistic: Statistic) -> None:
        """Refuse what would have no effect."""
        if self == EPISODES:
            return
        if self.within == "pool":
            if conditioning not in ("planned", "rehearsed"):
                raise HimatchError(f"a pool is for planned and rehearsed conditioning, not for {conditioning}")
            return
        if conditioning != "planned":
            what = "stretches" if self.stretches is not None else "replan"
            raise HimatchError(f"{what} is for planned conditioning, not for {conditioning}")
        if self.stretches is not None and statistic.timed:
            raise TargetError(
                "a stretch is held as a distribution, and this policy is conditioned on counts, which say how much "
                "time is left; plan with whole episodes"
            )

    def named(self, conditioning: str) -> str:
        """What a result calls a conditioning: ``planned (stretches of 50, again every 100)``."""
        parts = []
        if self.stretches is not None:
            parts.append(f"stretches of {self.stretches}")
        if self.replan is not None:
            parts.append(f"again every {self.replan}")
        if self.within == "pool":
            parts.append("pooled")
        return f"{conditioning} ({', '.join(parts)})" if parts else conditioning


EPISODES = Plans()
"""Whole episodes, once: what ``planned`` is unless something else is asked for."""


def nearest_shares(target: Target, reference: EpisodeReference, entries: Sequence[str], steps: int) -> Shares:
    """How episodes share a target out, each under one entry: by the nearest mixture of what lasted, if anything did.

    ``entries`` name the episodes of the reference; several may have one name.
    """
    if target.in_time:
        raise TargetError(f"{target.name} says what comes when in an episode, and cannot be shared out among several")
    lasting = np.flatnonzero(reference.lengths >= LASTING * steps)
    if 0 < len(lasting) < len(reference.lengths):
        reference = EpisodeReference.of_rows(reference.frame, [reference.episode(i) for i in lasting.tolist()])
        entries = [entries[i] for i in lasting.tolist()]
    parts: dict[str, float] = {}
    for number, weight in reference.mixture(target).weights.items():
        parts[entries[number]] = parts.get(entries[number], 0.0) + weight
    kept = {entry: part for entry, part in parts.items() if part >= LEAST} or parts
    whole, order = sum(kept.values()), sorted(kept, key=lambda entry: -kept[entry])
    programs = tuple((ProgramPart(entry, steps),) for entry in order)
    return Shares(programs, tuple(kept[entry] / whole for entry in order))


def shared_plan(target: Target, reference: EpisodeReference) -> Shares:
    """The same of training episodes."""
    entries = [episode_entry(number) for number in range(len(reference.lengths))]
    steps = min(len(target.values(reference.frame)), reference.frame.horizon)
    return nearest_shares(target, reference, entries, steps)


class Mixer:
    """Shares out steps among some training episodes, or among stretches of them."""

    def __init__(self, reference: EpisodeReference, stretches: int | None = None) -> None:
        self.entries: tuple[str, ...]
        if stretches is None:
            self._reference, numbers = some_episodes(reference, MOST)
            self.entries = tuple(episode_entry(number) for number in numbers)
        else:
            self._reference, places = some_stretches(reference, stretches, MOST)
            self.entries = tuple(stretch_entry(number, first, stretches) for number, first in places)
        self._held = stretches is not None
        self.frame = reference.frame
        self._widths: Array64 = reference.frame.bins.widths / reference.spread

    def program(self, target: Target) -> Program:
        """The plan of a whole target; those that follow one another have one each."""
        self._reference.check_mixable(target)
        parts, start = [], 0
        lasts = len(target.values(self.frame))
        for one in target.stretches(self.frame):
            rows = one.values(self.frame)
            wanted = self.frame.bins.histogram(rows) * len(rows)
            parts += self.shared_out(wanted, len(rows), start, lasts, rows if one.in_time else None)
            start += len(rows)
        return tuple(ProgramPart(self.entries[entry], steps) for entry, steps in parts)

    @shaped
    def shared_out(
        self,
        wanted: Float[Array64, "d bins"],
        steps: int,
        start: int,
        lasts: int,
        rows: Float[Array, "_ d"] | None = None,
        running: int | None = None,
    ) -> list[tuple[int, int]]:
        """Entries by number, each with its part of ``steps`` steps, from ``start`` on.

        ``wanted`` counts the steps that every bin lacks: less than none in one that has too many. ``rows`` are what is
        left of a target in time, which says the order. ``lasts`` is how long the whole of it is.
        """
        due = np.ones(len(self.entries)) if self._held else self._reference.due(steps, start)
        weights = self._few(wanted / steps, due, FEW * lasts / steps)
        order = self._reference.in_order(weights, due, rows, running)
        durations = apportion(weights[order], steps)
        return [(entry, n) for entry, n in zip(order.tolist(), durations.tolist(), strict=True) if n]

    def _few(self, wanted: Array64, due: Array64, further: float) -> Array64:
        """Weights of the nearest mixture, or of as few of its parts as come near enough: to switch takes time."""
        histograms = self._reference.histograms
        nearest = nearest_binned_mixture(histograms, wanted, self._widths, due)
        most = self._distance(nearest, wanted) + further
        largest = np.argsort(-nearest, kind="stable")[: np.count_nonzero(nearest)]
        for count in range(1, len(largest)):
            kept = largest[:count]
            if not (due[kept] == 1.0).any():  # none of them may go on until the end
                continue
            weights = np.zeros(len(nearest))
            weights[kept] = nearest_binned_mixture(histograms[kept], wanted, self._widths, due[kept])
            if self._distance(weights, wanted) <= most:
                return weights
        return nearest

    def _distance(self, weights: Array64, wanted: Array64) -> float:
        mixed = np.einsum("e,edb->db", weights, self._reference.histograms)
        gaps = np.abs(np.cumsum(mixed - wanted, axis=1)).sum(axis=1)
        return float(gaps @ self._widths)
