"""Target and rollouts over one another, as small multiples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import fill

import numpy as np

from himatch.reproduce.report.figures.selection import first_targets, found, histogram, shown_methods, targets_of
from himatch.reproduce.report.table import ResultRow, ResultTable
from himatch.reproduce.results import TargetScore
from himatch.viz.histogram_grid import LABELS, HistogramPanel, RolloutLine, histogram_grid
from himatch.viz.picture import Picture, picture
from himatch.viz.style import SERIES

NUMBER = "The number is W₁, averaged over seeds."


def match_panels(table: ResultTable) -> list[Picture]:
    """Targets as rows (of each task the best and a middle episode), methods as columns."""
    methods, grid, names = shown_methods(table), [], []
    for task in table.tasks:
        for target in first_targets(methods, task):
            grid.append([_panel(target, method, task) for method in methods])
            name = fill(short_name(target.name), 14)
            names.append(name if len(table.tasks) == 1 else f"{task}\n{name}")
    if not grid:
        return []
    figure = histogram_grid(grid, names, [_wrapped(method.name) for method in methods], _feature(table))
    caption = f"{_feature(table).capitalize()} of targets (grey) and of rollouts, all seeds pooled (blue). {NUMBER}"
    return [picture(figure, _name(table, "histograms"), caption + _of_many(methods, table))]


def synthetic_panels(table: ResultTable) -> list[Picture]:
    """A picture for each task: methods as rows, the paper's six targets as columns."""
    pictures = []
    for task in table.tasks:
        methods = [row for row in shown_methods(table) if task in row.jobs]
        targets = [target for target in targets_of(methods, task) if target.ordering == "listed"]
        if not targets:
            continue
        figure = histogram_grid(
            [[_panel(target, method, task) for target in targets] for method in methods],
            [_wrapped(method.name) for method in methods],
            [short_name(target.name) for target in targets],
            _feature(table),
            one_x=True,
            one_y=True,
        )
        caption = f"{task}: the paper's synthetic targets (grey, in the listed order) and rollouts (blue). {NUMBER}"
        pictures.append(picture(figure, _name(table, task), caption + _of_many(methods, table)))
    return pictures


def shift_panels(table: ResultTable) -> list[Picture]:
    """Of each task the best and a middle target as rows, their shifts as columns, methods as lines."""
    methods = shown_methods(table)
    rows = [
        (task, group) for task in table.tasks for group in dict.fromkeys(t.group for t in targets_of(methods, task))
    ]
    shifts = sorted({t.shift for task, _ in rows for t in targets_of(methods, task) if t.shift is not None})
    if not rows or not shifts:
        return []
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
        panel=(1.28, 0.92),
        labels=(LABELS[0], LABELS[1] + 0.3),
    )
    caption = "A held-out target of each group, moved by -3 to 3 bin widths (grey), and rollouts, all seeds pooled."
    return [picture(figure, _name(table, "histograms"), caption)]


def short_name(name: str) -> str:
    """A target's name, short enough for a title: ``N(5, 1)`` for ``normal(5,1)``, parts on lines of their own."""
    name = re.sub(r"patch\((.+?), (.+?)(?:, \d+)?\)", r"\1, then \2", name)
    name = re.sub(r"(?<=\w) (\d+)\b", r" #\1", name)  # an episode's place in its group, not a part of the group's name
    name = re.sub(r"normal\(([^,()]+),\s*([^,()]+)\)", r"N(\1, \2)", name).replace("0.5*", "½ ")
    return re.sub(r"\s*\+\s*", "\n+ ", name)


def _panel(target: TargetScore, method: ResultRow, task: str) -> HistogramPanel:
    """One method, with its W1."""
    rolled = found(method, task, target)
    if rolled is None:
        return HistogramPanel(histogram(target), [], "missing")
    line = RolloutLine(histogram(rolled, "rollouts"), method.name)
    return HistogramPanel(histogram(target), [line], f"{np.mean(rolled.w1):.2f}")


def _overlay(target: TargetScore, methods: Sequence[ResultRow], task: str) -> HistogramPanel:
    """All methods, each in its colour."""
    drawn = [(found(method, task, target), method.name, color) for method, color in zip(methods, SERIES, strict=False)]
    lines = [RolloutLine(histogram(r, "rollouts"), name, color) for r, name, color in drawn if r is not None]
    return HistogramPanel(histogram(target), lines)


def _wrapped(name: str) -> str:
    parts = name.replace(" (", "\n(").replace(", planned", "\nplanned").replace(", remaining", "\nremaining")
    return "\n".join(fill(part, 24) for part in parts.splitlines())


def _feature(table: ResultTable) -> str:
    return table.layout.feature.replace("_", "-")


def _name(table: ResultTable, what: str) -> str:
    return f"{table.label}-{what}".replace("_", "-")


def _of_many(methods: Sequence[ResultRow], table: ResultTable) -> str:
    every = sum(bool(row.jobs) for row in table.methods)
    return "" if len(methods) == every else f" Shown are the {len(methods)} of {every} methods that match best."
