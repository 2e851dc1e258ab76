"""Targets and rollouts as arrays to draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from himatch._runtime.shapes import Array64
from himatch.statistics.bins import Bins
from himatch.statistics.features import Coordinates
from himatch.targets import Frame, Target
from himatch.tasks import Task
from himatch.types import Array
from himatch.viz.charts import RolloutPicture
from himatch.viz.match_plot import StepHistograms

MOST_DRAWN = 4  # times as many bins as the frame has; a target further out is drawn with wider ones
WHOLE = {"return": "total ", "goal": "last "}
"""What of an episode is compared, where it is one value and no distribution."""


def step_histograms(frame: Frame, values: Array, rollouts: Sequence[Array]) -> StepHistograms:
    """Histograms of a target's values ``(n, d)`` and of every seed's rollouts, pooled."""
    bins = covering(frame.bins, values)
    return StepHistograms(bins.edges, bins.histogram(values), np.array([bins.histogram(rows) for rows in rollouts]))


def rollout_picture(
    target: Target,
    frame: Frame,
    values: Array,
    rollout: Array,
    distance: Callable[[int], float],
    *,
    task: Task | None,
    heading: str,
    terminated: bool,
) -> RolloutPicture:
    """One rollout ``(T, d)`` beside the target's values ``(n, d)``."""
    bins = covering(frame.bins, values)
    return RolloutPicture(
        title=target.name,
        heading=heading,
        matches=target.matches,
        feature=frame.feature.name.replace("_", " "),
        names=axis_names(frame, task),
        target=values,
        target_steps=len(target.values(frame)),  # samples are compared with all of them, however many
        rollout=rollout,
        edges=bins.edges,
        target_bins=bins.indices(values),
        rollout_bins=bins.indices(rollout),
        terminated=terminated,
        distance=distance,
    )


def view_of(matches: str, rows: Array64, spread: Array64) -> Array64:
    """What the axis of a return or goal shows, ``(d, 2)``: all rows, and enough around them to tell near from far.

    Of a goal that is the feature's spread, else a thousandth of it would fill the picture; of a return it is nothing.
    """
    low, high = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    if matches == "return":
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    else:
        missing = np.maximum(spread - (high - low), 0.0) / 2
        low, high = low - missing, high + missing
    room = 0.05 * np.maximum(high - low, 1e-9)
    found: Array64 = np.stack([low - room, high + room], axis=1)
    return found


def covering(bins: Bins, values: Array) -> Bins:
    """Bins to draw with: the frame's own, or where the target lies beyond them as many more as it takes."""
    low, high = np.minimum(bins.low, values.min(axis=0)), np.maximum(bins.high, values.max(axis=0))
    needed = float(np.ceil(((high - low) / bins.widths).max() - 1e-6))
    return bins if needed <= bins.count else Bins(tuple(low), tuple(high), int(min(needed, MOST_DRAWN * bins.count)))


def axis_names(frame: Frame, task: Task | None) -> list[str]:
    """What the dimensions of a feature are called: by names of their own where the task has them."""
    feature = frame.feature
    names = list(feature.names(frame.bins.dimensions))
    if isinstance(feature, Coordinates) and not feature.of_action and task is not None:
        own = [next((n for n, place in task.features.items() if place == index), None) for index in feature.indices]
        names = [name or given for name, given in zip(own, names, strict=True)]
    return [name.replace("_", " ") for name in names]
