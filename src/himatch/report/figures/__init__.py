"""The pictures that go with the tables."""

from __future__ import annotations

from collections.abc import Sequence

from himatch.benchmark.results import JobResult
from himatch.report.figures.datasets import dataset_panels
from himatch.report.figures.distances import distance_chart, return_chart, shift_chart
from himatch.report.figures.drawing import Picture, style
from himatch.report.figures.heat_maps import heat_maps
from himatch.report.figures.histograms import match_panels, shift_panels, synthetic_panels
from himatch.report.tables import Table

__all__ = ["Picture", "draw", "draw_datasets"]

PANELS = {"synthetic": synthetic_panels, "shift": shift_panels, "ant-xy": heat_maps}
CHARTS = {"shift": shift_chart, "return": return_chart}


def draw(table: Table) -> list[Picture]:
    """All pictures of a table: how methods compare, then targets and rollouts."""
    suite = table.layout.suite
    with style():
        pictures = CHARTS.get(suite, distance_chart)(table)
        if table.layout.pictured and suite != "return":
            pictures += PANELS.get(suite, match_panels)(table)
    return pictures


def draw_datasets(results: Sequence[JobResult]) -> list[Picture]:
    """The distributions of the datasets, where the suite ``data`` was run."""
    with style():
        return dataset_panels(results)
