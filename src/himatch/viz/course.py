"""A feature over time: what the policy was conditioned on, what the target did, what the rollout does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from himatch.viz.style import DARK, ORANGE, ROLLOUT, TARGET

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = NDArray[np.floating]
SMOOTH = 40  # part of a rollout that its trend is a mean over: gaits swing, and hide it


@dataclass(frozen=True)
class Course:
    """One rollout over time, with what it was conditioned on.

    ``rollout`` is ``(T, d)``: a feature, or the sum of it so far. ``steps`` is how many the target has.
    """

    rollout: Values
    names: Sequence[str]
    """What each dimension is called."""
    steps: int
    target: Values | None = None
    """Values of the target ``(m, d)``, where their order means something."""
    wanted: Values | None = None
    """What the rollout is to come to in the end, a return or goal, ``(d,)``."""
    conditioned: Values | None = None
    """Mean, 10 and 90 % quantile of the histogram that the rollout was conditioned on, ``(T, 3, d)``; or a goal."""
    to_go: Values | None = None
    """The return-to-go that it was conditioned on, ``(T, d)``."""
    view: Values | None = None
    """From where to where the axis goes at least, ``(d, 2)``."""
    summed: bool = False
    """Whether the rollout is a running sum, which a return is."""

    def draw(self, axis: Axes, d: int) -> None:
        """The rollout in blue over what it was conditioned on in orange and the target in grey."""
        steps = len(self.rollout)
        if self.target is not None:
            axis.plot(self.target[:, d], color=TARGET, lw=1.0, alpha=0.8, label="target")
        if self.wanted is not None:
            name = "target return" if self.summed else "goal"
            axis.axhline(float(self.wanted[d]), color=TARGET, lw=5, alpha=0.55, label=name)
        if self.conditioned is not None:
            self._draw_conditioned(axis, d)
        if self.to_go is not None:
            rest = self.to_go[:, d]
            axis.plot(rest, color=ORANGE, lw=1.6, label="return-to-go that it was conditioned on")
        values = self.rollout[:, d]
        width = 1 if self.summed else max(1, steps // SMOOTH)
        ended = f", ended after {steps} of {self.steps} steps" if steps < self.steps else ""
        axis.plot(values, color=ROLLOUT, lw=0.7, alpha=0.35)
        axis.plot(smoothed(values, width), color=ROLLOUT, lw=1.6, label=f"first rollout{ended}")
        if ended:
            axis.plot(steps - 1, values[-1], "o", color=ROLLOUT, ms=6, mec="white", mew=1.0, clip_on=False, zorder=5)
        longest = steps if self.target is None else max(steps, len(self.target))
        longest = longest if self.wanted is None else max(longest, self.steps)  # the end is what counts
        axis.set(xlabel="step", xlim=(0, max(longest - 1, 1)), ylabel=self.names[d])
        if self.view is not None:
            low, high = axis.get_ylim()
            axis.set_ylim(min(low, float(self.view[d][0])), max(high, float(self.view[d][1])))
        axis.tick_params(colors=DARK, labelcolor="black")

    def _draw_conditioned(self, axis: Axes, d: int) -> None:
        assert self.conditioned is not None
        mean, low, high = self.conditioned[:, :, d].T
        spread = bool((high > low).any())
        clock = np.arange(len(mean))
        if spread:
            axis.fill_between(clock, low, high, step="post", color=ORANGE, alpha=0.22, lw=0)
        label = "conditioned on (z): mean, 10 to 90 %" if spread else "conditioned on (z)"
        axis.step(clock, mean, where="post", color=ORANGE, lw=1.6, label=label)


def smoothed(values: Values, width: int) -> NDArray[np.float64]:
    """The mean over ``width`` values around each; at the ends over those that there are."""
    ones = np.ones(width)
    summed: NDArray[np.float64] = np.convolve(values.astype(np.float64), ones, mode="same")
    counted: NDArray[np.float64] = np.convolve(np.ones(len(values)), ones, mode="same")
    return summed[: len(values)] / counted[: len(values)]
