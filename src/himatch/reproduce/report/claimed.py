"""The rows that claims are about: which they are, and whether they were run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from himatch.divergences import Summary, summarize
from himatch.reproduce.report.rows import RowKey, main_budget
from himatch.reproduce.report.table import Cell, ResultRow, ResultTable
from himatch.reproduce.specification import Specification, display_name, qualified
from himatch.reproduce.suite import AVERAGE


@dataclass(frozen=True)
class ClaimedRow:
    """A row that a claim is about; without a budget, that of the whole report."""

    method: Specification
    conditioning: str = "nominal"
    budget: str | None = None
    steps: int | None = None
    policy: str = "paper"
    table: str | None = None
    """The label of its table, where that is not the claim's."""

    def key(self, budget: str) -> RowKey:
        """Where the row is found in a report about this budget."""
        return RowKey(self.method, self.conditioning, self.budget or budget, self.steps, self.policy)

    @property
    def missing_name(self) -> str:
        """How it is called where it was not run."""
        policy = None if self.policy == "paper" else self.policy
        return qualified(display_name(self.method), policy, self.conditioning, self.budget, self.steps)


class Found(NamedTuple):
    """A claimed row that was run, with the cell and the score that the claim is about."""

    row: ResultRow
    cell: Cell
    score: Summary


class Gap(NamedTuple):
    """A claimed row that was not run, or not on some tasks."""

    name: str
    tasks: tuple[str, ...]


def budget_of(tables: Sequence[ResultTable]) -> str:
    """The budget that claims are about where they name none."""
    return main_budget(row.key.budget for table in tables for row in table.rows if row.key is not None)


def find_row(table: ResultTable, claimed: ClaimedRow, budget: str, column: str) -> Found | Gap:
    """A claimed row with its cell of a column, or what of it was not run."""
    row, keys = table.row(claimed.key(budget)), [c.key for c in table.columns]
    if row is None:
        return Gap(claimed.missing_name, ())
    needed = table.layout.tasks if column == AVERAGE else (column.split("/")[0],)
    missing = tuple(task for task in needed if task not in row.jobs)
    if missing:
        return Gap(row.name, missing)
    cell = row.cells[keys.index(column)]
    if cell.ours is None or (column == AVERAGE and table.tasks != needed):
        return Gap(row.name, ("an average over the paper's tasks alone",))
    return Found(row, cell, cell.ours)


def missing(gaps: Sequence[Gap]) -> str:
    """``walker2d missing`` where all lack the same, else who lacks what."""
    if gaps[0].tasks and len({gap.tasks for gap in gaps}) == 1:
        return f"{', '.join(gaps[0].tasks)} missing"
    absent = [gap.name for gap in gaps if not gap.tasks]
    parts = [f"{', '.join(absent)} missing"] if absent else []
    parts += [f"{gap.name} without {', '.join(gap.tasks)}" for gap in gaps if gap.tasks]
    return "; ".join(parts)


def played(cell: Cell) -> str:
    """How much of the time was played, behind a distance; nothing where that was not measured."""
    return "" if cell.played is None else f", {cell.played:.0%} played"


def among(found: Found, parts: Sequence[tuple[str, str]], words: str) -> Found:
    """A row on those targets alone that have some words in their names; ``parts`` are what its column averages."""
    jobs = {
        task: replace(job, targets=[target for target in job.targets if words in target.name])
        for task, job in found.row.jobs.items()
    }
    scores = [[target.w1 for target in jobs[task].targets if target.belongs_to(group)] for task, group in parts]
    score = summarize(scores, [task for task, _ in parts])
    return Found(replace(found.row, jobs=jobs), Cell(score), score)


def unlike(ours: Found, other: Found) -> str:
    """What else tells two rows of different policies apart: ``also other steps, tokens, weights``; or nothing."""
    if ours.row.key is None or other.row.key is None or ours.row.key.policy == other.row.key.policy:
        return ""
    task = next(iter(ours.row.jobs))
    mine, theirs = ours.row.jobs[task], other.row.jobs[task]
    settings, others = (_settings(job.provenance) for job in (mine, theirs))
    names = [name for name in settings if name in others and settings[name] != others[name]]
    if (mine.policy is None) != (theirs.policy is None):  # results that record none have their lowest validation loss
        names.append("weights")
    said = f"also other {', '.join(names).replace('_', ' ')}" if names else ""
    unknown = "" if (ours.cell.played is None) == (other.cell.played is None) else "time played known of one alone"
    return "; ".join(filter(None, (said, unknown)))


def _settings(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Of training, without what a policy is and what became of it."""
    facts = provenance.get("training") or {}
    became = "head", "seconds", "cpu_seconds", "temperature", "tried", "chosen_by"
    return {name: facts[name] for name in facts if name not in became}
