"""Programs fitted to what was achieved: other durations of their parts, and entries of the repertoire beside them.

A program that was rolled out says what every part of it achieves there, after the part before it. The mixture of these
values that is nearest to the target is a small linear program, and its shares are the durations to try next.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from himatch._runtime.shapes import Array64
from himatch.rehearsal.mutations import tidied
from himatch.rollout.programs import Program, ProgramPart
from himatch.statistics.bins import Bins
from himatch.targets.mixture import nearest_binned_mixture
from himatch.types import Array

LEAST = 0.02  # of a mixture: entries that weigh less are left out


class Fitter:
    """Fits programs to one target of a single feature; ``entries`` in order of speed, with what each achieves."""

    def __init__(self, wanted: Array, bins: Bins, entries: Sequence[str], achieved: Sequence[Array]) -> None:
        self._bins, self._entries = bins, tuple(entries)
        self._wanted = self._shares(wanted)
        self._achieved = np.array([self._shares(rows) for rows in achieved])
        self._speed = np.array([float(rows.mean()) for rows in achieved])

    def durations(self, program: Program, episodes: Sequence[Array]) -> Program | None:
        """The same parts, each for as long as is best for the target; ``None`` where one part was not reached."""
        parts = self._parts(program, episodes)
        if parts is None or len(program) < 2:
            return None
        weights = self._nearest(np.array([self._shares(rows) for rows in parts]))
        return _laid_out([part.entry for part in program], weights, sum(part.steps for part in program))

    def widened(self, program: Program, episodes: Sequence[Array]) -> Program | None:
        """The same with entries that it lacks, each beside the part that is nearest to it in speed."""
        parts = self._parts(program, episodes)
        if parts is None:
            return None
        own = np.array([self._shares(rows) for rows in parts])
        weights = self._nearest(np.concatenate([own, self._achieved]))
        more = np.flatnonzero(weights[len(own) :] > LEAST)
        speeds = np.array([float(rows.mean()) for rows in parts])
        beside: list[list[int]] = [[] for _ in program]
        for entry in more.tolist():
            beside[int(np.abs(speeds - self._speed[entry]).argmin())].append(entry)
        names, shares = [], []
        for n, part in enumerate(program):
            last, following = speeds[n - 1] if n else None, speeds[n + 1] if n + 1 < len(program) else None
            # On the way from the part before, or to the next one.
            sides: tuple[list[int], list[int]] = ([], [])
            for entry in sorted(beside[n], key=lambda entry: abs(self._speed[entry] - speeds[n])):
                faster = self._speed[entry] > speeds[n]
                if last is not None:
                    sides[0 if (last > speeds[n]) == faster else 1].append(entry)
                else:
                    sides[1 if (following is None or following > speeds[n]) == faster else 0].append(entry)
            around = [*sides[0][::-1], None, *sides[1]]
            names += [part.entry if entry is None else self._entries[entry] for entry in around]
            shares += [weights[n] if entry is None else weights[len(own) + entry] for entry in around]
        return _laid_out(names, np.array(shares), sum(part.steps for part in program))

    def _nearest(self, shares: Array64) -> Array64:
        return nearest_binned_mixture(shares[:, None], self._wanted[None], self._bins.widths)

    def _shares(self, rows: Array) -> Array64:
        counts = np.bincount(self._bins.indices(rows)[:, 0].astype(np.int64), minlength=self._bins.count)
        found: Array64 = counts / counts.sum()
        return found

    @staticmethod
    def _parts(program: Program, episodes: Sequence[Array]) -> list[Array] | None:
        """What every part achieved, in all episodes together."""
        ends = np.cumsum([0, *(part.steps for part in program)]).tolist()
        found = [np.concatenate([rows[a:b] for rows in episodes]) for a, b in pairwise(ends)]
        return found if all(len(rows) for rows in found) else None


def _laid_out(entries: Sequence[str], weights: Array64, steps: int) -> Program | None:
    kept = [(entry, weight) for entry, weight in zip(entries, weights.tolist(), strict=True) if weight > LEAST]
    if not kept:
        return None
    total = sum(weight for _, weight in kept)
    # Apportioned by the thousandth of a step, so that the shares are kept.
    return tidied(tuple(ProgramPart(entry, max(1, round(1000 * steps * w / total))) for entry, w in kept), steps)
