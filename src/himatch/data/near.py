"""Episodes that are nearly the same: rounded, with noise, or with a few steps missing at their ends.

Their means tell most pairs apart, a few steps most of the others, and only what is left is read from end to end. Every
step has to agree, the first one too: a policy that settles in the same state from two starts has played two episodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from himatch.data.alike import EpisodeArrays
from himatch.statistics.fences import sample_rows
from himatch.types import Array

SAME = 3e-3  # of the spread of a column: by what the values of copies differ at most
LEAST = 1e-4  # a spread: what varies less may be nothing but noise
MOVES = 10.0  # times more than it differs from its copy an episode varies; one that stands still says nothing
CUT = 5  # steps that may be missing at each end
FEWEST = 10  # steps that both have
LOOKED_AT = (0.5, 0.0, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875)  # parts of the steps that both have, to tell pairs apart
SAMPLE = 10_000  # rows that spreads are estimated from
COLUMNS = 64  # looked at together
AT_ONCE = 16_384  # pairs compared at a time

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sketch:
    """Mean and deviation of each column in every episode, ``(E, obs + act)``."""

    means: Floats
    deviations: Floats


class Sketched(EpisodeArrays, Protocol):
    """Packed episodes with their sketch."""

    @property
    def sketch(self) -> Sketch:
        """Found once."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some of packed episodes."""

    packed: Sketched
    episodes: Numbers

    def sample(self) -> Numbers:
        """Some rows, spread over all of them."""
        lengths, starts = self.packed.lengths[self.episodes], self.packed.starts[self.episodes]
        ends = np.cumsum(lengths)
        rows = sample_rows(int(ends[-1]))
        rows = rows[:: -(-len(rows) // SAMPLE)]
        return rows + (starts - (ends - lengths))[np.searchsorted(ends, rows, side="right")]

    def rows(self, places: Numbers) -> Floats:
        """Steps with their observations and actions."""
        both = (self.packed.observations[places], self.packed.actions[places])
        return np.concatenate(both, axis=1).astype(np.float64)


def make_sketch(packed: EpisodeArrays) -> Sketch:
    """One pass over the steps, an episode at a time."""
    arrays = (packed.observations, packed.actions)
    width = sum(array.shape[1] for array in arrays)
    means, deviations = np.empty((2, len(packed.lengths), width))
    with np.errstate(over="ignore", invalid="ignore"):  # of episodes that nobody takes
        for episode, (start, length) in enumerate(zip(packed.starts.tolist(), packed.lengths.tolist(), strict=True)):
            column = 0
            for array in arrays:
                rows = array[start : start + length]
                columns = slice(column, column + rows.shape[1])
                mean = rows.mean(axis=0, dtype=np.float64)
                means[episode, columns] = mean
                squares = np.einsum("nd,nd->d", centred := rows - mean.astype(rows.dtype), centred)
                deviations[episode, columns] = np.sqrt(squares / length)
                column = columns.stop
    return Sketch(means, deviations)


def near_pairs(one: Part, other: Part) -> list[tuple[int, int]]:
    """Episodes of ``one`` that are nearly the same as one of ``other``, each with the first such, by their positions.

    What is exactly the same counts, too.
    """
    if not len(one.episodes) or not len(other.episodes) or one.packed.actions.shape[1] != other.packed.actions.shape[1]:
        return []
    spread = _spread(one, other)
    if spread is None:
        return []
    found: dict[int, int] = {}
    for i, j in _alike_on_the_whole(one, other, spread):
        for shift in range(-CUT, CUT + 1):
            chosen = _alike_at_some_steps(one, other, i, j, shift, spread)
            for a, b in zip(i[chosen].tolist(), j[chosen].tolist(), strict=True):
                if found.get(a, b + 1) > b and _alike_throughout(one, other, a, b, shift, spread):
                    found[a] = b
    return sorted(found.items())


def _spread(one: Part, other: Part) -> Floats | None:
    """The spread of each column in which something changes at all, others infinite; outliers do not stretch it."""
    if one.packed.observations.shape[1] != other.packed.observations.shape[1]:
        return None
    places, found = [part.sample() for part in (one, other)], list[Floats]()
    for name in ("observations", "actions"):
        arrays: list[Array] = [getattr(part.packed, name) for part in (one, other)]
        for first in range(0, arrays[0].shape[1], COLUMNS):
            some = [array[rows, first : first + COLUMNS] for array, rows in zip(arrays, places, strict=True)]
            sample = np.concatenate(some).astype(np.float64)
            low, high = np.quantile(sample, (0.01, 0.99), axis=0)
            spread = np.clip(sample, low, high).std(axis=0)
            found.append(np.where(spread > 0, spread, sample.std(axis=0)))  # a flag that is hardly ever raised
    spreads = np.concatenate(found)
    return np.where(spreads > 0, np.maximum(spreads, LEAST), np.inf) if (spreads > 0).any() else None


def _overlap(one: Part, other: Part, i: Numbers, j: Numbers, shift: int) -> tuple[Numbers, Numbers, Numbers]:
    """The first rows of two episodes, of which one begins ``shift`` steps later, and how many both have: 0 if few."""
    e, f = one.episodes[i], other.episodes[j]
    a, b = one.packed.lengths[e] - max(shift, 0), other.packed.lengths[f] - max(-shift, 0)
    both = np.minimum(a, b)
    enough = (both >= FEWEST) & (np.abs(a - b) <= CUT)
    starts = one.packed.starts[e] + max(shift, 0), other.packed.starts[f] + max(-shift, 0)
    return *starts, np.where(enough, both, 0)


def _alike_on_the_whole(one: Part, other: Part, spread: Floats) -> Iterator[tuple[Numbers, Numbers]]:
    """Pairs whose means differ by no more than rounding and the steps that are cut off can explain."""
    (ours, theirs), lengths = (part.packed.sketch for part in (one, other)), one.packed.lengths[one.episodes]
    means, others = ours.means[one.episodes], theirs.means[other.episodes]
    # Steps that are cut off lie some deviations from the mean, and they are a small part of the episode.
    cut = 2 * CUT / np.maximum(lengths - 2 * CUT, 1)
    slack = SAME * spread + 4.0 * ours.deviations[one.episodes] * cut[:, None]
    telling = np.argsort(-(means.std(axis=0) / slack.mean(axis=0)))
    for first in range(0, len(others), rows := max(1, AT_ONCE // len(means))):
        some = others[first : first + rows]
        column = telling[0]
        j, i = np.nonzero(np.abs(some[:, None, column] - means[None, :, column]) <= slack[:, column])
        for column in telling[1:]:
            near = np.abs(some[j, column] - means[i, column]) <= slack[i, column]
            i, j = i[near], j[near]
        yield i, first + j


def _alike_at_some_steps(one: Part, other: Part, i: Numbers, j: Numbers, shift: int, spread: Floats) -> Numbers:
    """Which of the pairs agree at a few steps, and vary more than they differ there."""
    a, b, both = _overlap(one, other, i, j, shift)
    left = np.flatnonzero(both)
    apart = np.zeros(len(i))
    for place in LOOKED_AT:
        if not len(left):
            return left
        step = (place * both[left]).astype(np.int64)
        differ = (one.rows(a[left] + step) - other.rows(b[left] + step)) / spread
        apart[left] += (differ**2).mean(axis=1) / len(LOOKED_AT)
        left = left[(np.abs(differ) <= SAME).all(axis=1)]
    moved = ((one.packed.sketch.deviations[one.episodes[i[left]]] / spread) ** 2).mean(axis=1)
    varied: NDArray[np.bool_] = moved * 4 > MOVES**2 * apart[left]
    return left[varied]


def _alike_throughout(one: Part, other: Part, i: int, j: int, shift: int, spread: Floats) -> bool:
    """Whether two episodes agree at every step that both have, and vary far more than they differ."""
    a, b, both = (int(x[0]) for x in _overlap(one, other, np.array([i]), np.array([j]), shift))
    ours, theirs = one.rows(np.arange(a, a + both)), other.rows(np.arange(b, b + both))
    differ = (ours - theirs) / spread
    if (np.abs(differ) > SAME).any():
        return False
    moved = ((ours.std(axis=0) / spread) ** 2).mean()
    return bool(moved > MOVES**2 * (differ**2).mean())
