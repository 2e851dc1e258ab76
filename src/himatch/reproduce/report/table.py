"""A table of the report: our figures beside the paper's, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from himatch.divergences import Summary
from himatch.reproduce.paper import PaperFigure
from himatch.reproduce.report.rows import RowKey
from himatch.reproduce.results import JobResult, TargetScore
from himatch.reproduce.specification import Specification
from himatch.reproduce.suite import Suite, TableColumn, TableLayout

MIXTURE, HELD_OUT = "Episode mixture", "Held-out"
"""Rows that methods are held against: W1 of the episode mixture, and the returns of the held-out episodes."""


@dataclass(frozen=True)
class Cell:
    """Our score and the paper's; either may be missing."""

    ours: Summary | None = None
    paper: PaperFigure | None = None
    normalized: float | None = None
    """D4RL's score of a return: 0 for a random policy, 100 for an expert."""
    best: bool = False
    played: float | None = None
    """The part of the targets' steps that rollouts lasted, on average; results from before it was measured lack it."""
    charged: float | None = None
    """The exact W1 with the time charged that was not played, of one feature."""
    within_episode: float | None = None
    """The exact W1 within single episodes; results from before it was measured lack it."""
    comparable: bool = True
    """Whether the paper's figure is of the same feature."""
    reference: Summary | None = None
    """Of the very targets and data of ours: what the episode mixture reaches, or the held-out returns."""

    @property
    def ratio(self) -> float | None:
        """Ours by the paper's, where both are of one feature."""
        if self.ours is None or self.paper is None or self.paper.mean == 0 or not self.comparable:
            return None
        return self.ours.mean / self.paper.mean


def scores_of(target: TargetScore, layout: TableLayout) -> list[float]:
    """What a table shows of a target, one for each seed: a W1, a return, a rate, or what was missed."""
    if layout.measure == "share":
        return [earned / target.target_return for earned in target.returns] if target.target_return else []
    known = {"return": target.returns, "exact": target.exact, "missed": target.missed or [], "success": target.success}
    return known.get(layout.measure, target.w1)


def reference_of(target: TargetScore, layout: TableLayout) -> float | None:
    """What these are held against: the same of the episode mixture, or the held-out episode's return."""
    known = {"return": target.target_return, "exact": target.exact_reference, "share": None, "missed": None}
    return known.get(layout.measure, target.reference)


@dataclass(frozen=True)
class ResultRow:
    """A method under one conditioning with one effort, or something to compare methods with."""

    name: str
    kind: Literal["method", "reference"]
    cells: tuple[Cell, ...]
    jobs: Mapping[str, JobResult]
    """Its results by task; of a reference, those whose targets it is about."""
    method: Specification | None = None
    key: RowKey | None = None
    """What was run, if anything was."""

    @property
    def is_missing(self) -> bool:
        """Whether nothing of it was run."""
        return all(cell.ours is None for cell in self.cells)


@dataclass(frozen=True)
class ResultTable:
    """One table with our figures, and with the paper's where it is the paper's."""

    suite: Suite
    layout: TableLayout
    columns: tuple[TableColumn, ...]
    rows: tuple[ResultRow, ...]
    caption: str
    notes: tuple[str, ...] = ()
    averages: ResultTable | None = None
    """Its averages once more, and without targets that stumble, where there are such."""
    slopes: ResultTable | None = None
    """How far rollouts follow targets that are moved, where there are such."""
    asked: list[ResultRow | None] = field(default_factory=list, compare=False, repr=False)
    """Rows that :meth:`row` was asked for, so that one can tell what decided a claim."""

    @property
    def smaller(self) -> dict[str, ResultTable]:
        """Tables that stand below it, by what they are."""
        known = {"averages": self.averages, "slopes": self.slopes}
        return {name: table for name, table in known.items() if table is not None}

    @property
    def label(self) -> str:
        """The paper's label, or ours."""
        return self.layout.label

    @property
    def source(self) -> tuple[str, str]:
        """Its label, and whose table that is."""
        return self.layout.paper_label, "of the paper" if self.layout.is_papers else "of himatch's own"

    @property
    def methods(self) -> tuple[ResultRow, ...]:
        """Rows of methods."""
        return tuple(row for row in self.rows if row.kind == "method")

    @property
    def reference(self) -> ResultRow | None:
        """The row that methods are held against."""
        return next((row for row in self.rows if row.kind == "reference"), None)

    @property
    def results(self) -> list[JobResult]:
        """Results that the table is made of."""
        return [job for row in self.methods for job in row.jobs.values()]

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that have a column."""
        return tuple(dict.fromkeys(task for column in self.columns for task, _ in column.parts))

    def row(self, key: RowKey) -> ResultRow | None:
        """The row of a key; where nothing of it was read at the state of the step, that of the next one."""
        known = {row.key: row for row in self.methods}
        found = known.get(key) or known.get(replace(key, recorded_at="t+1"))
        self.asked.append(found)
        return found
