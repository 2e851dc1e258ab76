"""Files and frames that tables lie in: columns of numbers and words, and what is wrong with their cells."""

from __future__ import annotations

import csv
import gzip
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.files import reading
from himatch.data.checks import listed
from himatch.errors import DataError

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


def _no_number(name: str, cell: object, place: str, where: str) -> DataError:
    return DataError(
        f"{where}: column {listed([name])} holds {listed([repr(cell)])} in {place}, which is no number; mend the row, "
        "drop its episode or leave the column out"
    )


class StepTable(Protocol):
    """What tables are read through."""

    where: str

    def read_names(self) -> list[str]:
        """Names of all columns."""

    def read(
        self, names: list[str], readers: Mapping[int, Reader], texts: list[int]
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """The columns with readers as numbers and others as words, ``(rows, columns)`` each."""

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


def is_csv_table(path: Path) -> bool:
    """Whether the name is that of a CSV table, which gzip may have compressed."""
    return path.name.lower().endswith((".csv", ".csv.gz"))


def open_table(source: Path | DataFrame) -> StepTable:
    """What reads a file or a data frame; nothing is read yet."""
    if not isinstance(source, Path):
        return _InMemory("data frame", source)
    return _Csv(source) if is_csv_table(source) else _Parquet(source)


class _Csv:
    """A CSV file, which gzip may have compressed."""

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)

    def read_names(self) -> list[str]:
        with reading(self.where), _open_csv(self.path) as file:
            header = next(csv.reader(file), [])
        names = [name.strip() for name in header]
        if len(names) == 1 and ";" in names[0]:
            raise DataError(
                f"{self.where}: its columns are separated by semicolons; write commas between columns and points in "
                "decimals"
            )
        return names

    def read(
        self, names: list[str], readers: Mapping[int, Reader], texts: list[int]
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        quick = {i: reader for i, reader in readers.items() if reader is not number}
        try:
            try:
                numbers = self._load(list(readers), np.float64, converters=quick)
            except DataError:  # flags or missing numbers are among them, or something is wrong
                numbers = self._load(list(readers), np.float64, converters=dict(readers))
            return numbers, self._load(texts, np.str_) if texts else _no_words(numbers)
        except DataError as reason:
            raise self._wrong_cell(names, readers, texts) or reason from reason.__cause__

    def _load(self, usecols: list[int], dtype: Any, **more: Any) -> NDArray[Any]:
        layout: dict[str, Any] = {"delimiter": ",", "quotechar": '"', "comments": None, "ndmin": 2}
        with reading(self.where), _open_csv(self.path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty table is reported by the caller, and zones of times are known
            next(csv.reader(file), None)  # the header, which may hold quoted line breaks
            return np.asarray(np.loadtxt(file, dtype=dtype, usecols=usecols, **layout, **more))

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """The line and the cells of every row below the header that holds any."""
        with reading(self.where):
            file = _open_csv(self.path)
        with file:
            rows, header = csv.reader(file), True
            while True:
                with reading(self.where):
                    row = next(rows, None)
                if row is None:
                    return
                if row and not header:
                    yield rows.line_num, row
                header = False

    def _wrong_cell(self, names: list[str], readers: Mapping[int, Reader], texts: list[int]) -> DataError | None:
        """What is wrong with the first row that cannot be read."""
        for line, row in self._rows():
            place = f"line {line}"
            if len(row) <= max([*readers, *texts]):
                return DataError(f"{self.where}: {place} has {len(row)} columns, the header has {len(names)}")
            for i, reader in readers.items():
                try:
                    reader(row[i])
                except ValueError:
                    return _no_number(names[i], row[i], place, self.where)
        return None

    def place(self, row: int) -> str:
        try:
            return f"line {next(islice(self._rows(), row, None))[0]}"
        except DataError:  # a cell that is longer than this reader likes
            return f"row {row + 1}"


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

    def read(
        self, names: list[str], readers: Mapping[int, Reader], texts: list[int]
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        columns = self._columns(names, dict.fromkeys([*readers, *texts]))
        numbers = [self._numbers(columns[i], reader, names[i]) for i, reader in readers.items()]
        rows = np.stack(numbers, axis=1)
        return rows, np.stack([self._words(columns[i]) for i in texts], axis=1) if texts else _no_words(rows)

    def _numbers(self, column: Any, reader: Reader, name: str) -> NDArray[np.float64]:
        with reading(self.where):
            values = np.asarray(column.to_numpy())
        try:
            numbers = np.asarray(values, dtype=np.float64)
        except (ValueError, TypeError):  # words, lists, times with a zone
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy converts zones of times, and says that it keeps none
                return np.array([self._cell(cell, row, reader, name) for row, cell in enumerate(values)])
        return np.where(np.isnat(values), np.nan, numbers) if values.dtype.kind in "mM" else numbers

    def _cell(self, cell: object, row: int, reader: Reader, name: str) -> float:
        try:
            return reader(cell)
        except ValueError:
            raise _no_number(name, cell, self.place(row), self.where) from None

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


def _no_words(numbers: NDArray[np.float64]) -> NDArray[np.str_]:
    return np.empty((len(numbers), 0), dtype=np.str_)


def compressed(path: Path) -> bool:
    """Whether the name says that gzip has compressed the file."""
    return path.suffix.lower() == ".gz"


def _open_csv(path: Path) -> IO[str]:
    opener = gzip.open if compressed(path) else open
    return cast("IO[str]", opener(path, "rt", newline="", encoding="utf-8-sig"))


def _parquet() -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError('Parquet tables need pyarrow: pip install "himatch[arrow]"') from None
    return parquet
