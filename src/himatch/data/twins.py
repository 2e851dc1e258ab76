"""Episodes that are there twice: in joined sources, in copies, in what is trained on and what is held out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from himatch.data.alike import twin_numbers
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


def copies(dataset: Selection) -> list[tuple[int, int]]:
    """Episodes that are the same as an earlier one, each with the first such."""
    first: dict[int, int] = {}
    return [(i, first[n]) for i, n in enumerate(numbers_of(dataset).tolist()) if first.setdefault(n, i) != i]


def listed_pairs(pairs: list[tuple[int, int]], one: Selection, other: Selection, most: int = 3) -> str:
    """Some pairs of episodes, for a message."""
    shown = [f"{one.episode_name(i)} as {other.episode_name(j)}" for i, j in pairs[:most]]
    return ", ".join(shown) + (", ..." if len(pairs) > most else "")
