"""Values far beyond the others of their column: faults of a log that no check of types and ranges finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from himatch.data.packed import BLOCK
from himatch.data.selection import Selection
from himatch.statistics.fences import SENTINELS, Fences, sample_rows
from himatch.types import Array

SHOWN = 3


@dataclass(frozen=True)
class Extreme:
    """One such value; ``place`` says where it is in the source, where that is a table."""

    value: float
    episode: int
    step: int
    place: str

    def __str__(self) -> str:
        return f"{self.value:g} in {self.place}"


@dataclass(frozen=True)
class Extremes:
    """The extreme values of one column: how many, the first of them, and between what the others lie.

    ``share`` is the part of the steps that they are, where all are the same number, as a missing value is marked.
    """

    name: str
    count: int
    first: tuple[Extreme, ...]
    low: float
    high: float
    share: float | None = None

    def __str__(self) -> str:
        if self.share is not None:
            return (
                f"{self.name} is {self.first[0].value:g} in {self.count:,} steps ({100 * self.share:.2g} %), as "
                f"missing values are marked, the others lie between {self.low:g} and {self.high:g}: first in "
                f"{self.first[0].place}"
            )
        more = ", ..." if self.count > len(self.first) else ""
        return (
            f"{self.name} has {self.count:,} extreme value{'s' * (self.count > 1)}, the others lie between "
            f"{self.low:g} and {self.high:g}: {'; '.join(map(str, self.first))}{more}"
        )


def find_extremes(dataset: Selection) -> tuple[Extremes, ...]:
    """The columns of observations, actions and rewards that hold extreme values; all steps are read once."""
    packed, found = dataset.packed, []
    for name in ("observations", "actions", "rewards"):
        array: Array | None = getattr(packed, name)
        if name == "actions" and packed.facts.discrete is not None:  # rare ones are rare, and nothing more
            continue
        if array is not None and dataset.steps:
            found += _extremes_of(dataset, name, array if array.ndim == 2 else array[:, None])
    return tuple(found)


def holds_extremes(dataset: Selection, found: Sequence[Extremes]) -> NDArray[np.bool_]:
    """Which episodes hold extreme values, ``(E,)``."""
    packed, held = dataset.packed, np.zeros(len(dataset), dtype=bool)
    usual = {one.name: (one.low, one.high) for one in found}
    for name in ("observations", "actions", "rewards"):
        array: Array | None = getattr(packed, name)
        if array is None:
            continue
        rows = array if array.ndim == 2 else array[:, None]
        for column in range(rows.shape[1]):
            if (called := packed.called(name, column)) in usual:
                low, high = usual[called]
                for number, episode in enumerate(dataset.packed_episodes):
                    start = packed.starts[episode]
                    values = rows[start : start + packed.lengths[episode], column]
                    held[number] |= bool(((values < low) | (values > high)).any())
    return held


def _extremes_of(dataset: Selection, name: str, array: Array) -> list[Extremes]:
    ends, shifts = np.cumsum(dataset.lengths), dataset.shifts
    rows = sample_rows(dataset.steps)
    fences = Fences(array[rows + shifts[np.searchsorted(ends, rows, side="right")]])
    for block in dataset.blocks(array, BLOCK):
        fences.add(block)
    below, above = fences.bounds
    if not np.isfinite([below, above]).any():
        return []
    width = array.shape[1]
    counts, first = np.zeros(width, dtype=np.int64), [list[tuple[int, float]]() for _ in range(width)]
    least, most = np.full(width, np.inf), np.full(width, -np.inf)  # of the extreme ones
    low, high = fences.usual
    # Single precision must not move a bound beyond the value that it was made of.
    below, above = below.astype(np.float32), above.astype(np.float32)
    start = 0
    for block in dataset.blocks(array, BLOCK):
        beyond = (block < below) | (block > above)
        if beyond.any():
            counts += beyond.sum(axis=0)
            for column in np.flatnonzero(beyond.any(axis=0)):
                for step in np.flatnonzero(beyond[:, column])[: SHOWN - len(first[column])]:
                    first[column].append((start + int(step), float(block[step, column])))
            least = np.minimum(least, np.where(beyond, block, np.inf).min(axis=0))
            most = np.maximum(most, np.where(beyond, block, -np.inf).max(axis=0))
        start += len(block)
    share = counts / dataset.steps
    marks = (least == most) & (share > SENTINELS)
    return [
        Extremes(
            dataset.packed.called(name, int(column)),
            int(counts[column]),
            tuple(_extreme(dataset, row, value) for row, value in first[column]),
            float(low[column]),
            float(high[column]),
            float(share[column]) if marks[column] else None,
        )
        for column in np.flatnonzero(counts)
    ]


def _extreme(dataset: Selection, row: int, value: float) -> Extreme:
    """What lies in a row of the selection, with its place."""
    ends = np.cumsum(dataset.lengths)
    number = int(np.searchsorted(ends, row, side="right"))
    step = row - int(ends[number] - dataset.lengths[number])
    line = dataset.packed.places.row(row + int(dataset.shifts[number]))
    place = f"episode {dataset.episode_name(number)}, step {step}" + (f" ({line})" if line else "")
    return Extreme(value, number, step, place)
