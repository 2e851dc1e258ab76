"""Which source this is: the name that git gives to the tree of it, with or without git."""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
FILE, FOLDER = b"100644", b"40000"  # git's modes; nothing in the package is executable or a link
LEFT_OUT = "__pycache__"


@cache
def source_tree() -> str:
    """What ``git rev-parse HEAD:src`` prints for the package as it is, committed or not, installed or not."""
    return _named(b"tree", _row(FOLDER, PACKAGE.name, _tree(PACKAGE))).hex()


def _tree(folder: Path) -> bytes:
    rows = {}
    for path in folder.iterdir():
        if path.name == LEFT_OUT:
            continue
        if not path.is_dir():
            rows[path.name] = _row(FILE, path.name, _named(b"blob", path.read_bytes()))
        elif any(one.is_file() and LEFT_OUT not in one.parts for one in path.rglob("*")):  # git knows no empty folder
            rows[path.name + "/"] = _row(FOLDER, path.name, _tree(path))
    return _named(b"tree", b"".join(rows[name] for name in sorted(rows, key=str.encode)))


def _row(mode: bytes, name: str, digest: bytes) -> bytes:
    return mode + b" " + name.encode() + b"\0" + digest


def _named(kind: bytes, content: bytes) -> bytes:
    return sha1(kind + b" " + str(len(content)).encode() + b"\0" + content, usedforsecurity=False).digest()
