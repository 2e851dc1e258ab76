"""The rate at which a controller runs, beside the rate of its data: a policy counts steps, not seconds."""

from __future__ import annotations

import numpy as np

from himatch._runtime.settings import shown
from himatch.errors import HimatchError, note

TOLERANCE = 0.05  # by which rates may differ
INTERVALS = 10  # of time stamps that are averaged: single ones jitter


class Pace:
    """Says once where the two rates differ; both in Hz, ``recorded`` is ``None`` where the data does not say."""

    def __init__(self, recorded: float | None, stated: float | None) -> None:
        self._recorded, self._noted = recorded, False
        self._first: float | None = None
        self._last, self._steps = -np.inf, 0
        if stated is None:
            return
        rate = _number(stated)
        if not 0.0 < rate < np.inf:
            raise HimatchError(f"the rate is a positive number of steps in a second (Hz), got {shown(stated)}")
        if recorded is None:
            note(f"the run does not say at which rate its data was recorded, so {rate:g} Hz cannot be compared with it")
        self._compare(rate)

    def checked(self, time: float) -> float:
        """A time stamp in seconds that comes after the last one."""
        now = _number(time)
        if not np.isfinite(now) or now <= self._last:
            raise HimatchError(
                f"time is in seconds and grows from step to step, got {shown(time)} after {self._last:g}; "
                "reset() begins anew"
            )
        return now

    def tick(self, now: float) -> None:
        """A step was made at this time."""
        if self._first is None:
            self._first = now
        else:
            self._steps += 1
        self._last = now
        if self._steps == INTERVALS:
            self._compare(INTERVALS / (now - self._first))
            self._first, self._steps = now, 0

    def reset(self) -> None:
        """A new episode: time may begin again."""
        self._first, self._last, self._steps = None, -np.inf, 0

    def _compare(self, rate: float) -> None:
        if self._noted or self._recorded is None or abs(rate / self._recorded - 1.0) <= TOLERANCE:
            return
        self._noted = True
        note(
            f"the controller runs at {rate:.4g} Hz, its data was recorded at {self._recorded:.4g} Hz; a policy counts "
            "steps, so act at the rate of the data (policy.rate)"
        )


def _number(value: object) -> float:
    if isinstance(value, (str, bytes, bool)):  # as everywhere: "50" is no number
        return np.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return np.nan
