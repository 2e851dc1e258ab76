"""Words of a file in messages."""

from __future__ import annotations

from collections.abc import Iterable


def listed(names: Iterable[object], most: int = 20) -> str:
    """Names found in a file, for a message: not too many, and no control characters that a terminal would obey."""
    shown = [(name if name.isprintable() else repr(name))[:60] for name in map(str, names)]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more or "nothing"


def counted(number: int, what: str) -> str:
    """``1 episode``, ``2 episodes``."""
    return f"{number:,} {what}{'s' * (number != 1)}"
