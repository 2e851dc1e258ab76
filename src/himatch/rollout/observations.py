"""Observations as a caller hands them over: arrays or names, refused where a policy cannot act on them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch._runtime.settings import shown
from himatch.errors import HimatchError, suggestion
from himatch.rollout.limits import Limits
from himatch.runs.run import Run

FAR = 1e6  # standard deviations
LARGEST = np.finfo(np.float32).max
Observation = ArrayLike | Mapping[str, ArrayLike]


class Observations:
    """Makes rows ``(batch, obs)`` of observations; ``batch`` is ``None`` for one robot."""

    def __init__(self, run: Run, names: tuple[str, ...], batch: int | None, limits: Limits) -> None:
        self.names, self.limits = names, limits
        self._lead = () if batch is None else (batch,)
        self._prefix_only = run.task.prefix_only
        # Finite, but a network would make NaN of it, and remember that: the value of a sensor that has failed.
        mean, std = (t.double().cpu().numpy() for t in (run.normalizers.state_mean, run.normalizers.state_std))
        self._floor, self._ceiling = (
            np.clip(mean + sign * FAR * std, -LARGEST, LARGEST).astype(np.float32) for sign in (-1.0, 1.0)
        )

    def rows(self, observation: Observation) -> NDArray[np.float32]:
        """A copy of what was seen, within what the policy can act on."""
        seen = self._named(observation) if isinstance(observation, Mapping) else self._array(observation)
        rows = seen.reshape(-1, len(self.names))
        if self._near(rows) and self.limits.hold(rows):
            return rows
        if not np.isfinite(rows).all():
            lost = ", ".join(self.names[i] for i in np.flatnonzero(~np.isfinite(rows).all(axis=0))[:5])
            raise HimatchError(f"the observation holds NaN or infinity ({lost}); the policy cannot act on it")
        rows = self.limits.clamped(rows)
        if not self._near(rows):
            robot, place = np.argwhere((rows < self._floor) | (rows > self._ceiling))[0]
            raise HimatchError(
                f"{self.names[place]} of the observation is {rows[robot, place]:g}, a million times further out than "
                "in the training data; the policy cannot act on it"
            )
        self.limits.judge(rows)
        return rows

    def _near(self, rows: NDArray[np.float32]) -> bool:
        return bool(((rows >= self._floor) & (rows <= self._ceiling)).all())  # of what is no number neither holds

    def _array(self, observation: ArrayLike) -> NDArray[np.float32]:
        wanted = (*self._lead, len(self.names))
        try:
            with np.errstate(over="ignore"):  # what single precision cannot hold is refused as infinite
                seen = np.array(observation, dtype=np.float32)
        except (TypeError, ValueError):
            raise HimatchError(f"expected an observation of shape {wanted}, got something that is no array") from None
        if seen.ndim >= 1 and self._prefix_only and seen.shape[-1] > wanted[-1]:
            seen = seen[..., : wanted[-1]]
        if seen.shape != wanted:
            raise HimatchError(f"expected an observation of shape {wanted}, got {seen.shape}")
        return seen

    def _named(self, observation: Mapping[str, ArrayLike]) -> NDArray[np.float32]:
        """The values in the policy's order; the mapping's order does not matter."""
        missing = [name for name in self.names if name not in observation]
        if missing or len(observation) != len(self.names):
            unknown = [str(name) for name in observation if name not in self.names]
            parts = [f"lacks {', '.join(missing)}"] if missing else []
            if unknown:
                near = suggestion(unknown[0], missing or self.names)
                parts.append(f"has {', '.join(unknown)}, which the policy does not see" + (near and f" ({near})"))
            raise HimatchError(f"the observation {' and '.join(parts)}; policy.columns has the names")
        seen = np.empty((*self._lead, len(self.names)), np.float32)
        for place, name in enumerate(self.names):
            try:
                with np.errstate(over="ignore"):
                    values = np.asarray(observation[name], np.float32)
            except (TypeError, ValueError):
                values = None
            # A number for a batch is no value of all: it is the reading of one robot.
            if values is None or values.shape != self._lead:
                wanted = f"an array of {self._lead[0]} numbers, one for each robot" if self._lead else "a number"
                got = shown(observation[name])
                raise HimatchError(f"{name} of the observation must be {wanted}, got {got}")
            seen[..., place] = values
        return seen
