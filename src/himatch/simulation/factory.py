"""Simulators of a task: batched MuJoCo where himatch knows the environment, Gymnasium for every other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from himatch.errors import SimulationError
from himatch.simulation.gymnasium_envs import GymnasiumSimulator, environment_makers
from himatch.simulation.locomotion import batched_environment
from himatch.simulation.simulator import Settings, Simulator, available_cpus
from himatch.tasks import Task, get_task
from himatch.tasks.environments import MakeEnv


def make_simulator(
    task: str | Task,
    count: int,
    *,
    settings: Settings | Sequence[Settings] | None = None,
    threads: int = 0,
    make_env: MakeEnv | None = None,
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
        from himatch.simulation.batched import BatchedSimulator  # imports MuJoCo

        return BatchedSimulator(known, environment, count, threads or available_cpus())
    return GymnasiumSimulator(known, environment_makers(known, each))


def _settings_of_each(task: Task, count: int, settings: Settings | Sequence[Settings] | None) -> list[Settings]:
    """The keyword arguments of every simulation's environment, the task's own included."""
    if settings is None or isinstance(settings, Mapping):
        return [{**task.env_kwargs, **(settings or {})}] * count
    if len(settings) != count:
        raise SimulationError(f"{len(settings)} settings for {count} simulations; give one mapping, or one each")
    return [{**task.env_kwargs, **own} for own in settings]
