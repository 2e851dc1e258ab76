"""Where in its source an episode and a step are, for messages."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.files import reading
from himatch.data.columns import split_units
from himatch.data.csv_files import csv_rows, is_csv_table, line_of, open_csv
from himatch.data.wording import listed
from himatch.errors import DataError


@dataclass(frozen=True, eq=False)
class Places:
    """What a source calls its episodes and where in it their rows are; episodes without names are counted.

    ``names`` has one for each episode, or none at all. ``rows`` ``(N,)`` are those of a table, counted from 0, and -1
    for what came from no table. ``tables`` says from which step on which file they are rows of, '' for a data frame.
    ``said`` are words that stand for no finite number, by step and column, of tables that are no text.
    """

    names: tuple[str | None, ...] = ()
    rows: NDArray[np.int64] | None = None
    tables: tuple[tuple[int, str], ...] = ()
    said: Mapping[tuple[int, str], str] = field(default_factory=dict)

    def name(self, episode: int) -> str | None:
        """What the source calls an episode, where it does."""
        return self.names[episode] if self.names else None

    def episode(self, episode: int, number: int | None = None) -> str:
        """An episode, for a message; ``number`` counts those that have no name."""
        name = self.name(episode)
        return str(episode if number is None else number) if name is None else listed([repr(name)])

    def row(self, step: int) -> str | None:
        """Line or row of the table that a step is, where there is one."""
        if self.rows is None or self.rows[step] < 0:
            return None
        table = next(path for first, path in reversed(self.tables) if first <= step)
        row = int(self.rows[step])
        place = line_of(Path(table), row) if table and is_csv_table(Path(table)) else f"row {row + 1}"
        return place if len(self.tables) == 1 or not table else f"{Path(table).name}, {place}"

    def cell(self, step: int, column: str) -> str | None:
        """What a table holds of a step in a column of that name, as it stands there; of others than CSV words alone."""
        if (step, column) in self.said:
            return self.said[step, column]
        if self.rows is None or self.rows[step] < 0:
            return None
        table = Path(next(path for first, path in reversed(self.tables) if first <= step))
        return cell_of(table, int(self.rows[step]), column) if is_csv_table(table) else None


def cell_of(path: Path, row: int, column: str) -> str | None:
    """A cell of a CSV file by its row and the name of its column, which may have a unit there."""
    try:
        with reading(str(path)), open_csv(path) as file:
            names, _ = split_units([name.strip() for name in next(csv.reader(file), [])])
        return next(islice(csv_rows(path), row, None))[1][names.index(column)]
    except (DataError, StopIteration, ValueError, IndexError):  # another file by now
        return None


def join_places(parts: Sequence[Places], episodes: Sequence[int], steps: Sequence[int]) -> Places:
    """The places of joined sources, which have so many episodes and steps."""
    names: list[str | None] = []
    rows: list[NDArray[np.int64]] = []
    tables: list[tuple[int, str]] = []
    said: dict[tuple[int, str], str] = {}
    for part, count, length in zip(parts, episodes, steps, strict=True):
        first = sum(map(len, rows))
        names += part.names or (None,) * count
        said |= {(first + step, column): word for (step, column), word in part.said.items()}
        tables += [(first + start, path) for start, path in part.tables]
        rows.append(np.full(length, -1, np.int64) if part.rows is None else part.rows)
    unnamed = all(name is None for name in names)
    return Places(() if unnamed else tuple(names), np.concatenate(rows) if tables else None, tuple(tables), said)
