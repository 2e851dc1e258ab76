"""Checksums: a file that is not what was written is refused before anybody computes with it.

JSON content carries the SHA-256 of its own canonical form, safetensors files carry theirs
(:mod:`himatch._runtime.tensors`), and other files are listed with size and SHA-256 in a JSON file beside them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from himatch._runtime.files import read_json, reading, write_json
from himatch.errors import DataError

SEAL = "sha256"
RUN_FORMAT = 2  # of run folders
REMEDY = "restore it or train again"
EVALUATE = "write it again: himatch evaluate"  # what to do about an evaluation that cannot be trusted


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of JSON content in its canonical form, whatever seal it carries."""
    plain = {key: value for key, value in content.items() if key != SEAL}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with its own checksum, as it will be read again: the keys of JSON are text."""
    plain = json.loads(json.dumps(content))
    return {**plain, SEAL: digest(plain)}


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON content with its checksum."""
    write_json(path, sealed(content))


def read_found(path: Path, remedy: str) -> dict[str, Any]:
    """JSON content that can be found again, so that ``remedy`` says how: without its checksum, which must be right."""
    content = read_json(path)
    if content.pop(SEAL, None) != digest(content):
        raise DataError(
            f"{path}: edited, damaged or written by an earlier version of himatch (its checksum differs); restore it "
            f"or {remedy}"
        )
    return content


def read_sealed(path: Path, form: int) -> dict[str, Any]:
    """JSON content of that format whose checksum is right; anything else is refused in one line."""
    content = read_json(path)
    if SEAL not in content:
        raise DataError(
            f"{path}: written by an earlier version of himatch, or damaged (no checksum in it); train again"
        )
    if content[SEAL] != digest(content):
        raise DataError(f"{path}: edited or damaged (its checksum differs); {REMEDY}")
    if content.get("format") != form:
        raise DataError(
            f"{path}: written by another version of himatch (format {content.get('format')}, this one reads {form}); "
            "train again, or install the himatch that wrote it"
        )
    return content


def altered(path: Path) -> DataError:
    """The error for a file whose bytes are not those that were written."""
    return DataError(f"{path}: damaged (its checksum differs); {REMEDY}")


def file_facts(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file, to be listed somewhere."""
    return {"bytes": path.stat().st_size, SEAL: _file_digest(path)}


def check_file(path: Path, facts: Mapping[str, Any]) -> None:
    """Refuse a file that is missing or is not the one that was listed."""
    if not path.is_file():
        raise DataError(f"{path} is missing; {REMEDY}")
    # The size first: nobody should wait for gigabytes that cannot be right.
    if path.stat().st_size != facts["bytes"] or _file_digest(path) != facts[SEAL]:
        raise altered(path)


def _file_digest(path: Path) -> str:
    with reading(str(path)), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
