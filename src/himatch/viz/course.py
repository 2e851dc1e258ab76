"""A feature over time: what the policy was conditioned on, what the target did, what the rollout does."""

from __future__ import annotations

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

    ``rollout`` is ``(T, d)``; ``target`` ``(m, d)`` where the order of its values means something; ``conditioned``
    ``(T, 3, d)`` is mean, 10 and 90 % quantile of the histogram that the rollout was conditioned on.
    """

    rollout: Values
    target: Values | None = None
    conditioned: Values | None = None

    def draw(self, axis: Axes, d: int, name: str) -> None:
        """The rollout in blue over what it was conditioned on in orange and the target in grey."""
        steps = len(self.rollout)
        if self.target is not None:
            axis.plot(self.target[:, d], color=TARGET, lw=1.0, alpha=0.8, label="target")
        if self.conditioned is not None:
            mean, low, high = self.conditioned[:, :, d].T
            axis.fill_between(np.arange(len(mean)), low, high, step="post", color=ORANGE, alpha=0.22, lw=0)
            axis.step(
                np.arange(len(mean)),
                mean,
                where="post",
                color=ORANGE,
                lw=1.6,
                label="conditioned on (z): mean, 10 to 90 %",
            )
        values = self.rollout[:, d]
        trend = smoothed(values, max(1, steps // SMOOTH))
        axis.plot(values, color=ROLLOUT, lw=0.7, alpha=0.35)
        axis.plot(trend, color=ROLLOUT, lw=1.6, label="first rollout")
        longest = steps if self.target is None else max(steps, len(self.target))
        axis.set(xlabel="step", xlim=(0, max(longest - 1, 1)), ylabel=name)
        axis.tick_params(colors=DARK, labelcolor="black")


def smoothed(values: Values, width: int) -> NDArray[np.float64]:
    """The mean over ``width`` values around each; at the ends over those that there are."""
    ones = np.ones(width)
    summed: NDArray[np.float64] = np.convolve(values.astype(np.float64), ones, mode="same")
    counted: NDArray[np.float64] = np.convolve(np.ones(len(values)), ones, mode="same")
    return summed[: len(values)] / counted[: len(values)]
