"""W1 by method with intervals, W1 by shift, and returns asked and reached."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np

from himatch.reproduce.report.figures.pictures import AXIS, COLORS, INK, Picture, blank, legend, picture
from himatch.reproduce.report.table import ResultRow, ResultTable
from himatch.viz.match_plot import ROLLOUT

PAPER = "#E69F00"


def distance_chart(table: ResultTable) -> list[Picture]:
    """A panel for each task (or group): interquartile mean and interval, the paper's figure, the reference."""
    wanted = table.layout.groups if table.layout.over == "groups" else table.layout.averaged[:1]
    panels = [column for column in table.columns if not column.is_average and column.parts[0][1] in wanted]
    rows = [row for row in table.methods if not row.is_missing]
    if not rows or not panels:
        return []
    figure = blank(max(2.35 * len(panels) + 1.6, 7.2), 0.235 * len(rows) + 0.95)
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    reference = table.reference
    for axis, column in zip(axes, panels, strict=True):
        i, (task, group) = table.columns.index(column), column.parts[0]
        for y, row in enumerate(rows):
            cell = row.cells[i]
            if cell.paper is not None:
                axis.plot(cell.paper.mean, y, "D", mfc="none", mec=PAPER, ms=5, mew=1.2, label="paper (mean)")
            if cell.ours is None:
                continue
            each = [np.mean(t.w1) for t in row.jobs[task].targets if t.belongs_to(group)]
            axis.plot(each, [y] * len(each), "|", color=AXIS, ms=6, alpha=0.55, label="each target")
            label = "interquartile mean"
            if cell.ours.low is not None:
                axis.plot([cell.ours.low, cell.ours.high], [y, y], color=ROLLOUT, lw=2.4, alpha=0.5)
                label += ", 95 % interval"
            axis.plot(cell.ours.iqm, y, "o", color=ROLLOUT, ms=4.5, label=label)
            axis.plot(cell.ours.mean, y, "x", color=INK, ms=4, mew=1.1, label="mean")
        if reference is not None and (mark := reference.cells[i].ours) is not None:
            axis.axvline(mark.mean, color=AXIS, lw=1, ls=(0, (4, 3)), label="episode mixture")
        axis.set_title(f"{column.head}, {column.title.lower()}" if column.title else column.head)
        axis.set_xlim(left=0)
        axis.set_ylim(len(rows) - 0.4, -0.6)
        axis.tick_params(axis="y", length=0)
        axis.grid(axis="x", color=AXIS, alpha=0.22, lw=0.6)
    axes[0].set_yticks(range(len(rows)), [row.name for row in rows])
    figure.supxlabel("W₁", fontsize=8)
    legend(figure, axes)
    caption = "W₁ by method, lower is better; every tick is a target (mean over seeds)."
    return [picture(figure, f"{table.label}-distances".replace("_", "-"), caption)]


def shift_chart(table: ResultTable) -> list[Picture]:
    """How W1 grows as targets move away."""
    rows = [row for row in table.methods if not row.is_missing]
    colors = _colors(rows)
    figure = blank(max(2.4 * len(table.tasks) + 0.7, 4.8), 2.3)
    axes = figure.subplots(1, len(table.tasks), squeeze=False)[0]
    reference = {} if table.reference is None else table.reference.jobs
    for axis, task in zip(axes, table.tasks, strict=True):
        for name, targets in [(row.name, row.jobs[task].targets) for row in rows if task in row.jobs]:
            shifts = sorted({t.shift for t in targets if t.shift is not None})
            means = [float(np.mean([t.w1 for t in targets if t.shift == s])) for s in shifts]
            axis.plot(shifts, means, "o-", color=colors[name], ms=3.5, lw=1.3, label=name)
        mixed = reference[task].targets if task in reference else []
        known = [(t.shift, t.reference) for t in mixed if t.shift is not None and t.reference is not None]
        levels = {s: float(np.mean([r for shift, r in known if shift == s])) for s in sorted({s for s, _ in known})}
        if levels:
            axis.plot(levels.keys(), levels.values(), color=AXIS, lw=1, ls=(0, (4, 3)), label="episode mixture")
        axis.set(title=task, xlabel="shift in bin widths")
        axis.set_ylim(bottom=0)
        axis.grid(axis="y", color=AXIS, alpha=0.22, lw=0.6)
    axes[0].set_ylabel("mean W₁")
    legend(figure, axes)
    return [picture(figure, f"{table.label}-shifts".replace("_", "-"), "Mean W₁ over targets and seeds by shift.")]


def return_chart(table: ResultTable) -> list[Picture]:
    """Every held-out episode: the return it had, and the mean return of the rollouts it was a target for."""
    rows = [row for row in table.methods if not row.is_missing]
    colors = _colors(rows)
    figure = blank(2.5 * len(table.tasks) + 0.6, 2.7)
    axes = figure.subplots(1, len(table.tasks), squeeze=False)[0]
    for axis, task in zip(axes, table.tasks, strict=True):
        for row in (r for r in rows if task in r.jobs):
            known = [t for t in row.jobs[task].targets if t.target_return is not None and t.returns]
            asked, reached = [t.target_return for t in known], [np.mean(t.returns) for t in known]
            axis.plot(asked, reached, "o", color=colors[row.name], ms=4, alpha=0.75, mew=0, label=row.name)
        low, high = (f(*axis.get_xlim(), *axis.get_ylim()) for f in (min, max))
        axis.plot([low, high], [low, high], color=AXIS, lw=1, ls=(0, (4, 3)), zorder=0)
        axis.set(title=task, xlabel="return of the target")
        axis.locator_params(nbins=4)
    axes[0].set_ylabel("mean return of rollouts")
    legend(figure, axes)
    caption = (
        "Returns of the held-out episodes and of the rollouts they were targets for; on the dashed line they agree."
    )
    return [picture(figure, f"{table.label}-returns".replace("_", "-"), caption)]


def _colors(rows: Sequence[ResultRow]) -> dict[str, str]:
    """A colour for each method, the same in all panels whatever was not run in some of them."""
    return dict(zip((row.name for row in rows), cycle(COLORS), strict=False))
