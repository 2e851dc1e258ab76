"""Episodes end to end in a few flat arrays: how a dataset lies in memory or in memory-mapped files."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.files import entry, read_json, reading, writing
from himatch._runtime.seals import SEAL, digest, sealed
from himatch.data.alike import twin_numbers
from himatch.data.facts import Facts, join_facts
from himatch.data.near import Sketch, make_sketch
from himatch.data.places import Places, join_places
from himatch.errors import DataError
from himatch.types import Array

Allocate = Callable[[str, tuple[int, ...]], Array]
"""Gives a float32 array of that shape to fill, in memory or in a mapped file of that name."""

MANIFEST = "packed.json"
ROWS = "rows.npy"
_FLOATS = np.dtype(np.float32)
SUM, SUMMED = "crc32", 1 << 20  # checksum of an array's file, and how many bytes of it are read at a time
BLOCK = 65536  # rows handled at a time where a pass must not touch the whole array at once


def in_memory(name: str, shape: tuple[int, ...]) -> Array:
    """Allocate in ordinary memory."""
    try:
        return np.empty(shape, dtype=np.float32)
    except (MemoryError, ValueError):  # more than there is, or than an array can have
        raise DataError(f"{name} of shape {shape} do not fit into memory; map them into a folder (--mmap)") from None


def in_folder(folder: Path) -> Allocate:
    """Allocate ``.npy`` files in a folder, mapped into memory."""
    return lambda name, shape: mapped_array(folder / f"{name}.npy", shape)


def mapped_array(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any] = _FLOATS) -> NDArray[Any]:
    """A new ``.npy`` file, mapped into memory, with room on the disk for all of it.

    A file without would end the process, and not with an exception, once the disk is full.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        mapped: NDArray[Any] = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
        if hasattr(os, "posix_fallocate"):
            with path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return mapped


@dataclass
class MappedFiles:
    """The files of mapped arrays, with what the manifest says of each."""

    folder: Path
    listed: Mapping[str, Mapping[str, Any]]
    verified: bool = False

    def verify(self) -> None:
        """Refuse arrays whose numbers are not those that were written; reads all of them, once."""
        for name, facts in () if self.verified else self.listed.items():
            with reading(str(self.folder)):
                found = _file_sum(self.folder / name)
            if found != facts[SUM]:
                raise DataError(
                    f"{self.folder / name}: damaged (its checksum differs); remove {self.folder}, it is made again"
                )
        self.verified = True


@dataclass(frozen=True, eq=False)
class Packed:
    """``E`` episodes of ``N`` steps together; episode ``e`` is rows ``starts[e]`` to ``starts[e] + lengths[e]``.

    ``observations`` (N, obs), ``actions`` (N, act), ``rewards`` (N,) or None, ``lengths`` (E,), ``terminated`` (E,),
    ``final_observations`` (E, obs) of which only rows with ``has_final`` (E,) mean anything, ``labels`` E strings.
    ``columns`` has what a table calls the columns of each array; other sources do not name them. ``facts`` are those
    that hold for all of it, ``places`` where in the source everything was. ``files`` are those that arrays are
    mapped from.
    """

    observations: Array
    actions: Array
    rewards: Array | None
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    final_observations: Array
    has_final: NDArray[np.bool_]
    labels: tuple[str | None, ...]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    places: Places = field(default_factory=Places)
    files: MappedFiles | None = None

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """First row of every episode, ``(E,)``."""
        return np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64)

    @cached_property
    def twins(self) -> NDArray[np.int64]:
        """A number for every episode, ``(E,)``; those with the same observations and actions share one."""
        return twin_numbers(self)[0]

    @cached_property
    def sketch(self) -> Sketch:
        """What tells most episodes apart that are not nearly the same."""
        return make_sketch(self)

    def locate(self, row: int) -> tuple[int, int]:
        """Episode and step of a row."""
        episode = int(np.searchsorted(self.starts, row, side="right")) - 1
        return episode, row - int(self.starts[episode])

    def place(self, row: int) -> str:
        """The step that a row is, for a message."""
        episode, step = self.locate(row)
        line = self.places.row(row)
        return f"episode {self.places.episode(episode)}, step {step}" + (f" ({line})" if line else "")

    def called(self, name: str, column: int) -> str:
        """A column of ``observations``, ``actions`` or ``rewards`` by its name in the source, or ``obs[3]``."""
        if name in self.columns:
            return self.columns[name][column]
        return "reward" if name == "rewards" else f"{name[:3]}[{column}]"


def first_columns(parts: Iterable[Packed]) -> dict[str, tuple[str, ...]]:
    """What the first of several sets that names the columns of an array calls them."""
    columns: dict[str, tuple[str, ...]] = {}
    for part in parts:
        columns = {**part.columns, **columns}
    return columns


def concatenate_packed(parts: Sequence[Packed], allocate: Allocate = in_memory) -> Packed:
    """Several sets one after the other, all of the same widths."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    for part in parts[1:]:
        if part.observations.shape[1] != first.observations.shape[1] or part.actions.shape[1] != first.actions.shape[1]:
            raise DataError(
                "the joined sources differ in width: "
                f"{first.observations.shape[1]} and {part.observations.shape[1]} observations, "
                f"{first.actions.shape[1]} and {part.actions.shape[1]} actions"
            )
        if (part.rewards is None) != (first.rewards is None):
            raise DataError("one of the joined sources has rewards and another has not; they cannot be one dataset")

    def join(name: str) -> Array:
        arrays: list[Array] = [getattr(part, name) for part in parts]
        out = allocate(name, (sum(map(len, arrays)), *arrays[0].shape[1:]))
        return np.concatenate(arrays, out=out)

    return Packed(
        join("observations"),
        join("actions"),
        None if first.rewards is None else join("rewards"),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.terminated for part in parts]),
        np.concatenate([part.final_observations for part in parts]),
        np.concatenate([part.has_final for part in parts]),
        tuple(label for part in parts for label in part.labels),
        first_columns(parts),
        join_facts([part.facts for part in parts]),
        join_places([p.places for p in parts], [len(p.lengths) for p in parts], [len(p.actions) for p in parts]),
    )


def save_manifest(folder: Path, packed: Packed, facts: dict[str, Any]) -> None:
    """Write what the mapped arrays in ``folder`` do not hold; the presence of the manifest says they are complete."""
    np.save(folder / "final_observations.npy", packed.final_observations)
    if packed.places.rows is not None:
        np.save(folder / ROWS, packed.places.rows)
    files = {path.name: _array_facts(path) for path in sorted(folder.glob("*.npy"))}
    manifest = {
        **facts,
        "rewards": packed.rewards is not None,
        "lengths": packed.lengths.tolist(),
        "terminated": packed.terminated.tolist(),
        "has_final": packed.has_final.tolist(),
        "labels": list(packed.labels),
        "columns": packed.columns,
        "facts": packed.facts.as_json(),
        "names": packed.places.names,
        "tables": packed.places.tables,
        "files": files,
    }
    plain = json.loads(json.dumps(manifest))  # as it is read back
    (folder / MANIFEST).write_text(json.dumps(sealed(plain)))


def _array_facts(path: Path) -> dict[str, Any]:
    """Size of an array's file, a checksum of its header, and one of all of it, which is compared when all is read."""
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)
        header = file.tell()
        file.seek(0)
        sha256 = hashlib.sha256(file.read(header)).hexdigest()
    return {"bytes": path.stat().st_size, "header": header, SEAL: sha256, SUM: _file_sum(path)}


def _file_sum(path: Path) -> int:
    """CRC-32 of a file: it finds accidents, and gigabytes take seconds."""
    found = 0
    with path.open("rb", buffering=0) as file:
        while block := file.read(SUMMED):
            found = zlib.crc32(block, found)
    return found


def _check_array(path: Path, facts: dict[str, Any], where: str) -> None:
    with reading(where), path.open("rb") as file:
        header, size = file.read(facts["header"]), path.stat().st_size
    if size != facts["bytes"] or hashlib.sha256(header).hexdigest() != facts[SEAL]:
        raise DataError(f"{path}: damaged (its size or its header differs); remove {where}, it is made again")


def open_packed(folder: Path) -> tuple[Packed, dict[str, Any]]:
    """Open a folder of mapped arrays and what its manifest says about them.

    What is changed in memory (clipped actions) never reaches the files. The manifest is verified, and of the arrays
    sizes and headers; their numbers are by :meth:`MappedFiles.verify`, for that takes as long as reading them.
    """
    where = str(folder)
    facts = read_json(folder / MANIFEST, where)
    if facts.get(SEAL) != digest(facts):
        raise DataError(
            f"{folder / MANIFEST}: damaged, edited or written by an earlier version of himatch (its checksum differs); "
            f"remove {where}, it is made again"
        )
    columns = entry({"columns": {}, **facts}, dict, where, "columns")

    def mapped(name: str) -> Array:
        path = folder / f"{name}.npy"
        _check_array(path, entry(facts, dict, where, "files", path.name), where)
        with reading(where):
            array: Array = np.load(path, mmap_mode="c", allow_pickle=False)
        return array

    def per_episode_array(name: str, dtype: type[np.generic]) -> NDArray[Any]:
        values = entry(facts, list, where, name)
        with reading(where):
            return np.array(values, dtype=dtype)

    packed = Packed(
        mapped("observations"),
        mapped("actions"),
        mapped("rewards") if entry(facts, bool, where, "rewards") else None,
        per_episode_array("lengths", np.int64),
        per_episode_array("terminated", np.bool_),
        np.array(mapped("final_observations")),
        per_episode_array("has_final", np.bool_),
        tuple(entry(facts, list, where, "labels")),
        {array: tuple(entry(columns, list, where, array)) for array in columns},
        Facts.of(entry({"facts": {}, **facts}, dict, where, "facts")),
        _places(folder, facts),
        MappedFiles(folder, entry(facts, dict, where, "files")),
    )
    stepwise = [len(a) for a in (packed.observations, packed.actions, packed.rewards) if a is not None]
    per_episode = [*map(len, (packed.terminated, packed.has_final, packed.final_observations)), len(packed.labels)]
    if {*stepwise} != {packed.lengths.sum()} or {*per_episode} != {len(packed.lengths)}:
        raise DataError(f"{folder}: its arrays and its {MANIFEST} do not belong together; remove the folder")
    return packed, facts


def _places(folder: Path, facts: dict[str, Any]) -> Places:
    """Names and rows, where the folder has them; what does not fit is left aside, for messages do without."""
    where, rows = str(folder), None
    if (folder / ROWS).is_file():
        with reading(where):
            rows = np.load(folder / ROWS, mmap_mode="r", allow_pickle=False)
    names, tables = (entry({name: [], **facts}, list, where, name) for name in ("names", "tables"))
    with reading(where):
        return Places(tuple(names), rows, tuple((int(first), str(path)) for first, path in tables))
