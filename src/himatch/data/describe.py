"""Facts in a few words, for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

MOST_NAMES = 12


def as_html(title: str, facts: Mapping[str, str]) -> str:
    """A small table."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<table><caption><b>{escape(title)}</b></caption>{rows}</table>"


def columns(names: Sequence[str], width: int, units: Mapping[str, str]) -> str:
    """How many columns, and what the first are called."""
    measured = [f"{name} [{units[name]}]" if name in units else name for name in names]
    return f"{width} ({some(measured)})" if measured else str(width)


def some(names: Sequence[str]) -> str:
    """The first of many names."""
    return ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
