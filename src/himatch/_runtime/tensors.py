"""Tensors in safetensors files: written whole or not at all, read without running code.

A file carries, among its facts, the SHA-256 of all its bytes (with zeros in place of the checksum itself), so that one
flipped bit is noticed. It lies in the file because file and checksum must change at once, by one rename.
"""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from himatch._runtime.extras import installed_versions
from himatch._runtime.files import new_file, reading
from himatch._runtime.seals import REMEDY, SEAL, altered
from himatch._version import __version__
from himatch.errors import DataError, one_line

_OPEN = "0" * 64  # stands where the checksum will


def write_tensors(path: Path, tensors: dict[str, Tensor], **facts: str) -> None:
    """Write tensors and facts with a checksum of both, whole or not at all; the same content gives the same bytes."""
    content = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with new_file(path) as partial:
        try:
            raw = save(content, {**facts, SEAL: _OPEN})
        except SafetensorError as reason:
            raise DataError(f"{path}: cannot be written ({one_line(reason)})") from None
        head, body = _sorted(raw)
        seal = hashlib.sha256(head)
        seal.update(body)
        with partial.open("wb") as file:
            file.write(head.replace(_OPEN.encode(), seal.hexdigest().encode()))
            file.write(body)


def read_tensors(path: Path, **facts: str) -> dict[str, Tensor]:
    """Read tensors; a missing, damaged or foreign file, and one with other facts than these, is refused by name."""
    raw, found = _checked(path)
    if any(found.get(name) != value for name, value in facts.items()):
        raise DataError(f"{path}: belongs to another run, or to another place in this one; {REMEDY}")
    return _parsed(path, raw)


def read_facts(path: Path) -> dict[str, str]:
    """What was written beside the tensors."""
    return _checked(path)[1]


def read_foreign_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors that somebody else wrote, whose files carry no checksum."""
    return _parsed(path, _bytes(path))


def _sorted(raw: bytes) -> tuple[bytes, memoryview]:
    """Header and data of a file; the header, whose facts the library writes in any order, in a fixed one."""
    end = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin where they may be mapped
    return len(text).to_bytes(8, "little") + text, memoryview(raw)[end:]


def _checked(path: Path) -> tuple[bytes, dict[str, str]]:
    """All bytes of a file and its facts, once the checksum over everything else is known to be right."""
    raw = _bytes(path)
    end = 8 + int.from_bytes(raw[:8], "little")
    try:
        header = json.loads(raw[8:end])
        facts = header["__metadata__"]
        found = facts[SEAL].encode()
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path}: damaged, or written by an earlier version of himatch; {REMEDY}") from None
    seal = hashlib.sha256(raw[:end].replace(found, _OPEN.encode()))
    seal.update(memoryview(raw)[end:])
    if seal.hexdigest().encode() != found:
        raise altered(path)
    return raw, facts


def _bytes(path: Path) -> bytes:
    if not path.is_file():
        raise DataError(
            f"{path} is missing; the run folder is incomplete (himatch train ... --resume goes on with a run)"
        )
    with reading(str(path)):
        return path.read_bytes()


def _parsed(path: Path, raw: bytes) -> dict[str, Tensor]:
    try:
        return load(raw)
    except (SafetensorError, OSError, ValueError) as reason:
        raise DataError(f"{path}: damaged or cut short ({one_line(reason)}); {REMEDY}") from None


def versions() -> dict[str, str]:
    """What this was made with; of the simulators, those that are installed."""
    return {
        "himatch": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        **installed_versions("mujoco", "gymnasium", "ogbench"),
    }
