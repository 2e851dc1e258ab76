"""The paper's Figure dataset: feature distributions of the best, middle, worst and all episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from himatch.reproduce.report.figures.pictures import Picture, blank, legend, picture, quiet
from himatch.reproduce.report.figures.selection import drawable, edges, shares, span
from himatch.reproduce.results import JobResult
from himatch.viz.dataset_plot import COLORS
from himatch.viz.match_plot import TARGET

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def dataset_panels(results: Sequence[JobResult]) -> list[Picture]:
    """Features as rows, tasks as columns."""
    jobs = [r for r in results if r.suite == "data" and r.targets and all(_flat(r, t.group) for t in r.targets)]
    if not jobs:
        return []
    features = list(dict.fromkeys(job.feature for job in jobs))
    tasks = list(dict.fromkeys(job.task for job in jobs))
    figure = blank(2.2 * len(tasks) + 0.6, 1.5 * len(features) + 0.7)
    axes = figure.subplots(len(features), len(tasks), squeeze=False)
    for i, feature in enumerate(features):
        for j, task in enumerate(tasks):
            job = next((job for job in jobs if (job.feature, job.task) == (feature, task)), None)
            if job is None:
                axes[i, j].set_visible(False)
                continue
            _distribution(axes[i, j], job)
            axes[i, j].set_xlabel(feature.replace("_", "-"))
            if i == 0:
                axes[i, j].set_title(task)
    legend(figure, list(axes.flat))
    caption = "Feature distributions of the best, middle and worst episodes by return, and of all of them."
    return [picture(figure, "datasets", caption)]


def _flat(job: JobResult, group: str) -> bool:
    target = next(t for t in job.targets if t.group == group)
    return drawable(target) and not isinstance(target.histograms["target"][0], list)


def _distribution(axis: Axes, job: JobResult) -> None:
    by_group = {target.group: target for target in job.targets}
    drawn = []
    for group in ("all", "worst", "middle", "best"):
        if group not in by_group:
            continue
        bounds, weights = edges(by_group[group]), shares(by_group[group])
        density = np.divide(weights, np.diff(bounds))
        if group == "all":
            axis.stairs(density, bounds, fill=True, color=TARGET, alpha=0.5, lw=0, label="all episodes")
        else:
            axis.stairs(density, bounds, color=COLORS[group], lw=1.3, label=group)
        drawn.append((bounds, weights))
    quiet(axis)
    axis.set_xlim(*span(drawn))
    axis.set_ylim(bottom=0)
