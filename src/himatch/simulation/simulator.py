"""What a simulator is: many simulations of one task, stepped together and reset one by one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.errors import SimulationError
from himatch.tasks import Task, get_task

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


def make_simulator(
    task: str | Task,
    count: int,
    *,
    settings: Settings | Sequence[Settings] | None = None,
    threads: int = 0,
    make_env: Callable[[], gymnasium.Env[Any, Any]] | None = None,
) -> Simulator:
    """Many simulations of a task: on MuJoCo's native threads where himatch knows the environment, else in Gymnasium.

    Both give the same numbers; only the speed differs.

    Parameters
    ----------
    task
        Name of a task, or a task. Its ``horizon`` is the time limit of an episode.
    count
        Number of simulations.
    settings
        Keyword arguments of the environment on top of the task's own: one mapping for all simulations, or one each.
    threads
        Threads that step the simulations; 0 takes every CPU this process may use.
    make_env
        Makes one environment; for environments that are not registered with Gymnasium.
    """
    from himatch.simulation.gymnasium_envs import GymnasiumSimulator, environment_makers
    from himatch.simulation.locomotion import batched_environment

    known = get_task(task)
    if count < 1:
        raise SimulationError(f"a simulator needs at least one simulation, got {count}")
    if threads < 0:
        raise SimulationError(f"threads must be 0 (all CPUs) or more, got {threads}")
    if make_env is not None:
        if settings is not None:
            raise SimulationError("give settings or make_env, not both: make_env makes the whole environment")
        return GymnasiumSimulator(known, [make_env] * count)
    if known.env_id is None:
        raise SimulationError(f"task {known.name} has no environment; register it with an env_id")
    each = _settings_of_each(known, count, settings)
    environment = batched_environment(known.env_id, each)
    if environment is not None:
        from himatch.simulation.batched import BatchedSimulator

        return BatchedSimulator(known, environment, count, threads or available_cpus())
    return GymnasiumSimulator(known, environment_makers(known, each))


def available_cpus() -> int:
    """CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _settings_of_each(task: Task, count: int, settings: Settings | Sequence[Settings] | None) -> list[Settings]:
    """The keyword arguments of every simulation's environment, the task's own included."""
    if settings is None or isinstance(settings, Mapping):
        return [{**task.env_kwargs, **(settings or {})}] * count
    if len(settings) != count:
        raise SimulationError(f"{len(settings)} settings for {count} simulations; give one mapping, or one each")
    return [{**task.env_kwargs, **own} for own in settings]
