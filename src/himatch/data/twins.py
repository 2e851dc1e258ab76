"""Episodes that are there twice, or nearly: in joined sources, in what is trained on and what is held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from himatch.data.alike import twin_numbers
from himatch.data.near import Part, near_pairs
from himatch.data.selection import Selection

Numbers = NDArray[np.int64]


def numbers_of(dataset: Selection) -> Numbers:
    """The numbers of the episodes of a selection, found once for all selections from the same data."""
    return dataset.packed.twins[dataset.packed_episodes]


def leaks(train: Selection, held_out: Selection) -> list[tuple[int, int]]:
    """Training episodes that are the same as a held-out one, each with the first such, as positions in the two."""
    if train.packed is held_out.packed:
        trained, held = numbers_of(train), numbers_of(held_out)
    else:
        ours, theirs = twin_numbers(train.packed, held_out.packed)
        trained, held = ours[train.packed_episodes], theirs[held_out.packed_episodes]
    first = {number: i for i, number in reversed(list(enumerate(held.tolist())))}
    return [(i, first[number]) for i, number in enumerate(trained.tolist()) if number in first]


def near_leaks(train: Selection, held_out: Selection) -> list[tuple[int, int]]:
    """Training episodes that are nearly the same as a held-out one, exact copies among them, each with the first."""
    return near_pairs(Part(train.packed, train.packed_episodes), Part(held_out.packed, held_out.packed_episodes))


def copies(dataset: Selection) -> list[tuple[int, int]]:
    """Episodes that are the same as an earlier one, each with the first such."""
    first: dict[int, int] = {}
    return [(i, first[n]) for i, n in enumerate(numbers_of(dataset).tolist()) if first.setdefault(n, i) != i]


def listed_pairs(pairs: Sequence[tuple[int, int]], name: Callable[[int], str], most: int = 3) -> str:
    """Some pairs of episodes, for a message."""
    return ", ".join(f"{name(i)} as {name(j)}" for i, j in pairs[:most]) + ", ..." * (len(pairs) > most)
