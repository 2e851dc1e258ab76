"""Limits of observations: what a policy may see, channel by channel, and what happens beyond them."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.settings import shown
from himatch.errors import HimatchError, note, suggestion
from himatch.methods.normalizers import Normalizers
from himatch.runs.run import Run

Beyond = Literal["warn", "clamp", "raise", "off"]
BEYOND: tuple[Beyond, ...] = get_args(Beyond)
MARGIN = 0.5  # of a channel's training range, on either side
Bounds = NDArray[np.float32]


def training_limits(normalizers: Normalizers, margin: float) -> tuple[Bounds, Bounds] | None:
    """The training range of every channel, widened on either side by ``margin`` of it; ``None`` where it is not known.

    A channel that never moved has no limits. There is no range to take a margin of, and the policy does not look at it.
    """
    if normalizers.state_low is None or normalizers.state_high is None:
        return None
    low, high = (t.double().cpu().numpy() for t in (normalizers.state_low, normalizers.state_high))
    slack = np.where(np.isinf(normalizers.state_std.cpu().numpy()), np.inf, margin * (high - low))
    with np.errstate(over="ignore"):
        return (low - slack).astype(np.float32), (high + slack).astype(np.float32)


class Limits:
    """``low`` and ``high`` of every channel, ``(obs,)``; edit them in place, or with :meth:`set`.

    ``mode`` says what happens beyond: ``warn`` (once a channel and episode), ``clamp``, ``raise`` or ``off``.
    """

    def __init__(self, run: Run, names: tuple[str, ...], robots: int, mode: Beyond, margin: float) -> None:
        if mode not in BEYOND:
            raise HimatchError(f"limits must be one of {', '.join(BEYOND)}, got {mode!r}")
        if isinstance(margin, bool) or not isinstance(margin, (int, float)) or not 0.0 <= margin < np.inf:
            raise HimatchError(f"the margin is a part of the training range, a number from 0 up, got {shown(margin)}")
        self.mode, self.margin, self.names = mode, float(margin), names
        found = training_limits(run.normalizers, self.margin)
        self._units, self._known = run.units, run.normalizers
        if found is None:
            found = np.full(len(names), -np.inf, np.float32), np.full(len(names), np.inf, np.float32)
            if mode in ("clamp", "raise"):
                note(
                    f"{run.folder} does not hold the range of its training data, so limits={mode!r} has none to keep; "
                    "set them (controller.limits.set), or train again"
                )
        self.low, self.high = found
        self.counts = np.zeros(len(names), np.int64)
        self._noted = np.zeros((robots, len(names)), bool)

    def set(self, name: str, low: float | None = None, high: float | None = None) -> None:
        """Other limits for one channel; what is not given stays."""
        if name not in self.names:
            near = suggestion(name, self.names) or f"they are {', '.join(self.names)}"
            raise HimatchError(f"the policy sees no channel {name!r}; {near}")
        place = self.names.index(name)
        low = float(self.low[place]) if low is None else float(low)
        high = float(self.high[place]) if high is None else float(high)
        if not low <= high:
            raise HimatchError(f"the limits of {name} must be a low and a high number, got {low:g} and {high:g}")
        self.low[place], self.high[place] = low, high

    @property
    def violations(self) -> dict[str, int]:
        """How often each channel was beyond its limits, of those that were."""
        return {self.names[i]: int(self.counts[i]) for i in np.flatnonzero(self.counts)}

    def reset(self, robots: NDArray[np.int64]) -> None:
        """New episodes: what was noted before is noted again."""
        self._noted[robots] = False

    def hold(self, rows: Bounds) -> bool:
        """Whether all rows ``(robots, obs)`` lie within; the quick way of every step."""
        return self.mode == "off" or bool(((rows >= self.low) & (rows <= self.high)).all())

    def clamped(self, rows: Bounds) -> Bounds:
        """The rows within the limits, where that is the mode; finite ones."""
        if self.mode != "clamp":
            return rows
        self._count(rows)
        return np.clip(rows, self.low, self.high)

    def judge(self, rows: Bounds) -> None:
        """Count what lies beyond, then note or refuse it."""
        if self.mode not in ("warn", "raise"):
            return
        beyond = self._count(rows)
        if self.mode == "raise":
            said = "; ".join(self._said(rows, robot, place) for robot, place in np.argwhere(beyond)[:3])
            if said:
                raise HimatchError(
                    f"{said}; the policy has not seen this observation: act on another, or edit controller.limits"
                )
            return
        fresh = beyond & ~self._noted
        self._noted |= beyond
        for robot, place in np.argwhere(fresh):
            note(
                f"{self._said(rows, robot, place)}; the policy acts on it nevertheless, limits='clamp' or 'raise' "
                "would not (said once an episode)"
            )

    def _count(self, rows: Bounds) -> NDArray[np.bool_]:
        beyond: NDArray[np.bool_] = (rows < self.low) | (rows > self.high)
        self.counts += beyond.sum(axis=0)
        return beyond

    def _said(self, rows: Bounds, robot: int, place: int) -> str:
        name = self.names[place]
        unit = f" {self._units[name]}" if name in self._units else ""
        whose = f" of robot {robot}" if len(rows) > 1 else ""
        said = f"{name}{whose} is {rows[robot, place]:g}{unit}, beyond {self.low[place]:g} to {self.high[place]:g}"
        if self._known.state_low is None or self._known.state_high is None:
            return said
        return f"{said} (in training {self._known.state_low[place]:g} to {self._known.state_high[place]:g})"
