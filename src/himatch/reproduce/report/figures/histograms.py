"""Target and rollouts over one another, as small multiples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import fill

import numpy as np

from himatch.reproduce.report.figures.selection import (
    found,
    histogram,
    is_one_number,
    is_papers,
    shown_methods,
    shown_targets,
    target_levels,
    targets_of,
)
from himatch.reproduce.report.table import ResultRow, ResultTable, scores_of
from himatch.reproduce.results import TargetScore
from himatch.reproduce.suite import TableLayout
from himatch.viz.histogram_grid import PANEL, HistogramPanel, RolloutLine, histogram_grid
from himatch.viz.picture import Picture, picture
from himatch.viz.style import PAGE_INK, SERIES

NUMBER = "The number is W₁, averaged over seeds."
LINE = " The dashed line is the target's mean, all that the sum tells which DT is conditioned on."
SMALL = (0.98, 0.62)  # inches of a panel where there are many
WIDTH = 24  # characters of a title
MANY = 8  # methods beside one another


def match_panels(table: ResultTable) -> list[Picture]:
    """Targets as rows (of each task two of each group), methods as columns."""
    methods, grid, names = shown_methods(table), [], []
    for task in table.tasks:
        for target in shown_targets(methods, task):
            grid.append([_panel(target, method, task, table.layout) for method in methods])
            name = short_name(target.name)
            names.append(name if len(table.tasks) == 1 else f"{task}\n{name}")
    if not grid:
        return []
    size, width = (SMALL, 13) if len(methods) > MANY else (PANEL, WIDTH)
    figure = histogram_grid(grid, names, [_wrapped(row.name, width) for row in methods], _feature(table), panel=size)
    caption = (
        f"{_feature(table).capitalize()} of targets (grey; the first and the last of each group) and of rollouts, all "
        f"seeds pooled (blue). {NUMBER}{_line(methods)}{_of_many(methods, table)}"
    )
    return [picture(figure, _name(table, "histograms"), caption)]


def match_strip(tables: Sequence[ResultTable]) -> Picture | None:
    """One match after another: the first target of each group, under the last conditioning of the first method.

    Of targets that no episode shows, where there are results of some.
    """
    ordered = sorted(tables, key=lambda table: table.suite.targets != "unseen")
    table = next(
        (t for t in ordered if t.layout.pictured and any(_in_one_dimension(t, task) for task in t.tasks)), None
    )
    if table is None:
        return None
    method = [row for row in shown_methods(table) if row.method == shown_methods(table)[0].method][-1]
    grid, names, titles = [], [], list[str]()
    for task in table.tasks:
        first = {target.group: target for target in reversed(targets_of([method], task))}
        titles = titles or list(first)[::-1]
        panels = [first.get(title) for title in titles]
        grid.append([None if target is None else _panel(target, method, task, table.layout) for target in panels])
        names.append(task)
    figure = histogram_grid(grid, names, [title.capitalize() for title in titles], _feature(table), panel=(1.0, 0.5))
    caption = (
        f"{table.layout.title}: the first target of each kind (grey) and the rollouts of {method.name} (blue). {NUMBER}"
    )
    return picture(figure, "overview-match", caption)


def _in_one_dimension(table: ResultTable, task: str) -> bool:
    targets = targets_of(shown_methods(table), task)
    return bool(targets) and np.squeeze(np.asarray(targets[0].histograms["target"])).ndim == 1


def synthetic_panels(table: ResultTable) -> list[Picture]:
    """A picture for each task: methods as rows, the paper's six targets as columns."""
    pictures = []
    for task in table.tasks:
        methods = [row for row in shown_methods(table) if task in row.jobs]
        targets = [target for target in targets_of(methods, task) if target.ordering == "listed"]
        if not targets:
            continue
        figure = histogram_grid(
            [[_panel(target, method, task, table.layout) for target in targets] for method in methods],
            [_wrapped(method.name) for method in methods],
            [short_name(target.name) for target in targets],
            _feature(table),
            one_x=True,
            one_y=True,
        )
        caption = f"{task}: the paper's synthetic targets (grey, in the listed order) and rollouts (blue). {NUMBER}"
        pictures.append(picture(figure, _name(table, task), caption + _line(methods) + _of_many(methods, table)))
    return pictures


def shift_panels(table: ResultTable) -> list[Picture]:
    """Of each task the first target of either group as rows, their shifts as columns, methods as lines.

    The paper's rows have a picture, and himatch's own another: more lines than these hide one another.
    """
    methods = shown_methods(table)
    papers = [row for row in methods if is_papers(row, table)]
    own = [row for row in methods if row not in papers]
    both = bool(papers and own)
    drawn = (
        _shifts(table, papers, "histograms", " The paper's rows." if both else ""),
        _shifts(table, own, "own-histograms", f" Rows that the paper does not have: {_listed(own)}."),
    )
    return [shown for shown in drawn if shown is not None]


def _listed(methods: Sequence[ResultRow]) -> str:
    return "; ".join(method.name for method in methods)


def _shifts(table: ResultTable, methods: Sequence[ResultRow], what: str, whose: str) -> Picture | None:
    rows = [
        (task, group) for task in table.tasks for group in dict.fromkeys(t.group for t in targets_of(methods, task))
    ]
    shifts = sorted({t.shift for task, _ in rows for t in targets_of(methods, task) if t.shift is not None})
    if not rows or not shifts:
        return None
    grid = []
    for task, group in rows:
        targets = [t for t in targets_of(methods, task) if t.group == group]
        chosen = [next((t for t in targets if t.shift == shift), None) for shift in shifts]
        grid.append([None if target is None else _overlay(target, methods, task) for target in chosen])
    figure = histogram_grid(
        grid,
        [f"{task}\n{group}" for task, group in rows],
        [f"{shift:+.0f}".replace("-", "\N{MINUS SIGN}") if shift else "0" for shift in shifts],
        _feature(table),
        legend=True,
        panel=(1.15, 0.7),
    )
    caption = "A held-out target of each group, moved by -3 to 3 bin widths (grey), and rollouts, all seeds pooled."
    return picture(figure, _name(table, what), caption + whose + _line(methods))


def short_name(name: str) -> str:
    """A target's name, short enough for a title: ``N(5, 1)`` for ``normal(5,1)``, parts on lines of their own."""
    name = re.sub(r"patch\((.+?), (.+?)(?:, \d+)?\)", r"\1, then \2", name)
    # An episode's place in its group, not a part of the group's name; after "for" it is a number of steps.
    name = re.sub(r"(?<=\w)(?<!for) (\d+)\b", r" #\1", name)
    name = re.sub(r"normal\(([^,()]+),\s*([^,()]+)\)", r"N(\1, \2)", name).replace("0.5*", "½ ")
    name = re.sub(r"uniform\(([^,()]+),\s*([^,()]+)\)", r"U(\1, \2)", name)
    return re.sub(r"\s*\+\s*", "\n+ ", name).replace(" then ", "\nthen ")


def _panel(target: TargetScore, method: ResultRow, task: str, layout: TableLayout) -> HistogramPanel:
    """One method, with its W1."""
    rolled = found(method, task, target)
    if rolled is None:
        return HistogramPanel(histogram(target), [], "missing")
    line = RolloutLine(histogram(rolled, "rollouts"), method.name)
    levels = [(level, PAGE_INK) for level in target_levels(method, target)]
    return HistogramPanel(histogram(target), [line], f"{np.mean(scores_of(rolled, layout)):.2f}", levels)


def _overlay(target: TargetScore, methods: Sequence[ResultRow], task: str) -> HistogramPanel:
    """All methods, each in its colour."""
    drawn = [(found(method, task, target), method.name, color) for method, color in zip(methods, SERIES, strict=False)]
    lines = [RolloutLine(histogram(r, "rollouts"), name, color) for r, name, color in drawn if r is not None]
    levels = [level for method in methods for level in target_levels(method, target)]
    return HistogramPanel(histogram(target), lines, levels=[(level, PAGE_INK) for level in levels[:1]])


def _wrapped(name: str, width: int = WIDTH) -> str:
    parts = name.replace(" (", "\n(").replace(", planned", "\nplanned").replace(", remaining", "\nremaining")
    return "\n".join(fill(part, width) for part in parts.splitlines())


def _feature(table: ResultTable) -> str:
    return table.layout.feature.replace("_", "-")


def _name(table: ResultTable, what: str) -> str:
    return f"{table.label}-{what}".replace("_", "-")


def _line(methods: Sequence[ResultRow]) -> str:
    """What the dashed line is, where there is one."""
    return LINE if any(is_one_number(method) for method in methods) else ""


def _of_many(methods: Sequence[ResultRow], table: ResultTable) -> str:
    every, size = sum(bool(row.jobs) for row in table.methods), table.layout.proposed.get("m")
    if len(methods) == every:
        return ""
    kind = "budget" if size is None else f"budget, with m = {size}"
    return f" Shown are the paper's rows and then himatch's own, {len(methods)} of {every}: those of the main {kind}."
