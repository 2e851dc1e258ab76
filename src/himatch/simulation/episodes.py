"""Which simulations play, for how long, and how their episodes ended; and checks of what a caller hands over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.errors import SimulationError


class Episodes:
    """The clock of ``count`` simulations, with Gymnasium's time limit.

    Arrays are replaced, never written to, so that those handed out earlier keep their values.
    """

    def __init__(self, count: int, horizon: int) -> None:
        self.horizon = horizon
        self.elapsed = np.zeros(count, dtype=np.int64)
        self.active = np.zeros(count, dtype=np.bool_)
        self.terminated = np.zeros(count, dtype=np.bool_)
        self.truncated = np.zeros(count, dtype=np.bool_)
        self.started = False
        self._note_active(self.active)

    def begin(self, ids: NDArray[np.int32]) -> None:
        """New episodes in these simulations."""
        self.started = True
        self.elapsed = _written(self.elapsed, ids, 0)
        self.terminated = _written(self.terminated, ids, False)
        self.truncated = _written(self.truncated, ids, False)
        self._note_active(_written(self.active, ids, True))

    def rest(self, ids: NDArray[np.int32]) -> None:
        """No more steps in these simulations."""
        self._note_active(_written(self.active, ids, False))

    def advance(self, terminated: NDArray[np.bool_] | None, truncated: NDArray[np.bool_] | None = None) -> None:
        """One step of the active simulations, with what their environments say about the end."""
        self.elapsed = self.elapsed + self.active
        ended = self.elapsed >= self.horizon
        if truncated is not None:
            ended |= truncated
        self.truncated = self.truncated | (ended & self.active)
        if terminated is not None:
            self.terminated = self.terminated | (terminated & self.active)
        still = self.active & ~(self.terminated | self.truncated)
        if still.sum() != self.playing:
            self._note_active(still)

    def _note_active(self, active: NDArray[np.bool_]) -> None:
        self.active = active
        self.ids = np.flatnonzero(active).astype(np.int32)
        self.playing = len(self.ids)

    def checked_actions(self, actions: ArrayLike, width: int) -> NDArray[np.floating]:
        """Actions as floats, refused where an active simulation would get a bad one.

        Single precision stays: Gymnasium computes the control cost in the precision of the action.
        """
        if not self.started:
            raise SimulationError("reset the simulations before the first step")
        array = np.asarray(actions)
        if array.dtype != np.float32 and array.dtype != np.float64:
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError):
                raise SimulationError("actions are not numbers; give an array (simulations, action)") from None
        if array.shape != (len(self.active), width):
            raise SimulationError(f"actions must have shape {(len(self.active), width)}, got {array.shape}")
        if not np.isfinite(array).all():
            bad = self.active & ~np.isfinite(array).all(axis=1)
            if bad.any():
                first = int(np.flatnonzero(bad)[0])
                raise SimulationError(
                    f"the action of simulation {first} holds NaN or infinity at step {self.elapsed[first]}"
                )
        return array

    def checked_ids(self, ids: Sequence[int] | None) -> NDArray[np.int32]:
        """Simulations by number, each at most once."""
        count = len(self.active)
        if ids is None:
            return np.arange(count, dtype=np.int32)
        array = np.asarray(ids)
        if array.size == 0:
            return np.zeros(0, dtype=np.int32)
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            raise SimulationError(f"ids are the numbers of simulations, got {ids!r}")
        if array.min() < 0 or array.max() >= count:
            bad = array.min() if array.min() < 0 else array.max()
            raise SimulationError(f"there is no simulation {bad}; they are numbered 0 to {count - 1}")
        if len(np.unique(array)) != len(array):
            raise SimulationError("ids name a simulation twice")
        return array.astype(np.int32)

    def checked_seeds(self, seeds: Sequence[int], ids: NDArray[np.int32]) -> list[int]:
        """One seed for each of these simulations."""
        if len(seeds) != len(ids):
            raise SimulationError(f"{len(seeds)} seeds for {len(ids)} simulations; give one each")
        numbers = [int(seed) for seed in seeds]
        if min(numbers, default=0) < 0:
            raise SimulationError(f"a seed is a whole number from 0 up, got {min(numbers)}")
        return numbers


def _written(array: NDArray[Any], ids: NDArray[np.int32], value: object) -> NDArray[Any]:
    copy = array.copy()
    copy[ids] = value
    return copy
