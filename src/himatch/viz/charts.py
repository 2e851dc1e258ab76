"""Charts that move: the target stands still, and what the rollout has done of it so far is drawn over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from himatch.viz.style import DARK, INK, ROLLOUT, TARGET, BinShares, ramp, target_area

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

Values = NDArray[np.floating]


@dataclass(frozen=True)
class RolloutPicture:
    """One rollout and its target, as arrays over d dimensions, n bins and T steps.

    Distributions of d dimensions are drawn as histograms, of two as a map; returns and goals over time.
    """

    title: str
    heading: str
    matches: Literal["distribution", "return", "goal"]
    feature: str
    names: Sequence[str]
    """What each dimension is called."""
    target: Values
    """Feature values of the target ``(m, d)``."""
    target_steps: int
    """How many steps the target has: a whole rollout fills as much of a histogram."""
    rollout: Values
    """Feature values of the rollout ``(T, d)``."""
    edges: NDArray[np.float64]
    """Bin edges ``(d, n + 1)``."""
    target_bins: NDArray[np.integer]
    """The bin of every target value ``(m, d)``."""
    rollout_bins: NDArray[np.integer]
    """The bin of every rollout value ``(T, d)``."""
    terminated: bool
    """Whether the rollout ended early."""
    distance: Callable[[int], float]
    """W1 of the rollout's first steps to the target, for that many of them."""

    @property
    def dimensions(self) -> int:
        """How many features are compared."""
        return len(self.edges)

    @property
    def bins(self) -> int:
        """How many bins each of them has."""
        return len(self.edges[0]) - 1

    @property
    def is_map(self) -> bool:
        """Whether two dimensions are shown in one chart."""
        return self.matches == "distribution" and self.dimensions == 2

    def target_shares(self, d: int) -> BinShares:
        """The target's histogram in one dimension."""
        counts = np.bincount(self.target_bins[:, d], minlength=self.bins)
        return BinShares(self.edges[d], counts / len(self.target_bins))


class Chart(Protocol):
    """One pair of axes. ``moving`` is drawn anew in every picture."""

    moving: Sequence[Artist]

    def show(self, step: int) -> None:
        """Move on: steps 0 to ``step`` have been played."""


def make_charts(axes: Sequence[Axes], picture: RolloutPicture, dt: float) -> list[Chart]:
    """What fits the target, one chart on each of the axes; a step takes ``dt`` seconds."""
    if picture.matches != "distribution":
        return [CourseChart(axis, picture, d, dt) for d, axis in enumerate(axes)]
    if picture.is_map:
        return [MapChart(axes[0], picture)]
    return [HistogramChart(axis, picture, d) for d, axis in enumerate(axes)]


class HistogramChart:
    """One dimension: the target's histogram, the rollout's as it fills up, and the present value.

    The rollout's is scaled by the steps that the target has, so that it ends as large as the target unless the rollout
    ends early.
    """

    def __init__(self, axis: Axes, picture: RolloutPicture, d: int) -> None:
        edges, target = picture.edges[d], picture.target_shares(d)
        self._values, self._bins, self._count = picture.rollout[:, d], picture.rollout_bins[:, d], picture.bins
        self._scale = 1.0 / (picture.target_steps * np.diff(edges))
        whole = self._counted(len(self._bins))
        target_area(axis, target)
        self._area = axis.stairs(np.zeros(self._count), edges, fill=True, color=ROLLOUT, alpha=0.22, lw=0)
        self._line = axis.stairs(np.zeros(self._count), edges, color=ROLLOUT, lw=1.6, label="rollout so far")
        (self._now,) = axis.plot([], [], "-", color=INK, lw=1.0, alpha=0.8)
        (self._dot,) = axis.plot([], [], "o", color=ROLLOUT, ms=6, mec="white", mew=1.0, clip_on=False, zorder=5)
        self.moving: Sequence[Artist] = (self._area, self._line, self._now, self._dot)
        self._top = 1.15 * max(float(target.density.max()), float(whole.max()))
        filled = np.flatnonzero((target.density > 0) | (whole > 0))
        self._range = edges[max(filled[0] - 1, 0)], edges[min(filled[-1] + 2, self._count)]
        axis.set(xlim=self._range, ylim=(0, self._top), yticks=[], xlabel=picture.names[d])
        axis.spines["left"].set_visible(False)
        axis.locator_params(axis="x", nbins=7)

    def show(self, step: int) -> None:
        """Count the steps so far."""
        counted = self._counted(step + 1)
        self._area.set_data(counted)
        self._line.set_data(counted)
        here = float(np.clip(self._values[step], *self._range))
        self._now.set_data([here, here], [0, self._top])
        self._dot.set_data([here], [0])

    def _counted(self, steps: int) -> NDArray[np.float64]:
        density: NDArray[np.float64] = np.bincount(self._bins[:steps], minlength=self._count) * self._scale
        return density


class MapChart:
    """Two dimensions: a map of the target, the rollout's points over it, and the present one."""

    def __init__(self, axis: Axes, picture: RolloutPicture) -> None:
        from matplotlib.colors import PowerNorm

        self._points = picture.rollout
        counts = np.zeros((picture.bins, picture.bins))
        np.add.at(counts, tuple(picture.target_bins.T), 1.0)
        x, y = picture.edges
        norm = PowerNorm(0.5, 0, counts.max())
        axis.pcolormesh(x, y, counts.T, cmap=ramp(DARK, 0.75), norm=norm, rasterized=True)
        axis.plot([], [], "s", color=TARGET, label="target")
        (self._past,) = axis.plot([], [], "o", color=ROLLOUT, ms=2.6, alpha=0.45, mew=0, label="rollout so far")
        (self._now,) = axis.plot([], [], "o", color=ROLLOUT, ms=8, mec="white", mew=1.4, zorder=5)
        self.moving: Sequence[Artist] = (self._past, self._now)
        everything = np.concatenate([picture.target, picture.rollout])
        low, high = everything.min(axis=0), everything.max(axis=0)
        room = 0.04 * (high - low) + 1e-9
        axis.set(xlim=(low[0] - room[0], high[0] + room[0]), ylim=(low[1] - room[1], high[1] + room[1]))
        axis.set(xlabel=picture.names[0], ylabel=picture.names[1])
        axis.locator_params(nbins=6)

    def show(self, step: int) -> None:
        """Add the points so far."""
        self._past.set_data(self._points[: step + 1, 0], self._points[: step + 1, 1])
        self._now.set_data([self._points[step, 0]], [self._points[step, 1]])


class CourseChart:
    """A number over time: for returns the sum so far against an even pace, for goals the value against the goal."""

    def __init__(self, axis: Axes, picture: RolloutPicture, d: int, dt: float) -> None:
        summed = picture.matches == "return"
        target, self._values = (
            np.cumsum(values[:, d], dtype=np.float64) if summed else values[:, d]
            for values in (picture.target, picture.rollout)
        )
        self._times = dt * np.arange(1, len(self._values) + 1)
        clock = dt * np.arange(1, len(target) + 1)
        axis.plot(clock, target, "--", color=TARGET, lw=1.8, label="target, evenly" if summed else "goal")
        (self._line,) = axis.plot([], [], color=ROLLOUT, lw=1.8, label="rollout so far")
        (self._dot,) = axis.plot([], [], "o", color=ROLLOUT, ms=7, mec="white", mew=1.2, clip_on=False, zorder=5)
        self.moving: Sequence[Artist] = (self._line, self._dot)
        both = np.concatenate([target, self._values, [0.0] if summed else []])
        room = 0.08 * max(float(np.ptp(both)), 1e-6)
        axis.set(xlim=(0, max(clock[-1], self._times[-1])), ylim=(both.min() - room, both.max() + room))
        axis.set(xlabel="time (s)", ylabel=("sum of " if summed else "") + picture.names[d])
        axis.locator_params(nbins=6)

    def show(self, step: int) -> None:
        """Draw on."""
        self._line.set_data(self._times[: step + 1], self._values[: step + 1])
        self._dot.set_data([self._times[step]], [self._values[step]])
