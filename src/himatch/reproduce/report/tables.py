"""Tables from results: our cells beside the paper's, the reference below, the best marked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from himatch.divergences import Summary, summarize
from himatch.errors import TaskError
from himatch.reproduce.paper import PaperFigure
from himatch.reproduce.report.best import mark_best
from himatch.reproduce.report.captions import by_data, caption_of, data_hash, missing_note
from himatch.reproduce.report.rows import RowKey, gather_rows, main_budget
from himatch.reproduce.report.slopes import slopes_of
from himatch.reproduce.report.stumbles import RULE, listed, steady, steady_columns
from himatch.reproduce.report.table import HELD_OUT, MIXTURE, Cell, ResultRow, ResultTable, reference_of, scores_of
from himatch.reproduce.report.target_returns import with_returns
from himatch.reproduce.results import JobResult, TargetScore, charged_scores
from himatch.reproduce.specification import Specification
from himatch.reproduce.suite import AVERAGE, Suite, TableColumn, TableLayout
from himatch.reproduce.suites import SUITES, TABLES
from himatch.tasks import get_task


def build_tables(results: Sequence[JobResult]) -> list[ResultTable]:
    """Every table that there is a result for."""
    found = with_returns(results)
    tables = []
    # Suites of the same data stand together.
    alike: dict[str, list[JobResult]] = {suite.dataset: [] for suite in SUITES.values()}
    for result in found:
        if result.suite in SUITES:
            alike[SUITES[result.suite].dataset].append(result)
    divided = {dataset: by_data(results) for dataset, results in alike.items()}
    for suite, layout in TABLES.values():
        own, brought = divided[suite.dataset]
        tables.append(build_table(suite, layout, own))
        for data, some in brought.items():
            tasks = (result.task for result in some if result.suite == suite.name)
            tables.append(build_table(suite, layout.on(data, tasks), some))
    return [table for table in tables if table is not None]


def build_table(suite: Suite, layout: TableLayout, results: Sequence[JobResult]) -> ResultTable | None:
    """One table, or nothing where there is no result for it."""
    chosen = [
        result
        for result in results
        if (result.suite, result.feature) == (suite.name, layout.feature) and layout.includes(result.method)
    ]
    if not chosen:
        return None
    found = dict.fromkeys(result.task for result in chosen)
    tasks = (*(t for t in layout.tasks if t in found), *(t for t in found if t not in layout.tasks))
    columns = layout.columns(tasks)
    methods = [_method_row(*row, columns, layout) for row in gather_rows(chosen, layout)]
    if layout.remark:
        methods = [replace(row, name=f"{row.name}, {layout.remark}") for row in methods]
    if suite.other_feature:
        methods = [replace(row, cells=tuple(replace(c, comparable=False) for c in row.cells)) for row in methods]
    marked = mark_best(methods, columns, layout)
    below = _rows_below(methods, columns, layout)
    absent = tuple(task for task in layout.tasks if task not in found)
    notes = [f"No results for {', '.join(absent)}."] if absent else []
    if absent and any(column.is_average for column in columns):
        notes.append(f"Averages, the paper's too, are over {' and '.join(tasks)} alone.")
    gaps = missing_note([(row.name, [t for t in tasks if t not in row.jobs]) for row in marked], tasks)
    notes += [gaps] if gaps else []
    notes += [note for row in below for note in _elsewhere(row, marked)]
    table = ResultTable(suite, layout, columns, (*marked, *below), caption_of(suite, layout, chosen), tuple(notes))
    averages = _averages(table) if layout.without_stumbles else None
    return replace(table, averages=averages, slopes=slopes_of(table))


def _averages(table: ResultTable) -> ResultTable | None:
    """Averages with and without targets that stumble, and the same of the tasks that have some.

    Nothing where there is no average, or none stumbles.
    """
    layout, named = table.layout, listed(table.results)
    average = next((column for column in table.columns if column.key == AVERAGE), None)
    if average is None or not named:
        return None
    steadily = steady_columns(table.columns, table.results)
    rows = [row for row in table.methods if row.cells[table.columns.index(average)].ours and row.method]
    less = [(row, {task: steady(job) for task, job in row.jobs.items()}) for row in rows]
    without = [
        _method_row(row.name, row.method, row.key, jobs, list(steadily.values()), layout)
        for row, jobs in less
        if row.method is not None
    ]
    without = mark_best(without, list(steadily.values()), layout)
    without += _rows_below(without, list(steadily.values()), layout)
    places = [table.columns.index(column) for column in steadily]
    whole = {row.name: [row.cells[i] for i in places] for row in table.rows}
    # The paper prints no such average.
    found = [
        replace(row, cells=tuple(c for a, b in zip(whole[row.name], row.cells, strict=True) for c in (a, _plain(b))))
        for row in without
    ]
    methods, below = ([row for row in found if row.kind == kind] for kind in ("method", "reference"))
    columns = tuple(c for a, b in steadily.items() for c in (replace(a, title="all targets"), b))
    caption = f"Averages of all targets, and without those that stumble: {named}. {RULE}"
    return ResultTable(table.suite, layout, columns, (*methods, *below), caption)


def _plain(cell: Cell) -> Cell:
    """Without the paper's figure."""
    return replace(cell, paper=None)


def _method_row(
    name: str,
    method: Specification,
    key: RowKey | None,
    jobs: Mapping[str, JobResult],
    columns: Sequence[TableColumn],
    layout: TableLayout,
) -> ResultRow:
    cells = []
    for column in columns:
        ours = _ours(jobs, column, layout)
        published, normalized = _papers(method, column, layout), _normalized(ours, column, layout)
        played = _mean(jobs, column, lambda target: target.played)
        cost = _mean(jobs, column, charged_scores) if layout.is_distance else None
        alone = _mean(jobs, column, lambda target: target.within_episode) if layout.is_distance else None
        below = _reference(jobs, column, layout)
        cells.append(
            Cell(ours, published, normalized, played=played, charged=cost, within_episode=alone, reference=below)
        )
    return ResultRow(name, "method", tuple(cells), jobs, method, key)


def _ours(jobs: Mapping[str, JobResult], column: TableColumn, layout: TableLayout) -> Summary | None:
    """Over targets and seeds, of every part of a column; nothing where one is missing."""
    parts = [(task, group_scores(jobs[task], group, layout)) for task, group in column.parts if task in jobs]
    if len(parts) < len(column.parts) or not all(scores for _, scores in parts):
        return None
    found = summarize([scores for _, scores in parts], [task for task, _ in parts])
    if layout.measure == "success":  # goals differ in how far they are: what varies is the seed
        return replace(found, std=None, iqm=None, low=None, high=None)
    return found


def group_scores(job: JobResult, group: str, layout: TableLayout) -> list[list[float]]:
    """Of every target in a group, one for each seed."""
    scores = [scores_of(target, layout) for target in job.targets if target.belongs_to(group)]
    return [score for score in scores if score]  # without rewards there are no returns


def _mean(
    jobs: Mapping[str, JobResult], column: TableColumn, of: Callable[[TargetScore], Sequence[float]]
) -> float | None:
    """The mean over targets and seeds, then over the parts of a column; nothing where a result does not say."""
    parts = []
    for task, group in column.parts:
        found = [of(target) for target in jobs[task].targets if target.belongs_to(group)] if task in jobs else []
        if not found or not all(found):
            return None
        parts.append(float(np.mean([np.mean(values) for values in found])))
    return float(np.mean(parts))


def _papers(method: Specification, column: TableColumn, layout: TableLayout) -> PaperFigure | None:
    """The printed figure; an average over other tasks than the paper's is taken over its cells."""
    paper, tasks = layout.paper, dict.fromkeys(task for task, _ in column.parts)
    if column.key != AVERAGE or tuple(tasks) == layout.tasks:
        return paper.figure(method, column.key)
    figures = [paper.figure(method, f"{task}/{group}") for task, group in column.parts]
    known = [figure.mean for figure in figures if figure is not None]
    return PaperFigure(float(np.mean(known)), None) if len(known) == len(figures) else None


def _normalized(score: Summary | None, column: TableColumn, layout: TableLayout) -> float | None:
    if layout.measure != "return" or score is None or column.is_average:
        return None
    try:
        return get_task(column.parts[0][0]).normalized_return(score.mean)
    except TaskError:  # a task of the user's own that is not registered here
        return None


def _rows_below(methods: Sequence[ResultRow], columns: Sequence[TableColumn], layout: TableLayout) -> list[ResultRow]:
    """The reference: what a policy that time-shares whole episodes reaches, or the held-out episodes' returns.

    Other data have other targets: of each task, those of the first row with the main budget. Of success rates, what
    others published.
    """
    if layout.published:
        given = [[row.figures.get(column.key) for column in columns] for row in layout.published]
        cells_of = [tuple(Cell(figure and Summary(*figure)) for figure in figures) for figures in given]
        return [ResultRow(row.name, "reference", c, {}) for row, c in zip(layout.published, cells_of, strict=True)]
    main = main_budget(row.key.budget for row in methods if row.key is not None)
    jobs: dict[str, JobResult] = {}
    for row in sorted(methods, key=lambda row: row.key is None or row.key.budget != main):
        jobs = {task: job for task, job in row.jobs.items() if _values(job.targets, layout)} | jobs
    name = HELD_OUT if layout.measure == "return" else MIXTURE
    cells = []
    for column in columns:
        ours = _reference(jobs, column, layout)
        cells.append(Cell(ours, layout.paper.held_out.get(column.key), _normalized(ours, column, layout)))
    rows = [ResultRow(name, "reference", tuple(cells), jobs)]
    return rows if any(cell.ours for cell in cells) else []


def _reference(jobs: Mapping[str, JobResult], column: TableColumn, layout: TableLayout) -> Summary | None:
    """What results by task say about their targets themselves; nothing where they lack a part of the column."""
    parts = []
    for task, group in column.parts:
        targets = [target for target in jobs[task].targets if target.belongs_to(group)] if task in jobs else []
        values = _values(targets, layout)
        if not values:
            return None
        parts.append(Summary(float(np.mean(values)), float(np.std(values)), count=len(values)))
    if not column.is_average:
        return parts[0]
    return Summary(float(np.mean([part.mean for part in parts])), count=sum(part.count for part in parts))


def _values(targets: Sequence[TargetScore], layout: TableLayout) -> list[float]:
    """The number of each target that has one."""
    return [value for target in targets if (value := reference_of(target, layout)) is not None]


def _elsewhere(below: ResultRow, methods: Sequence[ResultRow]) -> list[str]:
    """Says which rows stand on other data than the reference below them."""
    used = {task: data_hash(job) for task, job in below.jobs.items()}
    names = [
        row.name
        for row in methods
        if any(data_hash(job) != used[task] for task, job in row.jobs.items() if task in used)
    ]
    return [f"{below.name}: not of the data of {'; '.join(names)}."] if names else []
