"""Cells as text, the same in every format."""

from __future__ import annotations

from dataclasses import dataclass

from himatch.divergences import Difference, Summary
from himatch.reproduce.report.table import Cell, ResultRow, ResultTable

MISSING, TIMES = "\N{EN DASH}", "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class Line:
    """One line of a row: its label, the texts of its cells, and which of them are best."""

    label: str
    texts: tuple[str, ...]
    best: tuple[bool, ...]


def number(value: float, table: ResultTable) -> str:
    """Distances as the paper prints them, returns without decimals or in percent, success rates in percent."""
    if table.layout.measure == "success":
        return f"{100 * value:.3g}"
    if table.layout.measure == "slope":
        return f"{round(value, 2) + 0.0:.2f}"  # no minus before a zero
    if table.layout.measure == "share":
        return f"{value:.1%}"
    return f"{value:,.0f}" if table.layout.measure == "return" else f"{value:.3f}"


def with_deviation(mean: float, std: float | None, table: ResultTable) -> str:
    """``0.633 ± 0.329``; a mean alone where there is no deviation."""
    return number(mean, table) if std is None else f"{number(mean, table)} ± {number(std, table)}"


def interval(score: Summary, table: ResultTable) -> str:
    """``[0.281, 0.343]`` of the mean, where there is one."""
    return _bounds(score.mean_low, score.mean_high, table)


def with_interval(score: Summary, table: ResultTable) -> str:
    """``0.310 [0.281, 0.343]``."""
    return f"{number(score.mean, table)} {interval(score, table)}".rstrip()


def difference(less: Difference) -> str:
    """``-0.093 [-0.117, -0.061]``."""
    bounds = "" if less.low is None or less.high is None else f" [{less.low:+.3f}, {less.high:+.3f}]"
    return f"{less.mean:+.3f}{bounds}"


def ours(cell: Cell, table: ResultTable) -> str:
    """Mean and deviation; an average over tasks or groups has an interval instead."""
    if cell.ours is None:
        return MISSING
    if cell.ours.std is None:
        return with_interval(cell.ours, table)
    return with_deviation(cell.ours.mean, cell.ours.std, table)


def middle(cell: Cell, table: ResultTable) -> str:
    """Interquartile mean, with its interval where there is one."""
    score = cell.ours
    if score is None or score.iqm is None:
        return ""
    return f"{number(score.iqm, table)} {_bounds(score.low, score.high, table)}".rstrip()


def ratio(cell: Cell) -> str:
    """Ours by the paper's, as a factor."""
    return "" if cell.ratio is None else f"{TIMES}{cell.ratio:.2f}"


def paper(cell: Cell, table: ResultTable) -> str:
    """The paper's figure and the ratio."""
    if cell.paper is None:
        return ""
    return f"{with_deviation(*cell.paper, table)} {ratio(cell)}".rstrip()


def lines(row: ResultRow, table: ResultTable) -> list[Line]:
    """A row as lines of text; lines that say nothing are left out."""
    best = tuple(cell.best for cell in row.cells)
    plain = (False,) * len(best)
    below = [
        Line("interquartile mean", tuple(middle(cell, table) for cell in row.cells), plain),
        Line("played", tuple(played(cell) for cell in row.cells), plain),
        Line("within an episode", tuple(within_episode(cell, table) for cell in row.cells), plain),
        Line("D4RL score", tuple(score(cell) for cell in row.cells), plain),
        Line("paper", tuple(paper(cell, table) for cell in row.cells), plain),
    ]
    first = Line(row.name, tuple(ours(cell, table) for cell in row.cells), best)
    return [first, *(line for line in below if any(line.texts))]


def played(cell: Cell) -> str:
    """``97 %, charged 0.412``: how much of the time was played, and W1 with the rest of it charged."""
    if cell.played is None:
        return ""
    return f"{cell.played:.0%}" + ("" if cell.charged is None else f", charged {cell.charged:.3f}")


def within_episode(cell: Cell, table: ResultTable) -> str:
    """W1 within single episodes, where it was measured."""
    return "" if cell.within_episode is None else number(cell.within_episode, table)


def score(cell: Cell) -> str:
    """D4RL's normalised score."""
    return "" if cell.normalized is None else f"{cell.normalized:.1f}"


def _bounds(low: float | None, high: float | None, table: ResultTable) -> str:
    return "" if low is None or high is None else f"[{number(low, table)}, {number(high, table)}]"
