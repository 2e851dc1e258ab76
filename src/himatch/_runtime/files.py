"""Writing without leaving halves behind, and reading without letting a library's traceback out."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import struct
import sys
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from himatch.errors import DataError, HimatchError, one_line

if sys.platform != "win32":
    import fcntl

_PARTIAL = ".himatch-"  # in the names of hidden folders; random letters follow, which have no hyphen
_ASIDE = f"{_PARTIAL}old-"
PICTURES = (".png", ".pdf", ".svg")

# What h5py, NumPy, pyarrow, json and zipfile raise for a damaged file.
_DAMAGE = (
    *(OSError, RuntimeError, ValueError, KeyError, TypeError, IndexError, MemoryError, OverflowError, EOFError),
    *(zipfile.BadZipFile, zlib.error, struct.error, csv.Error),
    *(SyntaxError, tokenize.TokenError),  # NumPy parses the header of an array as Python text
)


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Turn a reader library's complaint about ``where`` into one line.

    Only calls of that library belong in the block: the same exceptions from our own code are bugs, not damaged files.
    """
    try:
        yield
    except HimatchError:
        raise
    except FileNotFoundError as reason:
        raise DataError(f"{where}: {reason.filename or 'a file'} is missing; the set is incomplete") from reason
    except PermissionError as reason:
        raise DataError(f"{where}: no permission to read it") from reason
    except UnicodeDecodeError as reason:
        byte = reason.object[reason.start]
        raise DataError(f"{where}: is not UTF-8 text (byte 0x{byte:02x} is not); save it as UTF-8") from reason
    except _DAMAGE as reason:
        raise damaged(where, one_line(reason)) from reason


def damaged(where: str, reason: str) -> DataError:
    """The error for a file whose content cannot be what was written."""
    return DataError(f"{where}: cannot be read, the file is damaged or not what its name says ({reason})")


@contextmanager
def new_folder(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder beside ``target`` that takes its name only when the block ends well.

    ``overwrite`` replaces what himatch may have written: a file, or a folder that holds a dataset and nothing else.
    """
    target = target.absolute()
    check_free(target, overwrite)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _hidden_folder(target.parent, target.name + _PARTIAL) as partial:
            yield partial
            partial.chmod(0o755)
            check_free(target, overwrite)  # it may have come meanwhile, and what is in it is somebody's
            if target.exists():
                # Aside first, so that at any moment one of the two is there, whole.
                with _hidden_folder(target.parent, target.name + _ASIDE) as aside:
                    target.rename(aside / target.name)
                    try:
                        partial.rename(target)
                    except BaseException:
                        if not target.exists():
                            (aside / target.name).rename(target)
                        raise
            else:
                partial.rename(target)


@contextmanager
def _hidden_folder(parent: Path, name: str) -> Iterator[Path]:
    """A hidden folder in ``parent``, locked while its process lives; it is gone when the block ends."""
    sweep(parent)
    while True:
        hidden = Path(tempfile.mkdtemp(prefix=f".{name}", dir=parent))
        lock = _lock(hidden, wait=True)
        if hidden.is_dir():  # a sweep may have come before the lock
            break
        if lock is not None:
            os.close(lock)
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def sweep(folder: Path) -> None:
    """Remove the hidden folders that killed processes left in ``folder``; those of living ones are locked."""
    for left in folder.glob(f".*{_PARTIAL}*") if folder.is_dir() else ():
        lock = _lock(left)
        if lock is None:
            continue
        name, aside, _ = left.name[1:].rpartition(_ASIDE)
        if aside and not (folder / name).exists():  # killed while a folder was replaced: the old one is back
            with suppress(OSError):
                (left / name).rename(folder / name)
        shutil.rmtree(left, ignore_errors=True)
        os.close(lock)


def _lock(folder: Path, *, wait: bool = False) -> int | None:
    """A lock on a folder, which ends with its process; ``None`` where another holds it or no such lock exists."""
    if sys.platform == "win32":  # what killed processes leave stays there
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def check_free(target: Path, overwrite: bool = False) -> None:
    """Refuse a folder that may not be written, or not be replaced; an empty one may be either."""
    if not target.exists():
        return
    here = Path.cwd()
    if target.resolve() in (here, *here.parents):
        raise DataError(f"{target} is the folder that you are in, or one around it; name a folder to write")
    if target.is_dir() and not any(target.iterdir()):
        return
    if not overwrite:
        raise DataError(f"{target} exists already; choose another name or remove it first (--overwrite)")
    if target.is_dir() and (others := _others(target)):
        raise DataError(f"{target} is not replaced: {others[0]!r} in it is no part of a dataset; choose another name")


def _others(folder: Path) -> list[str]:
    """What in a folder belongs to no dataset that himatch writes: a Minari folder, or arrays to map."""
    names = sorted(path.name for path in folder.iterdir())
    if "packed.json" in names:
        return [name for name in names if name != "packed.json" and not name.endswith(".npy")]
    known = ["data"] if (folder / "data" / "metadata.json").is_file() else []
    return [name for name in names if name not in known]


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A file of the same name in a hidden folder beside ``target`` that replaces it only when the block ends well.

    In a folder of its own: whoever lists ``*.json`` would find a hidden file.
    """
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _hidden_folder(target.parent, _PARTIAL) as hidden:
            partial = hidden / target.name
            yield partial
            partial.replace(target)


def check_target(target: Path) -> None:
    """Refuse a file that could not be written, before anybody waits for what goes into it."""
    with writing(target):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "")
        place = next(folder for folder in target.absolute().parents if folder.exists())
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "")
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "")


def check_picture(target: Path) -> None:
    """The same for a picture, by the ending of whose name it is known how to draw it."""
    if target.suffix.lower() not in PICTURES:
        raise HimatchError(f"{target}: a picture must end in {', '.join(PICTURES)}")
    check_target(target)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn what the file system says about ``target`` into one line."""
    try:
        yield
    except OSError as reason:
        cause = {
            errno.ENOSPC: "the disk is full",
            errno.EACCES: "no permission to write there",
            errno.EISDIR: "it is a folder; name a file in it",
            errno.EROFS: "that file system is read-only",
            errno.ENOTDIR: "a part of that path is a file, not a folder",
            errno.EEXIST: "a part of that path is a file, not a folder",
        }.get(reason.errno or 0, reason.strerror or str(reason))
        raise DataError(f"{target}: cannot be written, {cause}") from reason


def read_json(path: Path, where: str | None = None) -> dict[str, Any]:
    """Read a JSON object; messages begin with ``where``, or with the path."""
    with reading(where or str(path)):
        content = json.loads(path.read_text())
    if not isinstance(content, dict):
        raise damaged(where or str(path), f"a JSON object was expected, not {type(content).__name__}")
    return content


Value = TypeVar("Value")


def entry(content: Any, kind: type[Value], where: str, *keys: str | int) -> Value:
    """The value of a kind that JSON content holds under ``keys``; a file without it is refused by name.

    A whole number is a ``float`` too, as JSON writes it; a flag is no number.
    """
    value, path = content, ".".join(map(str, keys))
    for key in keys:
        listed = isinstance(value, list) and isinstance(key, int) and key < len(value)
        if not listed and not (isinstance(value, dict) and key in value):
            raise damaged(where, f"no {path} in it")
        value = value[key]
    if isinstance(value, int) and kind is float and not isinstance(value, bool):
        return float(value)  # type: ignore[return-value]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise damaged(where, f"{path} is {type(value).__name__}, not {kind.__name__}")
    return value


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON, whole or not at all."""
    with new_file(path) as partial:
        partial.write_text(json.dumps(content, indent=1))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file; a last line cut short by a crash is dropped, and no file has no rows."""
    rows = []
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError:  # half a row, or bytes that are no text
            if number == len(lines):
                break
            row = None
        if not isinstance(row, dict):
            raise DataError(f"{path}: line {number} is damaged; remove that line")
        rows.append(row)
    return rows


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write a JSONL file anew, whole or not at all."""
    with new_file(path) as partial:
        partial.write_text("".join(json.dumps(row) + "\n" for row in rows))


def add_row(path: Path, row: dict[str, Any]) -> None:
    """Append a row to a JSONL file."""
    with writing(path), path.open("a") as file:
        file.write(json.dumps(row) + "\n")
