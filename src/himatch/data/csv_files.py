"""CSV files as text: opened, and row by row with their lines."""

from __future__ import annotations

import codecs
import csv
import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, cast

from himatch._runtime.files import reading
from himatch.errors import DataError


def compressed(path: Path) -> bool:
    """Whether the name says that gzip has compressed the file."""
    return path.suffix.lower() == ".gz"


def is_csv_table(path: Path) -> bool:
    """Whether the name is that of a CSV table, which gzip may have compressed."""
    return path.name.lower().endswith((".csv", ".csv.gz"))


def open_csv(path: Path) -> IO[str]:
    """The file to read."""
    opener = gzip.open if compressed(path) else open
    with opener(path, "rb") as raw:
        start = raw.read(2)
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or b"\0" in start:  # which letters have in UTF-16
        raise DataError(f"{path}: its text is UTF-16; save it as UTF-8")
    return cast("IO[str]", opener(path, "rt", newline="", encoding="utf-8-sig"))


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The line and the cells of every row below the header that holds any."""
    where = str(path)
    with reading(where):
        file = open_csv(path)
    with file:
        rows, header = csv.reader(file), True
        while True:
            with reading(where):
                row = next(rows, None)
            if row is None:
                return
            if row and not header:
                yield rows.line_num, row
            header = False


def line_of(path: Path, row: int) -> str:
    """Where a reader of the file finds a row."""
    try:
        return f"line {next(islice(csv_rows(path), row, None))[0]}"
    except (DataError, StopIteration):  # a cell that is longer than this reader likes, or another file by now
        return f"row {row + 1}"
