"""CSV files as tables of numbers: quickly where all is well, cell by cell where something is wrong."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.files import reading
from himatch.data.cells import (
    Reader,
    TableContent,
    WrongCell,
    among_numbers,
    is_date,
    is_flag,
    no_words,
    number,
    read_cell,
)
from himatch.data.csv_files import csv_rows, line_of, open_csv
from himatch.errors import DataError

LOOKED_AT = 1000  # rows whose width is compared with the header's


class CsvTable:
    """A CSV file, which gzip may have compressed."""

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)

    def read_names(self) -> list[str]:
        """Names of all columns."""
        with reading(self.where), open_csv(self.path) as file:
            header = next(csv.reader(file), [])
        names = [name.strip() for name in header]
        if not any(names) and next(csv_rows(self.path), None) is None:
            raise DataError(f"{self.where}: the file is empty")
        if len(names) == 1 and ";" in names[0]:
            raise DataError(
                f"{self.where}: its columns are separated by semicolons; write commas between columns and points in "
                "decimals"
            )
        return names

    def read(self, names: list[str], readers: Mapping[int, Reader], texts: list[int]) -> TableContent:
        """The columns with readers as numbers, and others as words."""
        quick = {i: reader for i, reader in readers.items() if reader is not number}
        try:
            if self._too_wide(len(names)):
                raise DataError(f"{self.where}: rows with more columns than the header")
            flagged = set[int]()
            try:
                numbers = self._load(list(readers), np.float64, converters=quick)
            except DataError:  # flags or missing numbers are among them, or something is wrong
                noticing = {i: _noticing(i, reader, flagged) for i, reader in readers.items()}
                numbers = self._load(list(readers), np.float64, converters=noticing)
            words = self._load(texts, np.str_) if texts else no_words(numbers)
            flags = self._flags(list(readers), numbers, flagged) if flagged else ()
            return TableContent(numbers, words, [], self._times(quick), flags)
        except DataError as reason:
            slowly = self._cell_byread_cell(len(names), readers, texts)
            if slowly is None:
                raise reason from reason.__cause__
            return replace(slowly, times=self._times(quick))

    def _load(self, usecols: list[int], dtype: Any, **more: Any) -> NDArray[Any]:
        layout: dict[str, Any] = {"delimiter": ",", "quotechar": '"', "comments": None, "ndmin": 2}
        with reading(self.where), open_csv(self.path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty table is reported by the caller, and zones of times are known
            next(csv.reader(file), None)  # the header, which may hold quoted line breaks
            return np.asarray(np.loadtxt(file, dtype=dtype, usecols=usecols, **layout, **more))

    def _too_wide(self, width: int) -> bool:
        """Whether one of the first rows has more cells than the header, as decimal commas make them."""
        try:
            return any(_beyond(row, width) for _, row in islice(csv_rows(self.path), LOOKED_AT))
        except DataError:  # a cell that is longer than this reader likes
            return False

    def _times(self, readers: Mapping[int, Reader]) -> frozenset[int]:
        """Which of these columns hold dates, by their first cells."""
        try:
            first = next(csv_rows(self.path), (0, list[str]()))[1]
        except DataError:
            return frozenset()
        return frozenset(i for i in readers if i < len(first) and is_date(first[i]))

    def _cell_byread_cell(self, width: int, readers: Mapping[int, Reader], texts: list[int]) -> TableContent | None:
        """The rows with what is wrong in them; ``None`` if that is nothing that this reader finds."""
        numbers, words, wrong = list[list[float]](), list[list[str]](), list[WrongCell]()
        needed, flagged = max([*readers, *texts], default=-1) + 1, set[int]()
        noticing = {i: _noticing(i, reader, flagged) for i, reader in readers.items()}
        try:
            for row, (_, cells) in enumerate(csv_rows(self.path)):
                if len(cells) < needed or _beyond(cells, width):
                    wrong.append(WrongCell(row, None, None, len(cells)))
                    numbers.append([0.0] * len(readers))
                    # Of a row that was cut off before it names its episode, the one before it says which it is.
                    before = words[-1] if words else [""] * len(texts)
                    words.append([cells[i] if i < len(cells) else before[k] for k, i in enumerate(texts)])
                else:
                    numbers.append([read_cell(cells[i], row, i, reader, wrong) for i, reader in noticing.items()])
                    words.append([cells[i] for i in texts])
        except DataError:
            return None
        if not wrong:
            return None
        flags = self._flags(list(readers), np.array(numbers), flagged) if flagged else ()
        words_read = np.array(words, np.str_).reshape(len(words), -1)
        return TableContent(np.array(numbers), words_read, wrong, frozenset(), flags)

    def _flags(self, columns: list[int], numbers: NDArray[np.float64], flagged: set[int]) -> tuple[WrongCell, ...]:
        """The first true or false in each of these columns that holds other numbers, too."""
        mixed = {i for i, column in zip(columns, numbers.T, strict=True) if i in flagged and among_numbers(column)}
        found: dict[int, WrongCell] = {}
        for row, (_, cells) in enumerate(csv_rows(self.path)):
            for i in mixed - found.keys():
                if i < len(cells) and is_flag(cells[i]):
                    found[i] = WrongCell(row, i, repr(cells[i]))
            if mixed == found.keys():
                break
        return tuple(found.values())

    def place(self, row: int) -> str:
        """Where a reader of the file finds a row."""
        return line_of(self.path, row)


def _noticing(column: int, reader: Reader, flagged: set[int]) -> Reader:
    """A reader that remembers the columns in which true or false came."""

    def read(cell: object) -> float:
        if is_flag(cell):
            flagged.add(column)
        return reader(cell)

    return read


def _beyond(cells: list[str], width: int) -> bool:
    """Whether a row goes on beyond the header; a comma at the end of a line does not count."""
    return len(cells) > width and any(cell.strip() for cell in cells[width:])
