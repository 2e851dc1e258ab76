"""The report as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from himatch.data.inspection.report import GROUP_SIZE, DatasetReport
from himatch.data.split import ranked_groups
from himatch.viz.dataset_plot import DatasetPicture, GroupedFeature, plot_dataset
from himatch.viz.style import BinShares


def plot_report(report: DatasetReport, path: str | Path) -> Path:
    """Draw returns by rank and one panel per feature into a PNG, PDF or SVG file."""
    return plot_dataset(report_picture(report), path)


def report_picture(report: DatasetReport) -> DatasetPicture:
    """The report as arrays to draw."""
    name = report.source if len(report.source) < 70 else "..." + report.source[-67:]
    features = [
        GroupedFeature(
            feature.name,
            {group: BinShares(feature.edges, shares) for group, shares in feature.distributions.items()},
        )
        for feature in report.features
    ]
    returns = None if report.sorted_returns is None else np.array(report.sorted_returns)
    return DatasetPicture(
        f"{Path(name).name}: task {report.task}, {report.episodes:,} episodes, {report.steps:,} steps",
        features,
        returns,
        ranked_groups(returns, GROUP_SIZE) if returns is not None and report.groups else {},
        GROUP_SIZE,
    )
