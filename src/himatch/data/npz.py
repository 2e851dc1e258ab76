"""``.npz`` files a part of an array at a time, so that a file need not fit into memory; NumPy reads whole arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.files import reading
from himatch.errors import DataError


@contextmanager
def open_npz(path: Path, where: str) -> Iterator[dict[str, NpzColumn]]:
    """The arrays of a file by name; messages begin with ``where``."""
    with ExitStack() as opened:
        with reading(where):
            # NumPy leaves the file open where it cannot read it, so it is opened here.
            file = opened.enter_context(np.load(opened.enter_context(path.open("rb")), allow_pickle=False))
            members = set(file.zip.namelist())
        for name in file.files:
            if f"{name}.npy" not in members:
                raise DataError(f"{where}: {name} is not an array; write the file with numpy.savez")
        yield {name: NpzColumn(file.zip, f"{name}.npy", where) for name in file.files}


class NpzColumn:
    """An array in a ``.npz`` file. Rows are read from front to back; whoever goes back begins anew."""

    def __init__(self, archive: ZipFile, member: str, where: str) -> None:
        self._archive, self._member, self._where = archive, member, where
        self._file: IO[bytes] | None = None
        self._row = 0
        with reading(where), archive.open(member) as file:
            self.shape, by_columns, self.dtype = _header(file)
        self._whole = by_columns or not self.shape

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Everything (``...``), or some rows and whatever of them."""
        if self.dtype.hasobject:
            raise DataError(
                f"{self._where}: {self._member.removesuffix('.npy')} is an array of Python objects, which are never "
                "read; save it as numbers or text, array.astype(float) or array.astype(str)"
            )
        if key is Ellipsis or self._whole:
            with reading(self._where), self._archive.open(self._member) as file:
                whole = np.lib.format.read_array(file, allow_pickle=False)
            found: NDArray[Any] = whole[key]
            return found
        rows, *others = key if isinstance(key, tuple) else (key,)
        start, stop, _ = rows.indices(self.shape[0])
        return self._read(start, stop)[(slice(None), *others)]

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        size = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))
        with reading(self._where):
            if self._file is None or start < self._row:
                self._file, self._row = self._archive.open(self._member), 0
                _header(self._file)
            self._file.seek((start - self._row) * size, 1)
            found = self._file.read((stop - start) * size)
            if len(found) < (stop - start) * size:
                raise ValueError(f"{self._member} ends too early")
        self._row = stop
        return np.frombuffer(found, dtype=self.dtype).reshape(stop - start, *self.shape[1:])


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)
