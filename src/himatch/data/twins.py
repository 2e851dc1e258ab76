"""Episodes that are there twice: in joined sources, in copies, in what is trained on and what is held out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from himatch.data.packed import BLOCK, Packed

if TYPE_CHECKING:
    from himatch.data.dataset import TrajectoryDataset

Numbers = NDArray[np.int64]


def twin_numbers(*parts: Packed) -> list[Numbers]:
    """A number for every episode of every part, ``(E,)``: the same for the same observations and actions.

    Only episodes of one length that begin and end alike are read.
    """
    known: dict[bytes, list[tuple[int, Packed, int]]] = {}
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


def numbers_of(dataset: TrajectoryDataset) -> Numbers:
    """The numbers of the episodes of a selection, found once for all selections from the same data."""
    return dataset.packed.twins[dataset.packed_episodes]


def leaks(train: TrajectoryDataset, held_out: TrajectoryDataset) -> list[tuple[int, int]]:
    """Training episodes that are the same as a held-out one, each with the first such, as positions in the two."""
    if train.packed is held_out.packed:
        trained, held = numbers_of(train), numbers_of(held_out)
    else:
        ours, theirs = twin_numbers(train.packed, held_out.packed)
        trained, held = ours[train.packed_episodes], theirs[held_out.packed_episodes]
    first = {number: i for i, number in reversed(list(enumerate(held.tolist())))}
    return [(i, first[number]) for i, number in enumerate(trained.tolist()) if number in first]


def copies(dataset: TrajectoryDataset) -> list[tuple[int, int]]:
    """Episodes that are the same as an earlier one, each with the first such."""
    first: dict[int, int] = {}
    return [(i, first[n]) for i, n in enumerate(numbers_of(dataset).tolist()) if first.setdefault(n, i) != i]


def listed_pairs(pairs: list[tuple[int, int]], one: TrajectoryDataset, other: TrajectoryDataset, most: int = 3) -> str:
    """Some pairs of episodes, for a message."""
    shown = [f"{one.episode_name(i)} as {other.episode_name(j)}" for i, j in pairs[:most]]
    return ", ".join(shown) + (", ..." if len(pairs) > most else "")


def _keys(packed: Packed) -> Iterator[bytes]:
    """Length, first and last step of every episode."""
    last = packed.starts + packed.lengths - 1
    edges = [array[rows] for array in (packed.observations, packed.actions) for rows in (packed.starts, last)]
    together = np.ascontiguousarray(np.concatenate(edges, axis=1))
    return (int(n).to_bytes(8, "little") + row.tobytes() for n, row in zip(packed.lengths, together, strict=True))


def _same(one: Packed, i: int, other: Packed, j: int) -> bool:
    """Whether two episodes, which have the same length, hold the same observations and actions."""
    a, b, steps = int(one.starts[i]), int(other.starts[j]), int(one.lengths[i])
    return all(
        np.array_equal(ours[a + t : a + min(t + BLOCK, steps)], theirs[b + t : b + min(t + BLOCK, steps)])
        for ours, theirs in ((one.observations, other.observations), (one.actions, other.actions))
        for t in range(0, steps, BLOCK)
    )
