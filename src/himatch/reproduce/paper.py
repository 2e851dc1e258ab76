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
from itertools import starmap
from typing import Any, NamedTuple

from himatch.reproduce.specification import Specification


class PaperFigure(NamedTuple):
    """What the paper prints in a cell; its averages come without a deviation."""

    mean: float
    std: float | None


@dataclass(frozen=True)
class PaperTable:
    """One table: ``rows[method][column]``, columns named ``task/group`` or ``average``."""

    label: str
    columns: tuple[str, ...]
    rows: Mapping[Specification, Mapping[str, PaperFigure]]
    """In the paper's order."""
    held_out: Mapping[str, PaperFigure]
    """Returns of the held-out episodes by column, in the table of returns."""

    def figure(self, method: Specification, column: str) -> PaperFigure | None:
        """A cell; ``None`` where the paper has none."""
        return self.rows.get(method, {}).get(column)


@cache
def paper_tables() -> Mapping[str, PaperTable]:
    """All tables with results, by the paper's label."""
    content = json.loads((files("himatch.reproduce") / "paper_tables.json").read_text())
    return {label: _table(label, table) for label, table in content.items()}


def _table(label: str, content: Mapping[str, Any]) -> PaperTable:
    columns = tuple(content["columns"])
    rows = {
        Specification.of(**row["method"]): dict(zip(columns, starmap(PaperFigure, row["figures"]), strict=True))
        for row in content["rows"]
    }
    held_out = dict(zip(columns, starmap(PaperFigure, content.get("held_out", ())), strict=False))
    return PaperTable(label, columns, rows, held_out)
