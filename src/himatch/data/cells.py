"""Cells of a table as numbers, and what is wrong with some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLAGS = {"true": 1.0, "false": 0.0}
MISSING = ("", "none", "nan", "null", "na", "n/a", "<na>", "nat")

Reader = Callable[[object], float]


def number(cell: object) -> float:
    """A cell as a number: flags are 1 and 0, what is missing is NaN."""
    word = str(cell).strip().lower()
    if word in MISSING:
        return np.nan
    if "_" in word:  # 1_000 is a number to Python alone
        raise ValueError(word)
    return FLAGS[word] if word in FLAGS else float(word)


def is_flag(cell: object) -> bool:
    """Whether a cell is true or false."""
    return str(cell).strip().lower() in FLAGS


def among_numbers(column: NDArray[np.float64]) -> bool:
    """Whether a column with flags holds other numbers than these."""
    return bool((np.isfinite(column) & (column != 0) & (column != 1)).any())


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

    Wrong cells are zero among the numbers. ``times`` are columns that hold dates, in nanoseconds. ``flags`` are the
    first true or false of columns that hold other numbers, too. ``said`` are words that stand for no finite number, by
    row and column, where the table cannot be asked for them again.
    """

    numbers: NDArray[np.float64]
    words: NDArray[Any]
    wrong: list[WrongCell]
    times: frozenset[int]
    flags: tuple[WrongCell, ...] = ()
    said: Mapping[tuple[int, int], str] = field(default_factory=dict)


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
        return float(cell) if isinstance(cell, str) and "_" not in cell else reader(cell)
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
