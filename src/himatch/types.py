"""The trajectory: one logged episode, frozen and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.errors import DataError

Array = NDArray[np.float32]


@runtime_checkable
class StepRows(Protocol):
    """A row of numbers for every step: an array, or what computes rows when they are read."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Steps, numbers."""

    def __len__(self) -> int:
        """Steps."""

    def __getitem__(self, key: Any, /) -> Array:
        """Some rows, by a slice or by their numbers; of several axes the last one is a window of consecutive rows."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One episode: T observations, T actions and, where the log has them, T rewards.

    Parameters
    ----------
    observations
        ``(T, obs)``; row t is what the agent saw before it took action t.
    actions
        ``(T, act)``.
    rewards
        ``(T,)`` or ``None`` for logs without rewards.
    final_observation
        ``(obs,)`` seen after the last action, or ``None`` where the log stops before it.
    terminated
        True if the episode ended by termination (a fall, a success), False if it was truncated (time-out, cut log).
    label
        The task or behaviour the episode belongs to, where there are several.
    """

    observations: Array
    actions: Array
    rewards: Array | None = None
    final_observation: Array | None = None
    terminated: bool = False
    label: str | None = None

    def __post_init__(self) -> None:
        observations = _frozen(self.observations, 2, "observations")
        actions = _frozen(self.actions, 2, "actions")
        if len(observations) == 0:
            raise DataError("an episode has no steps; drop it from the data")
        if len(actions) != len(observations):
            raise DataError(f"{len(observations)} observations but {len(actions)} actions in one episode")
        object.__setattr__(self, "observations", observations)
        object.__setattr__(self, "actions", actions)
        if self.rewards is not None:
            rewards = _frozen(self.rewards, 1, "rewards")
            if len(rewards) != len(observations):
                raise DataError(f"{len(observations)} observations but {len(rewards)} rewards in one episode")
            object.__setattr__(self, "rewards", rewards)
        if self.final_observation is not None:
            final = _frozen(self.final_observation, 1, "final_observation")
            if final.shape != observations.shape[1:]:
                raise DataError(f"final observation has {final.size} numbers, the others {observations.shape[1]}")
            object.__setattr__(self, "final_observation", final)
        object.__setattr__(self, "terminated", bool(self.terminated))

    def __len__(self) -> int:
        return len(self.observations)

    def __repr__(self) -> str:
        parts = [f"{len(self)} steps", f"obs {self.observations.shape[1]}", f"act {self.actions.shape[1]}"]
        if self.rewards is not None:
            parts.append(f"return {self.total_reward:.1f}")
        parts.append("terminated" if self.terminated else "truncated")
        if self.label is not None:
            parts.append(f"label {self.label!r}")
        return f"Trajectory({', '.join(parts)})"

    def __getitem__(self, steps: slice) -> Trajectory:
        """A stretch of the episode as an episode of its own; the observation that follows becomes its final one."""
        start, stop, stride = steps.indices(len(self))
        if stride != 1 or start >= stop:
            raise DataError(f"cannot cut steps {start}:{stop}:{stride} out of an episode of {len(self)}")
        ends_here = stop == len(self)
        return Trajectory(
            self.observations[start:stop],
            self.actions[start:stop],
            None if self.rewards is None else self.rewards[start:stop],
            self.final_observation if ends_here else self.observations[stop],
            self.terminated and ends_here,
            self.label,
        )

    __iter__ = None  # slices only: Python would otherwise try to iterate through them

    @property
    def total_reward(self) -> float:
        """The undiscounted return, summed in double precision."""
        if self.rewards is None:
            raise DataError("this episode has no rewards, so it has no return")
        return float(self.rewards.sum(dtype=np.float64))


def concatenate(first: Trajectory, second: Trajectory) -> Trajectory:
    """Join two episodes end to end, as the paper's patchwork targets do; the join is not physical."""
    if first.observations.shape[1] != second.observations.shape[1] or first.actions.shape[1] != second.actions.shape[1]:
        raise DataError("cannot join episodes of different observation or action width")
    rewards = None
    if first.rewards is not None and second.rewards is not None:
        rewards = np.concatenate([first.rewards, second.rewards])
    return Trajectory(
        np.concatenate([first.observations, second.observations]),
        np.concatenate([first.actions, second.actions]),
        rewards,
        second.final_observation,
        second.terminated,
        first.label if first.label == second.label else None,
    )


def _frozen(values: ArrayLike, rank: int, name: str) -> Array:
    """A read-only float32 array of the right rank, which nobody changes later.

    So it is a copy, for the caller may fill his buffer anew with the next episode. Arrays that are read-only already (a
    dataset's own) and mapped files, which may be larger than memory, are taken as they are.
    """
    lasting = isinstance(values, np.memmap) or (isinstance(values, np.ndarray) and not values.flags.writeable)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            given = np.asarray(values, dtype=np.float32)
            array = given if lasting else given.copy()
    except (TypeError, ValueError):
        raise DataError(f"{name} are not numbers; himatch reads continuous vectors only") from None
    if array.ndim != rank:
        shape = "(T, width)" if rank == 2 else "(T,)" if name == "rewards" else "(width,)"
        raise DataError(f"{name} must have shape {shape}, got {array.shape}")
    finite = np.isfinite(array)
    if not finite.all():
        step = int(np.argwhere(~finite)[0][0])
        raise DataError(f"{name} hold NaN or infinity at step {step}; clean the log or drop the episode")
    view = array.view()
    view.flags.writeable = False
    return view
