"""What a simulator is: many simulations of one task, stepped together and reset one by one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.tasks import Discrete, Task

Settings = Mapping[str, Any]
"""Keyword arguments of an environment."""

EVALUATION_SEED = 2**31
"""Whoever evaluates resets simulations with seeds from here on; data and training stay below."""


class Transition(NamedTuple):
    """What one step did to every simulation."""

    observations: NDArray[np.float64]  # (n, obs) after the step
    rewards: NDArray[np.float64]  # (n,)
    terminated: NDArray[np.bool_]  # (n,)
    truncated: NDArray[np.bool_]  # (n,) the time limit is reached, or the environment cut the episode short


class Simulator(Protocol):
    """``count`` simulations of one task.

    A simulation plays an episode from its reset until it terminates, is truncated or is put to rest. From then on
    it is left alone: its observation and flags stay and its rewards are zero until it is reset.
    """

    task: Task
    count: int
    action_width: int
    discrete: Discrete | None
    """The actions, where one of several is taken at a step: ``step`` takes one-hot rows of them."""

    @property
    def observations(self) -> NDArray[np.float64]:
        """The current observations, ``(count, obs)``; later steps leave this array as it is."""
        ...

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which simulations are in the middle of an episode, ``(count,)``."""
        ...

    def reset(self, seeds: Sequence[int], ids: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Start a new episode in those simulations (all without ``ids``); their observations, in the order of ``ids``.

        Each starts exactly as Gymnasium's ``env.reset(seed=...)`` does.
        """
        ...

    def step(self, actions: ArrayLike) -> Transition:
        """Step every active simulation; ``actions`` is ``(count, act)``, other simulations' rows are ignored."""
        ...

    def rest(self, ids: Sequence[int]) -> None:
        """Take simulations out of stepping until they are reset."""
        ...

    def close(self) -> None:
        """Free what the simulations hold."""
        ...


def available_cpus() -> int:
    """CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
