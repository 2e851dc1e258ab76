"""HDF5 files through h5py, which is imported when one is opened; what h5py says becomes one line about the file.

Which columns a D4RL file has and what they mean is read in ``flat.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from himatch._runtime.files import reading
from himatch.types import Array


def is_hdf5(path: Path) -> bool:
    """Whether the file's first bytes are those of HDF5."""
    import h5py

    return bool(h5py.is_hdf5(path))


@contextmanager
def open_hdf5(path: Path, where: str, **options: Any) -> Iterator[Hdf5Group]:
    """A file to read; messages begin with ``where``."""
    import h5py

    with reading(where):
        file = h5py.File(path, "r", **options)
    try:
        yield Hdf5Group(file, where)
    finally:
        with reading(where):
            file.close()


class Hdf5Group:
    """A group, or the file itself."""

    def __init__(self, group: Any, where: str) -> None:
        self._group, self._where = group, where

    def __len__(self) -> int:
        with reading(self._where):
            return len(self._group)

    def names(self) -> list[str]:
        """What is in it."""
        with reading(self._where):
            return [str(name) for name in self._group]

    def get(self, name: str) -> Hdf5Group | Hdf5Column | None:
        """A group or a column; ``None`` for what is not there, and for a link to something that is not there."""
        import h5py

        with reading(self._where):
            found = self._group.get(name)
        if found is None:
            return None
        return Hdf5Column(found, self._where) if isinstance(found, h5py.Dataset) else Hdf5Group(found, self._where)

    def attributes(self) -> dict[str, Any]:
        """Its attributes."""
        with reading(self._where):
            return dict(self._group.attrs)


class Hdf5Column:
    """A dataset of HDF5, read a part at a time."""

    def __init__(self, dataset: Any, where: str) -> None:
        self._dataset, self._where = dataset, where

    @property
    def shape(self) -> tuple[int, ...]:
        """Steps first; a dataset without a shape has no axes."""
        with reading(self._where):
            return tuple(self._dataset.shape or ())

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        with reading(self._where):
            dtype: np.dtype[Any] = self._dataset.dtype
        return dtype

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Shape of the compressed pieces, if there are any."""
        with reading(self._where):
            chunks: tuple[int, ...] | None = self._dataset.chunks
        return chunks

    def __getitem__(self, key: Any) -> Any:
        with reading(self._where):
            return np.asarray(self._dataset[key])

    def read_into(self, out: Array, start: int, stop: int) -> None:
        """Fill rows of ``out`` with the same rows of this column's leading numbers, without a copy between."""
        with reading(self._where):
            self._dataset.read_direct(out, np.s_[start:stop, : out.shape[1]], np.s_[start:stop])


def hdf5_column(value: Any, where: str) -> Hdf5Column | None:
    """A dataset of a file that the caller has opened, as a column; ``None`` for anything else."""
    h5py = sys.modules.get("h5py")  # whoever has such a dataset has imported it
    return Hdf5Column(value, where) if h5py is not None and isinstance(value, h5py.Dataset) else None
