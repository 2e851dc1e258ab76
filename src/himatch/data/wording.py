"""Words of a file in messages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def listed(names: Iterable[object], most: int = 20) -> str:
    """Names found in a file, for a message: not too many, and no control characters that a terminal would obey."""
    shown = [(name if name.isprintable() else repr(name))[:60] for name in map(str, names)]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more or "nothing"


def without_folders(source: str) -> str:
    """What others call a source: ``one.npz+two.npz``, with as many folders as tell joined ones apart."""
    try:
        whole = Path(source).exists()
    except OSError:  # so many that no file could be called that
        whole = False
    parts = [Path(part) for part in ([source] if whole else source.split("+"))]
    for depth in range(1, max(len(part.parts) for part in parts) + 1):
        names = ["/".join(part.parts[-depth:]) for part in parts]
        if len(set(names)) == len(set(parts)):
            break
    return "+".join(names)


def counted(number: int, what: str) -> str:
    """``1 episode``, ``2 episodes``."""
    return f"{number:,} {what}{'s' * (number != 1)}"
