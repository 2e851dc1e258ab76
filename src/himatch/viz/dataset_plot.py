"""The paper's Figure dataset: feature distributions of the best, middle, worst and all episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from himatch._runtime.files import check_picture
from himatch.errors import HimatchError
from himatch.viz.style import (
    FILE,
    GROUPS,
    PAGE,
    TARGET,
    BinShares,
    blank,
    feature_axis_only,
    legend_above,
    rollout_line,
    save,
    span,
    style,
    target_area,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 11
ORDER = ("worst", "middle", "best")  # drawn one over another


@dataclass(frozen=True)
class GroupedFeature:
    """A feature's histogram over all episodes, under ``all``, and over the groups that there are."""

    name: str
    groups: Mapping[str, BinShares]


@dataclass(frozen=True)
class DatasetPicture:
    """What a picture of a dataset shows."""

    title: str
    features: Sequence[GroupedFeature]
    returns: ArrayLike | None = None
    """Of all episodes, in rising order."""
    ranks: Mapping[str, ArrayLike] | None = None
    """Places of each group's episodes in that order."""
    group_size: int = 5


def plot_dataset(picture: DatasetPicture, path: str | Path) -> Path:
    """Draw returns by rank and one panel per feature into a PNG, PDF or SVG file."""
    path = Path(path)
    check_picture(path)
    features = picture.features[:MOST_PANELS]
    panels = len(features) + (picture.returns is not None)
    if not panels:
        raise HimatchError("there is nothing to draw: no rewards, and every feature failed")
    columns = min(3, panels)
    rows = -(-panels // columns)
    with style(FILE):
        figure = blank(4.4 * columns, 3.1 * rows + 0.9)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        remaining = iter(axes)
        if picture.returns is not None:
            _returns(next(remaining), np.asarray(picture.returns), picture.ranks or {})
        for feature in features:
            _densities(next(remaining), feature, picture.group_size)
        for unused in remaining:
            unused.set_visible(False)
        figure.suptitle(picture.title)
        handles, labels = axes[-1 if panels == len(axes) else panels - 1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        return save(figure, path)


def dataset_grid(panels: Mapping[tuple[str, str], GroupedFeature]) -> Figure:
    """Several datasets on a page, by (row, column) in the order of their first appearance; holes stay empty."""
    rows, columns = (list(dict.fromkeys(key[i] for key in panels)) for i in (0, 1))
    with style(PAGE):
        figure = blank(2.2 * len(columns) + 0.6, 1.5 * len(rows) + 0.7)
        axes = figure.subplots(len(rows), len(columns), squeeze=False)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                if (row, column) not in panels:
                    axes[i, j].set_visible(False)
                    continue
                _small(axes[i, j], panels[row, column])
                if i == 0:
                    axes[i, j].set_title(column)
        legend_above(figure, list(axes.flat))
    return figure


def _returns(axis: Axes, returns: np.ndarray, ranks: Mapping[str, ArrayLike]) -> None:
    axis.plot(np.arange(len(returns)), returns, color="#444444", linewidth=1.2)
    for group, places in ranks.items():
        axis.plot(places, returns[np.asarray(places)], "o", color=GROUPS[group], markersize=5)
    axis.set(title="returns", xlabel="episodes by rank", ylabel="return")
    _level_lines(axis)


def _densities(axis: Axes, feature: GroupedFeature, size: int) -> None:
    target_area(axis, feature.groups["all"], color=GROUPS["all"], alpha=0.45, label="all episodes")
    for group in ORDER:
        if group in feature.groups:
            rollout_line(axis, feature.groups[group], color=GROUPS[group], width=1.6, label=f"{group} {size}")
    axis.set(title=feature.name, ylabel="density")
    axis.set_ylim(bottom=0)
    _level_lines(axis)


def _small(axis: Axes, feature: GroupedFeature) -> None:
    if "all" in feature.groups:
        target_area(axis, feature.groups["all"], color=TARGET, alpha=0.5, label="all episodes")
    for group in ORDER:
        if group in feature.groups:
            rollout_line(axis, feature.groups[group], color=GROUPS[group], label=group)
    feature_axis_only(axis)
    axis.set_xlim(*span(feature.groups.values()))
    axis.set_ylim(bottom=0)
    axis.set_xlabel(feature.name)


def _level_lines(axis: Axes) -> None:
    axis.grid(axis="y", alpha=0.25)
    axis.set_axisbelow(True)
