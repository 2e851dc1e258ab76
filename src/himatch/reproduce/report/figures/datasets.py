"""The paper's Figure dataset, from the results of the suite ``data``."""

from __future__ import annotations

from collections.abc import Sequence

from himatch.reproduce.report.figures.selection import drawable, histogram
from himatch.reproduce.results import JobResult
from himatch.viz.dataset_plot import GroupedFeature, dataset_grid
from himatch.viz.picture import Picture, picture

CAPTION = "Feature distributions of the best, middle and worst episodes by return, and of all of them."


def dataset_panels(results: Sequence[JobResult]) -> list[Picture]:
    """Features as rows, tasks as columns."""
    jobs = [r for r in results if r.suite == "data" and r.targets and all(_flat(r, t.group) for t in r.targets)]
    panels: dict[tuple[str, str], GroupedFeature] = {}
    for job in jobs:
        groups = {target.group: histogram(target) for target in job.targets}
        panels.setdefault((job.feature, job.task), GroupedFeature(job.feature.replace("_", "-"), groups))
    return [picture(dataset_grid(panels), "datasets", CAPTION)] if panels else []


def _flat(job: JobResult, group: str) -> bool:
    target = next(t for t in job.targets if t.group == group)
    return drawable(target) and not isinstance(target.histograms["target"][0], list)
