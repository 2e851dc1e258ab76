"""The pictures that go with the tables."""

from __future__ import annotations

from collections.abc import Sequence

from himatch.reproduce.report.figures.datasets import dataset_panels
from himatch.reproduce.report.figures.distances import distance_chart, return_chart, shift_chart
from himatch.reproduce.report.figures.heat_maps import heat_maps
from himatch.reproduce.report.figures.histograms import match_panels, shift_panels, synthetic_panels
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.results import JobResult
from himatch.viz.picture import Picture

__all__ = ["Picture", "draw", "draw_datasets"]

PANELS = {"synthetic": synthetic_panels, "shift": shift_panels, "ant-xy": heat_maps}
CHARTS = {"shift": shift_chart, "return": return_chart}


def draw(table: ResultTable) -> list[Picture]:
    """All pictures of a table: how methods compare, then targets and rollouts."""
    suite = table.suite.name
    if table.layout.measure == "success":
        return []
    pictures = CHARTS.get(suite, distance_chart)(table)
    if table.layout.pictured and suite != "return":
        pictures += PANELS.get(suite, match_panels)(table)
    return pictures


def draw_datasets(results: Sequence[JobResult]) -> list[Picture]:
    """The distributions of the datasets, where the suite ``data`` was run."""
    return dataset_panels(results)
