"""Which episodes are the same, by their observations and actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from himatch.types import Array

Numbers = NDArray[np.int64]
BLOCK = 65536  # rows compared at a time


class EpisodeArrays(Protocol):
    """Packed episodes, as far as they are compared."""

    @property
    def observations(self) -> Array:
        """All steps, ``(N, obs)``."""

    @property
    def actions(self) -> Array:
        """All steps, ``(N, act)``."""

    @property
    def lengths(self) -> Numbers:
        """Steps of every episode."""

    @property
    def starts(self) -> Numbers:
        """First row of every episode."""


def twin_numbers(*parts: EpisodeArrays) -> list[Numbers]:
    """A number for every episode of every part, ``(E,)``: the same for the same observations and actions.

    Only episodes of one length that begin and end alike are read.
    """
    known: dict[bytes, list[tuple[int, EpisodeArrays, int]]] = {}
    numbers, count = [], 0
    for packed in parts:
        found = np.empty(len(packed.lengths), dtype=np.int64)
        for episode, key in enumerate(_keys(packed)):
            alike = known.setdefault(key, [])
            twin = next((number for number, other, e in alike if _same(packed, episode, other, e)), None)
            if twin is None:
                twin, count = count, count + 1
                alike.append((twin, packed, episode))
            found[episode] = twin
        numbers.append(found)
    return numbers


def _keys(packed: EpisodeArrays) -> Iterator[bytes]:
    """Length, first and last step of every episode."""
    last = packed.starts + packed.lengths - 1
    edges = [array[rows] for array in (packed.observations, packed.actions) for rows in (packed.starts, last)]
    together = np.ascontiguousarray(np.concatenate(edges, axis=1))
    return (int(n).to_bytes(8, "little") + row.tobytes() for n, row in zip(packed.lengths, together, strict=True))


def _same(one: EpisodeArrays, i: int, other: EpisodeArrays, j: int) -> bool:
    """Whether two episodes, which have the same length, hold the same observations and actions."""
    a, b, steps = int(one.starts[i]), int(other.starts[j]), int(one.lengths[i])
    return all(
        np.array_equal(ours[a + t : a + min(t + BLOCK, steps)], theirs[b + t : b + min(t + BLOCK, steps)])
        for ours, theirs in ((one.observations, other.observations), (one.actions, other.actions))
        for t in range(0, steps, BLOCK)
    )
