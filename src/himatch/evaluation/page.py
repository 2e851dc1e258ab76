"""Results as HTML for notebooks: a small table, and the histograms as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from himatch.evaluation.pictures import covering
from himatch.statistics.bins import Bins
from himatch.types import Array
from himatch.viz.svg import bars

MOST_ROWS = 40
HEADER = ("target", "group", "W1", "W1 of each", "error", "played", "charged", "mixture", "return", "")


def result_table(rows: Sequence[Sequence[str]], conditioning: str, unit: str = "") -> str:
    """Targets with what came out, a row each; at most so many, and columns that are empty throughout are left out."""
    shown = rows[:MOST_ROWS]
    note = f"<br>and {len(rows) - len(shown)} more" if len(rows) > len(shown) else ""
    return _table(shown, conditioning) + note + (f"<small>{escape(unit)}</small><br>" if unit else "")


def histograms(bins: Bins, rolled: Array, wanted: Array) -> str:
    """The rollouts of all seeds over the target, one picture for each of the first dimensions."""
    drawn = covering(bins, wanted)
    pairs = zip(drawn.histogram(rolled)[:3], drawn.histogram(wanted)[:3], strict=True)
    return " ".join(bars(mine.tolist(), target.tolist()) for mine, target in pairs)


def _table(rows: Sequence[Sequence[str]], conditioning: str) -> str:
    kept = [i for i in range(len(HEADER)) if any(row[i] for row in rows)]
    head = "".join(f"<th>{HEADER[i] or conditioning}</th>" for i in kept)
    body = "".join("<tr>" + "".join(f"<td>{row[i]}</td>" for i in kept) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
