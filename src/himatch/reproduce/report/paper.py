"""The paper's figures as data, transcribed from its LaTeX source.

Its totals and averages agree with its own cells to rounding, and so do the deviations of its totals (of both groups
pooled), with one exception: FOCAL on halfcheetah in ``xvel_match_main`` and ``reward_match`` prints 0.518 and 0.516
where its expert and medium cells give 1.173 and 1.169.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from himatch.reproduce.report.methods import canonical


class PaperFigure(NamedTuple):
    """What the paper prints in a cell; its averages come without a deviation."""

    mean: float
    std: float | None


@dataclass(frozen=True)
class PaperTable:
    """One table: ``rows[method][column]``, columns named ``task/group`` or ``average``."""

    label: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, PaperFigure]]

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the rows in the paper's order."""
        return tuple(self.rows)

    def figure(self, method: str, column: str) -> PaperFigure | None:
        """A cell, whichever way the method's name is written; ``None`` where the paper has none."""
        wanted = canonical(method)
        for name, row in self.rows.items():
            if canonical(name) == wanted:
                return row.get(column)
        return None


@cache
def paper_tables() -> Mapping[str, PaperTable]:
    """All tables with results, by the paper's label."""
    content = json.loads((files("himatch.reproduce.report") / "paper_tables.json").read_text())
    return {label: _table(label, table["columns"], table["rows"]) for label, table in content.items()}


def _table(label: str, columns: list[str], rows: dict[str, list[tuple[float, float | None]]]) -> PaperTable:
    figures = {
        method: {column: PaperFigure(*pair) for column, pair in zip(columns, row, strict=True)}
        for method, row in rows.items()
    }
    return PaperTable(label, tuple(columns), figures)
