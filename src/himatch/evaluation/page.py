"""Results as HTML for notebooks: a small table, and the histograms as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from himatch.evaluation.pictures import covering
from himatch.viz.svg import bars

if TYPE_CHECKING:
    from himatch.evaluation.evaluation import Evaluation
    from himatch.evaluation.result import MatchResult

MOST_ROWS = 40
HEADER = ("target", "group", "W1", "error", "played", "charged", "mixture", "return", "")


def result_html(result: MatchResult) -> str:
    """One target."""
    return _table([_row("", result)], result.conditioning)


def evaluation_html(found: Evaluation) -> str:
    """All targets, at most so many of them, and what they amount to."""
    rows = [_row(group, r) for group, r in zip(found.groups[:MOST_ROWS], found.results, strict=False)]
    more = len(found.results) - len(rows)
    sums = ", ".join(f"{name} {summed['mean']:.3f}" for name, summed in found.summary.items())
    note = f"<br>and {more} more" if more else ""
    return f"{_table(rows, found.results[0].conditioning)}{note}<small>mean error: {escape(sums)}</small>"


def _row(group: str, result: MatchResult) -> list[str]:
    distribution = result.target.matches == "distribution"
    return [
        escape(result.target.name),
        escape(group),
        f"{result.w1:.3f}" if distribution else "",
        "" if distribution else f"{result.error:.4g}",
        f"{result.played:.0%}",
        f"{result.charged:.3f}" if distribution else "",
        "" if result.mixture is None else f"{result.mixture.w1:.3f}",
        f"{result.returns.mean():.0f}",
        _histograms(result) if distribution else "",
    ]


def _histograms(result: MatchResult) -> str:
    """The rollouts of all seeds over the target, one picture for each of the first dimensions."""
    bins = covering(result.frame.bins, result.values)
    rolled = np.concatenate([result.pooled(k) for k in range(len(result.seeds))])
    pairs = zip(bins.histogram(rolled)[:3], bins.histogram(result.values)[:3], strict=True)
    return " ".join(bars(mine.tolist(), wanted.tolist()) for mine, wanted in pairs)


def _table(rows: Sequence[Sequence[str]], conditioning: str) -> str:
    """Columns that are empty throughout are left out."""
    kept = [i for i in range(len(HEADER)) if any(row[i] for row in rows)]
    head = "".join(f"<th>{HEADER[i] or conditioning}</th>" for i in kept)
    body = "".join("<tr>" + "".join(f"<td>{row[i]}</td>" for i in kept) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
