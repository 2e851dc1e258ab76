"""Files and frames that tables lie in: columns of numbers and words."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.files import reading
from himatch.data.cells import (
    MISSING,
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
from himatch.data.csv_files import is_csv_table
from himatch.data.csv_tables import CsvTable
from himatch.errors import DataError

REMEMBERED = 1000  # words of a column that are no finite numbers


class StepTable(Protocol):
    """What tables are read through."""

    where: str

    def read_names(self) -> list[str]:
        """Names of all columns."""

    def read(self, names: list[str], readers: Mapping[int, Reader], texts: list[int]) -> TableContent:
        """The columns with readers as numbers, and others as words."""

    def place(self, row: int) -> str:
        """Where a reader of the file finds a row."""


class DataFrame(Protocol):
    """A data frame of pandas or polars, or a table of pyarrow."""

    @property
    def columns(self) -> Any:
        """Names of the columns (pyarrow: the columns)."""

    def __getitem__(self, key: Any) -> Any:
        """A column."""


def is_frame(source: object) -> TypeGuard[DataFrame]:
    """Whether it is a data frame, of whatever library."""
    return hasattr(source, "columns") and hasattr(source, "__getitem__")


def open_table(source: Path | DataFrame) -> StepTable:
    """What reads a file or a data frame; nothing is read yet."""
    if not isinstance(source, Path):
        return _InMemory("data frame", source)
    return CsvTable(source) if is_csv_table(source) else _Parquet(source)


class _InMemory:
    """A data frame."""

    def __init__(self, where: str, frame: DataFrame) -> None:
        self.where, self.frame = where, frame

    def read_names(self) -> list[str]:
        return [str(name) for name in self._keys()]

    def _keys(self) -> list[Any]:
        return list(getattr(self.frame, "column_names", self.frame.columns))

    def _columns(self, names: list[str], chosen: Iterable[int]) -> dict[int, Any]:
        keys = self._keys()
        with reading(self.where):
            return {i: self.frame[keys[i]] for i in chosen}

    def read(self, names: list[str], readers: Mapping[int, Reader], texts: list[int]) -> TableContent:
        columns = self._columns(names, dict.fromkeys([*readers, *texts]))
        found = TableContent(np.empty((0, 0)), np.empty((0, 0)), [], frozenset())
        numbers = list[NDArray[np.float64]]()
        for i, reader in readers.items():
            values, found = self._numbers(columns[i], i, reader, found)
            numbers.append(values)
        rows = np.stack(numbers, axis=1)
        words = np.stack([self._words(columns[i]) for i in texts], axis=1) if texts else no_words(rows)
        return replace(found, numbers=rows, words=words)

    def _numbers(
        self, column: Any, i: int, reader: Reader, found: TableContent
    ) -> tuple[NDArray[np.float64], TableContent]:
        """A column of numbers, and what was found with what is remarkable about it."""
        with reading(self.where):
            values = np.asarray(column.to_numpy())
        if values.dtype.kind in "mM":
            with reading(self.where):
                counted = values.astype(f"{values.dtype.kind}8[ns]").astype(np.float64)
            return np.where(np.isnat(values), np.nan, counted), replace(found, times=found.times | {i})
        if values.dtype.kind in "fiub" or not {type(cell) for cell in values} & {str, np.str_, bool, np.bool_}:
            try:
                return np.asarray(values, dtype=np.float64), found
            except (ValueError, TypeError):  # lists, times with a zone
                pass
        dates = {i} if reader is not number and len(values) and is_date(values[0]) else frozenset[int]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy converts zones of times, and says that it keeps none
            numbers = np.array([read_cell(cell, row, i, reader, found.wrong) for row, cell in enumerate(values)])
        flag = next((row for row, cell in enumerate(values) if is_flag(cell)), None) if among_numbers(numbers) else None
        flags = () if flag is None else (WrongCell(flag, i, repr(values[flag])),)
        with np.errstate(over="ignore"):
            missing = np.flatnonzero(~np.isfinite(numbers.astype(np.float32)))[:REMEMBERED].tolist()
        said = {(row, i): values[row] for row in missing if isinstance(values[row], str)}
        return numbers, replace(
            found, times=found.times | dates, flags=found.flags + flags, said={**found.said, **said}
        )

    def _words(self, column: Any) -> NDArray[np.str_]:
        """A column as text; what is missing is an empty cell, as in CSV."""
        with reading(self.where):
            cells = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
        empty = (not isinstance(cell, str) and str(cell).lower() in MISSING for cell in cells)
        return np.array(["" if no else str(cell) for no, cell in zip(empty, cells, strict=True)], dtype=np.str_)

    def place(self, row: int) -> str:
        return f"row {row + 1}"


class _Parquet(_InMemory):
    """A Parquet file, of which the columns that are needed are read."""

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)

    def read_names(self) -> list[str]:
        parquet = _parquet()
        with reading(self.where):
            return list(parquet.read_schema(self.path).names)

    def _columns(self, names: list[str], chosen: Iterable[int]) -> dict[int, Any]:
        parquet, wanted = _parquet(), {i: names[i] for i in chosen}
        with reading(self.where):
            table = parquet.read_table(self.path, columns=list(wanted.values()))
            return {i: table[name] for i, name in wanted.items()}


def _parquet() -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError('Parquet tables need pyarrow: pip install "himatch[arrow]"') from None
    return parquet
