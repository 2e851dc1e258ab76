"""Cells of a table as numbers, and what is wrong with some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = ("", "none", "nan", "null", "na", "n/a", "<na>", "nat")

Reader = Callable[[object], float]


def number(cell: object) -> float:
    """A cell as a number: flags are 1 and 0, what is missing is NaN."""
    word = str(cell).strip().lower()
    if word in MISSING:
        return np.nan
    return float({"true": 1, "false": 0}.get(word, word))


def moment(cell: object) -> float:
    """A step as a number, or an ISO time in nanoseconds, as Parquet's times are."""
    try:
        return number(cell)
    except ValueError:
        text = str(cell).strip()
        if not text[:4].isdigit():  # NumPy would understand "today"
            raise
        try:
            return float(np.datetime64(text, "ns").astype(np.int64))
        except OverflowError:  # a year that nanoseconds cannot count to
            raise ValueError(text) from None


@dataclass(frozen=True)
class WrongCell:
    """A cell that is no number; ``column`` and ``cell`` are ``None`` in a row that has not as many as the header."""

    row: int
    column: int | None
    cell: str | None
    width: int = 0


@dataclass(frozen=True)
class TableContent:
    """The rows of a table: columns of numbers and columns of words, ``(rows, columns)`` each.

    Wrong cells are zero among the numbers. ``times`` are columns that hold dates, in nanoseconds.
    """

    numbers: NDArray[np.float64]
    words: NDArray[Any]
    wrong: list[WrongCell]
    times: frozenset[int]


def is_date(cell: object) -> bool:
    """Whether a cell of times is a date, for it is no number."""
    try:
        number(cell)
    except ValueError:
        return True
    return False


def read_cell(cell: object, row: int, column: int, reader: Reader, wrong: list[WrongCell]) -> float:
    """A cell as a number; one that is none is added to the wrong ones."""
    try:
        return float(cell) if isinstance(cell, str) else reader(cell)
    except ValueError:
        pass
    try:
        return reader(cell)
    except ValueError:
        wrong.append(WrongCell(row, column, repr(cell)))
        return 0.0


def no_words(numbers: NDArray[np.float64]) -> NDArray[np.str_]:
    """No columns of words, for as many rows."""
    return np.empty((len(numbers), 0), dtype=np.str_)
