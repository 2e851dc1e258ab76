"""The paper's tables from results: our cells beside the paper's, the reference below, the best marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from himatch.errors import TaskError
from himatch.reproduce.report.captions import caption_of, data_hash, missing_note
from himatch.reproduce.report.layouts import AVERAGE, LAYOUTS, Column, Layout, belongs, columns_of
from himatch.reproduce.report.methods import has_option
from himatch.reproduce.report.paper import PaperFigure, PaperTable, paper_tables
from himatch.reproduce.report.runs import HELD_OUT, Run, gather_rows, main_budget
from himatch.reproduce.report.scores import Score, Strata, average, plain, scored
from himatch.reproduce.results import JobResult, TargetScore
from himatch.tasks import get_task

REFERENCE = "Episode mixture"


@dataclass(frozen=True)
class Cell:
    """Our score and the paper's; either may be missing."""

    ours: Score | None = None
    paper: PaperFigure | None = None
    normalized: float | None = None
    """D4RL's score of a return: 0 for a random policy, 100 for an expert."""
    best: bool = False
    reference: Score | None = None
    """Of the very targets and data of ours: what the nearest mixture of episodes reaches, or the held-out returns."""

    @property
    def ratio(self) -> float | None:
        """Ours by the paper's."""
        if self.ours is None or self.paper is None or self.paper.mean == 0:
            return None
        return self.ours.mean / self.paper.mean


@dataclass(frozen=True)
class Row:
    """A method under one conditioning with one effort, or something to compare methods with."""

    name: str
    kind: Literal["method", "reference"]
    cells: tuple[Cell, ...]
    jobs: Mapping[str, JobResult]
    """Its results by task; of a reference, those whose targets it is about."""
    run: Run | None = None
    """What was run, if anything was."""

    @property
    def is_missing(self) -> bool:
        """Whether nothing of it was run."""
        return all(cell.ours is None for cell in self.cells)


@dataclass(frozen=True)
class Table:
    """One table of the paper with our figures."""

    layout: Layout
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    caption: str
    notes: tuple[str, ...]

    @property
    def label(self) -> str:
        """The paper's label."""
        return self.layout.label

    @property
    def methods(self) -> tuple[Row, ...]:
        """Rows of methods."""
        return tuple(row for row in self.rows if row.kind == "method")

    @property
    def results(self) -> list[JobResult]:
        """Results that the table is made of."""
        return [job for row in self.methods for job in row.jobs.values()]

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that have a column."""
        return tuple(dict.fromkeys(task for column in self.columns for task, _ in column.parts))

    def row(self, run: Run) -> Row | None:
        """The row of a run."""
        return next((row for row in self.rows if row.run == run), None)


def build_tables(results: Sequence[JobResult]) -> list[Table]:
    """Every table of the paper that there is a result for."""
    tables = (build_table(layout, results) for layout in LAYOUTS)
    return [table for table in tables if table is not None]


def build_table(layout: Layout, results: Sequence[JobResult]) -> Table | None:
    """One table, or nothing where there is no result for it."""
    chosen = [
        result
        for result in results
        if result.suite == layout.suite
        and result.feature == layout.feature
        and (layout.option is None or has_option(result.method, layout.option))
    ]
    if not chosen:
        return None
    found = dict.fromkeys(result.task for result in chosen)
    tasks = (*(t for t in layout.tasks if t in found), *(t for t in found if t not in layout.tasks))
    columns, paper = columns_of(layout, tasks), paper_tables()[layout.label]
    methods = [_method_row(*row, columns, layout, paper) for row in gather_rows(chosen, paper)]
    marked = _mark_best(methods, layout)
    below = _rows_below(methods, columns, layout, paper)
    absent = tuple(task for task in layout.tasks if task not in found)
    notes = [f"No results for {', '.join(absent)}."] if absent else []
    if absent and any(column.is_average for column in columns):
        notes.append(f"Averages, the paper's too, are over {' and '.join(tasks)} alone.")
    gaps = missing_note([(row.name, [t for t in tasks if t not in row.jobs]) for row in marked], tasks)
    notes += [gaps] if gaps else []
    notes += [note for row in below for note in _elsewhere(row, marked)]
    return Table(layout, columns, (*marked, *below), caption_of(layout, chosen), tuple(notes))


def _method_row(
    name: str,
    run: Run | None,
    jobs: Mapping[str, JobResult],
    columns: Sequence[Column],
    layout: Layout,
    paper: PaperTable,
) -> Row:
    method = next((job.method for job in jobs.values()), name)
    cells = []
    for column in columns:
        parts = [(task, _strata(jobs[task], group, layout)) for task, group in column.parts if task in jobs]
        complete = len(parts) == len(column.parts) and all(strata for _, strata in parts)
        ours = scored(parts) if complete else None
        normalized = _normalized(column, ours) if layout.measure == "return" else None
        published = _papers(paper, method, column, layout)
        cells.append(Cell(ours, published, normalized, reference=_reference(jobs, column, layout)))
    return Row(name, "method", tuple(cells), jobs, run)


def _strata(job: JobResult, group: str, layout: Layout) -> Strata:
    targets = [target for target in job.targets if belongs(target, group)]
    strata = [target.returns if layout.measure == "return" else target.w1 for target in targets]
    return [stratum for stratum in strata if stratum]  # without rewards there are no returns


def _papers(paper: PaperTable, method: str, column: Column, layout: Layout) -> PaperFigure | None:
    tasks = dict.fromkeys(task for task, _ in column.parts)
    if column.key != AVERAGE or tuple(tasks) == layout.tasks:
        return paper.figure(method, column.key)
    figures = [paper.figure(method, f"{task}/{group}") for task, group in column.parts]
    known = [figure.mean for figure in figures if figure is not None]
    return PaperFigure(float(np.mean(known)), None) if len(known) == len(figures) else None


def _normalized(column: Column, score: Score | None) -> float | None:
    if score is None or column.is_average:
        return None
    try:
        return get_task(column.parts[0][0]).normalized_return(score.mean)
    except TaskError:  # a task of the user's own that is not registered here
        return None


def _rows_below(methods: Sequence[Row], columns: Sequence[Column], layout: Layout, paper: PaperTable) -> list[Row]:
    """What a policy that time-shares whole episodes reaches; for returns, those of the held-out episodes.

    Other data have other targets: of each task, those of the first row with the main budget.
    """
    name = HELD_OUT if layout.measure == "return" else REFERENCE
    main = main_budget(row.run.budget for row in methods if row.run is not None)
    jobs: dict[str, JobResult] = {}
    for row in sorted(methods, key=lambda row: row.run is None or row.run.budget != main):
        jobs = {task: job for task, job in row.jobs.items() if _values(job.targets, layout)} | jobs
    cells = []
    for column in columns:
        ours = _reference(jobs, column, layout)
        normalized = _normalized(column, ours) if layout.measure == "return" else None
        cells.append(Cell(ours, paper.figure(name, column.key), normalized))
    return [Row(name, "reference", tuple(cells), jobs)] if any(cell.ours for cell in cells) else []


def _reference(jobs: Mapping[str, JobResult], column: Column, layout: Layout) -> Score | None:
    """What results say about their targets themselves; nothing where they lack a part of the column."""
    scores = []
    for task, group in column.parts:
        targets = [target for target in jobs[task].targets if belongs(target, group)] if task in jobs else []
        values = _values(targets, layout)
        if not values:
            return None
        scores.append(plain(values))
    return average(scores) if column.is_average else scores[0]


def _values(targets: Sequence[TargetScore], layout: Layout) -> list[float]:
    known = [target.target_return if layout.measure == "return" else target.reference for target in targets]
    return [value for value in known if value is not None]


def _elsewhere(reference: Row, methods: Sequence[Row]) -> list[str]:
    """Says which rows stand on other data than the reference below them."""
    used = {task: data_hash(job) for task, job in reference.jobs.items()}
    names = [
        row.name
        for row in methods
        if any(data_hash(job) != used[task] for task, job in row.jobs.items() if task in used)
    ]
    return [f"{reference.name}: not of the data of {'; '.join(names)}."] if names else []


def _mark_best(methods: Sequence[Row], layout: Layout) -> list[Row]:
    """Mark the lowest W1 of each column, or the return nearest to the held-out episodes'; alone nothing is best."""
    rows = [list(row.cells) for row in methods]
    for i in range(len(rows[0])):
        found = {j: _distance(row[i], layout) for j, row in enumerate(rows)}
        distances = {j: distance for j, distance in found.items() if distance is not None}
        for j, distance in distances.items():
            if len(distances) > 1 and distance == min(distances.values()):
                rows[j][i] = replace(rows[j][i], best=True)
    return [replace(row, cells=tuple(cells)) for row, cells in zip(methods, rows, strict=True)]


def _distance(cell: Cell, layout: Layout) -> float | None:
    if cell.ours is None or layout.measure == "w1":
        return None if cell.ours is None else cell.ours.mean
    return None if cell.reference is None else abs(cell.ours.mean - cell.reference.mean)
