"""Target and rollouts over one another, as small multiples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from himatch.reproduce.report.figures.pictures import (
    COLORS,
    Picture,
    blank,
    legend,
    picture,
    quiet,
    rollout_line,
    target_area,
)
from himatch.reproduce.report.figures.selection import (
    edges,
    first_targets,
    found,
    shares,
    shown_methods,
    span,
    targets_of,
)
from himatch.reproduce.report.table import ResultRow, ResultTable
from himatch.reproduce.results import TargetScore
from himatch.viz.match_plot import ROLLOUT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL = (1.5, 0.98)  # inches
LABELS = 0.75  # inches beside and below the panels


def match_panels(table: ResultTable) -> list[Picture]:
    """Targets as rows (of each task the best and a middle episode), methods as columns."""
    methods = shown_methods(table)
    rows = [(task, target) for task in table.tasks for target in first_targets(methods, task)]
    if not rows:
        return []
    figure = blank(PANEL[0] * len(methods) + LABELS, PANEL[1] * len(rows) + LABELS)
    axes = figure.subplots(len(rows), len(methods), squeeze=False)
    for (task, target), line in zip(rows, axes, strict=True):
        for axis, method in zip(line, methods, strict=True):
            _match(axis, target, [(method, ROLLOUT)], task)
        _limit(line, [target], methods, task)
        name = fill(pretty(target.name), 14)
        line[0].set_ylabel(name if len(table.tasks) == 1 else f"{task}\n{name}")
    for axis, method in zip(axes[0], methods, strict=True):
        axis.set_title(_wrapped(method.name))
    figure.supxlabel(_feature(table), fontsize=8)
    caption = f"{_feature(table).capitalize()} of targets (grey) and of rollouts, all seeds pooled (blue). {_NUMBER}"
    return [picture(figure, _name(table, "histograms"), caption + _of_many(methods, table))]


def synthetic_panels(table: ResultTable) -> list[Picture]:
    """A picture for each task: methods as rows, the paper's six targets as columns."""
    pictures = []
    for task in table.tasks:
        methods = [row for row in shown_methods(table) if task in row.jobs]
        targets = [target for target in targets_of(methods, task) if target.ordering == "listed"]
        if not targets:
            continue
        figure = blank(PANEL[0] * len(targets) + LABELS, PANEL[1] * len(methods) + LABELS)
        axes = figure.subplots(len(methods), len(targets), squeeze=False)
        for method, line in zip(methods, axes, strict=True):
            for axis, target in zip(line, targets, strict=True):
                _match(axis, target, [(method, ROLLOUT)], task)
            line[0].set_ylabel(_wrapped(method.name))
        for axis, target in zip(axes[0], targets, strict=True):
            axis.set_title(pretty(target.name))
        _limit(list(axes.flat), targets, methods, task)
        for axis in axes[:-1].flat:  # all share one range
            axis.tick_params(labelbottom=False)
        figure.supxlabel(_feature(table), fontsize=8)
        caption = f"{task}: the paper's synthetic targets (grey, in the listed order) and rollouts (blue). {_NUMBER}"
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
    figure = blank(1.28 * len(shifts) + LABELS, 0.92 * len(rows) + LABELS + 0.3)
    axes = figure.subplots(len(rows), len(shifts), squeeze=False)
    for (task, group), line in zip(rows, axes, strict=True):
        targets = [t for t in targets_of(methods, task) if t.group == group]
        chosen = [next((t for t in targets if t.shift == shift), None) for shift in shifts]
        for axis, target in zip(line, chosen, strict=True):
            if target is not None:
                _match(axis, target, list(zip(methods, COLORS, strict=False)), task)
        _limit(line, [t for t in chosen if t is not None], methods, task)
        line[0].set_ylabel(f"{task}\n{group}")
    for axis, shift in zip(axes[0], shifts, strict=True):
        axis.set_title(f"{shift:+.0f}".replace("-", "\N{MINUS SIGN}") if shift else "0")
    legend(figure, list(axes.flat))
    figure.supxlabel(_feature(table), fontsize=8)
    caption = "A held-out target of each group, moved by -3 to 3 bin widths (grey), and rollouts, all seeds pooled."
    return [picture(figure, _name(table, "histograms"), caption)]


_NUMBER = "The number is W₁, averaged over seeds."


def pretty(name: str) -> str:
    """A target's name, short enough for a title: ``N(5, 1)`` for ``normal(5,1)``, parts on lines of their own."""
    name = re.sub(r"patch\((.+?), (.+?)(?:, \d+)?\)", r"\1, then \2", name)
    name = re.sub(r"(?<=\w) (\d+)\b", r" #\1", name)  # an episode's place in its group, not a part of the group's name
    name = re.sub(r"normal\(([^,()]+),\s*([^,()]+)\)", r"N(\1, \2)", name).replace("0.5*", "½ ")
    return re.sub(r"\s*\+\s*", "\n+ ", name)


def _match(axis: Axes, target: TargetScore, methods: Sequence[tuple[ResultRow, str]], task: str) -> None:
    target_area(axis, edges(target), shares(target))
    for method, color in methods:
        rolled = found(method, task, target)
        if rolled is not None:
            rollout_line(axis, edges(rolled), shares(rolled, "rollouts"), color, method.name)
        if len(methods) == 1:
            text = "missing" if rolled is None else f"{np.mean(rolled.w1):.2f}"
            axis.text(0.99, 0.97, text, transform=axis.transAxes, ha="right", va="top", fontsize=7)


def _limit(axes: Sequence[Axes], targets: Sequence[TargetScore], methods: Sequence[ResultRow], task: str) -> None:
    """One range for panels that are compared, with room for the number."""
    drawn = [(edges(target), shares(target)) for target in targets]
    rolled = [found(method, task, target) for method in methods for target in targets]
    drawn += [(edges(r), shares(r, "rollouts")) for r in rolled if r is not None]
    top = max(float(np.max(np.divide(weights, np.diff(bounds)))) for bounds, weights in drawn)
    for axis in axes:
        quiet(axis)
        axis.set_xlim(*span(drawn))
        axis.set_ylim(0, 1.22 * top)


def _wrapped(name: str) -> str:
    return name.replace(" (", "\n(").replace(", planned", "\nplanned").replace(", remaining", "\nremaining")


def _feature(table: ResultTable) -> str:
    return table.layout.feature.replace("_", "-")


def _name(table: ResultTable, what: str) -> str:
    return f"{table.label}-{what}".replace("_", "-")


def _of_many(methods: Sequence[ResultRow], table: ResultTable) -> str:
    every = sum(bool(row.jobs) for row in table.methods)
    return "" if len(methods) == every else f" Shown are the {len(methods)} of {every} methods that match best."
