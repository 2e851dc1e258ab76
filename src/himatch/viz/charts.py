"""Charts that move: what was asked for stands still, what the rollout has done of it so far is drawn over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, PowerNorm, to_rgb
from numpy.typing import NDArray

from himatch.evaluation.result import MatchResult
from himatch.statistics.features import Coordinates
from himatch.viz.match_plot import ROLLOUT, TARGET

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

INK = "#202124"


class Chart(Protocol):
    """One pair of axes. ``moving`` is drawn anew in every picture."""

    moving: Sequence[Artist]

    def show(self, step: int) -> None:
        """Move on: steps 0 to ``step`` have been played."""


def make_charts(axes: Sequence[Axes], result: MatchResult, phi: NDArray[np.floating], dt: float) -> list[Chart]:
    """What fits the target, for feature values ``(T, d)`` of one rollout; one chart on each of the axes."""
    if result.target.matches != "distribution":
        summed = result.target.matches == "return"
        return [Course(axis, result, phi, d, dt, summed) for d, axis in enumerate(axes)]
    if result.frame.bins.dimensions == 2:
        return [Plane(axes[0], result, phi)]
    return [Histogram(axis, result, phi, d) for d, axis in enumerate(axes)]


class Histogram:
    """One dimension: the target's histogram, the rollout's as it fills up, and the present value.

    The rollout's is scaled by the steps that the target has, so that it ends as large as the target unless the rollout
    ends early.
    """

    def __init__(self, axis: Axes, result: MatchResult, phi: NDArray[np.floating], d: int) -> None:
        bins = result.frame.bins
        edges, target = bins.edges[d], bins.histogram(result.values)[d]
        self._values, self._bins = phi[:, d], bins.indices(phi)[:, d]
        steps = len(result.target.values(result.frame))  # samples are compared with all of them, however many
        self._scale, self._count = 1.0 / (steps * bins.widths[d]), bins.count
        whole = np.bincount(self._bins, minlength=bins.count) * self._scale
        axis.stairs(target / bins.widths[d], edges, fill=True, color=TARGET, alpha=0.55, lw=0, label="target")
        self._area = axis.stairs(np.zeros(bins.count), edges, fill=True, color=ROLLOUT, alpha=0.22, lw=0)
        self._line = axis.stairs(np.zeros(bins.count), edges, color=ROLLOUT, lw=1.6, label="rollout so far")
        (self._now,) = axis.plot([], [], "-", color=INK, lw=1.0, alpha=0.8)
        (self._dot,) = axis.plot([], [], "o", color=ROLLOUT, ms=6, mec="white", mew=1.0, clip_on=False, zorder=5)
        self.moving: Sequence[Artist] = (self._area, self._line, self._now, self._dot)
        self._top = 1.15 * max(float((target / bins.widths[d]).max()), float(whole.max()))
        filled = np.flatnonzero((target > 0) | (whole > 0))
        self._range = edges[max(filled[0] - 1, 0)], edges[min(filled[-1] + 2, bins.count)]
        axis.set(xlim=self._range, ylim=(0, self._top), yticks=[], xlabel=axis_name(result, d))
        axis.spines["left"].set_visible(False)
        axis.locator_params(axis="x", nbins=7)

    def show(self, step: int) -> None:
        """Count the steps so far."""
        counted = np.bincount(self._bins[: step + 1], minlength=self._count) * self._scale
        self._area.set_data(counted)
        self._line.set_data(counted)
        here = float(np.clip(self._values[step], *self._range))
        self._now.set_data([here, here], [0, self._top])
        self._dot.set_data([here], [0])


class Plane:
    """Two dimensions: a map of the target, the rollout's points over it, and the present one."""

    def __init__(self, axis: Axes, result: MatchResult, phi: NDArray[np.floating]) -> None:
        bins, self._points = result.frame.bins, phi
        shares = np.zeros((bins.count, bins.count))
        np.add.at(shares, tuple(bins.indices(result.values).T), 1.0)
        ramp = LinearSegmentedColormap.from_list("target", [(*to_rgb("#5f6368"), a) for a in (0.0, 0.75)])
        (x, y), norm = bins.edges, PowerNorm(0.5, 0, shares.max())
        axis.pcolormesh(x, y, shares.T, cmap=ramp, norm=norm, rasterized=True)
        axis.plot([], [], "s", color=TARGET, label="target")
        (self._past,) = axis.plot([], [], "o", color=ROLLOUT, ms=2.6, alpha=0.45, mew=0, label="rollout so far")
        (self._now,) = axis.plot([], [], "o", color=ROLLOUT, ms=8, mec="white", mew=1.4, zorder=5)
        self.moving: Sequence[Artist] = (self._past, self._now)
        everything = np.concatenate([result.values, phi])
        low, high = everything.min(axis=0), everything.max(axis=0)
        room = 0.04 * (high - low) + 1e-9
        axis.set(xlim=(low[0] - room[0], high[0] + room[0]), ylim=(low[1] - room[1], high[1] + room[1]))
        axis.set(xlabel=axis_name(result, 0), ylabel=axis_name(result, 1))
        axis.locator_params(nbins=6)

    def show(self, step: int) -> None:
        """Add the points so far."""
        self._past.set_data(self._points[: step + 1, 0], self._points[: step + 1, 1])
        self._now.set_data([self._points[step, 0]], [self._points[step, 1]])


class Course:
    """A number over time: for returns the sum so far against an even pace, for goals the value against the goal."""

    def __init__(
        self, axis: Axes, result: MatchResult, phi: NDArray[np.floating], d: int, dt: float, summed: bool
    ) -> None:
        asked = np.cumsum(result.values[:, d], dtype=np.float64) if summed else result.values[:, d]
        self._values = np.cumsum(phi[:, d], dtype=np.float64) if summed else phi[:, d]
        self._times = dt * np.arange(1, len(phi) + 1)
        clock = dt * np.arange(1, len(asked) + 1)
        axis.plot(clock, asked, "--", color=TARGET, lw=1.8, label="asked, evenly" if summed else "goal")
        (self._line,) = axis.plot([], [], color=ROLLOUT, lw=1.8, label="rollout so far")
        (self._dot,) = axis.plot([], [], "o", color=ROLLOUT, ms=7, mec="white", mew=1.2, clip_on=False, zorder=5)
        self.moving: Sequence[Artist] = (self._line, self._dot)
        both = np.concatenate([asked, self._values, [0.0] if summed else []])
        room = 0.08 * max(float(np.ptp(both)), 1e-6)
        axis.set(xlim=(0, max(clock[-1], self._times[-1])), ylim=(both.min() - room, both.max() + room))
        axis.set(xlabel="time (s)", ylabel=("sum of " if summed else "") + axis_name(result, d))
        axis.locator_params(nbins=6)

    def show(self, step: int) -> None:
        """Draw on."""
        self._line.set_data(self._times[: step + 1], self._values[: step + 1])
        self._dot.set_data([self._times[step]], [self._values[step]])


def axis_name(result: MatchResult, d: int) -> str:
    """What one dimension of the feature is called: by a name of its own where the task has one for it."""
    feature, task = result.frame.feature, None if result.replay is None else result.replay.task
    name = feature.names(result.frame.bins.dimensions)[d]
    if isinstance(feature, Coordinates) and not feature.of_action and task is not None:
        name = next((own for own, place in task.features.items() if place == feature.indices[d]), name)
    return name.replace("_", " ")
