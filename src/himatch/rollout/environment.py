"""The environment that rollouts play in: the one the data came from, unless another is named or handed over."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from himatch.errors import HimatchError, SimulationError, note, one_line
from himatch.methods.batch import Dims
from himatch.runs.run import Run
from himatch.tasks import Task

STARTS = 1_000_000  # seeds of initial states that belong to one seed of an evaluation
UNNAMED = "handed over:"  # begins the name of an environment that has none of its own

if TYPE_CHECKING:  # a policy in a loop of one's own needs neither Gymnasium nor MuJoCo
    import gymnasium

    from himatch.simulation import Simulator
    from himatch.simulation.gymnasium_envs import MakeEnv
    from himatch.simulation.replay import Replay

    Environment = str | Callable[[], gymnasium.Env[Any, Any]] | gymnasium.Env[Any, Any]
else:
    Environment = object


def simulator_for(run: Run, dims: Dims, count: int, env: Environment | None, threads: int) -> Simulator:
    """Simulations of the environment the data came from, unless another one is named."""
    from himatch.simulation import make_simulator

    task, make_env = _environment(run, env)
    simulator = make_simulator(task, count, threads=threads, make_env=make_env)
    try:
        _check_dims(run, dims, simulator)
    except HimatchError:
        simulator.close()
        raise
    return simulator


def replay_for(run: Run, env: Environment | None, seed: int) -> Replay:
    """How the first rollout of every target is played again."""
    from himatch.simulation import EVALUATION_SEED
    from himatch.simulation.replay import Replay

    task, make_env = _environment(run, env)
    return Replay(task, EVALUATION_SEED + seed * STARTS, make_env)


def environment_name(run: Run, env: Environment | None) -> str:
    """What an environment is called; one that was handed over goes by itself, for nothing else tells it apart."""
    if env is None or isinstance(env, str):
        return str(env or run.env_id)
    return f"{UNNAMED} {type(env).__name__} {id(env)}"


def _environment(run: Run, env: Environment | None) -> tuple[Task, MakeEnv | None]:
    """The task with the environment that is meant, or a function that makes that."""
    task = run.task
    if env is not None and not isinstance(env, str):
        import gymnasium

        if isinstance(env, gymnasium.Env):
            return task, _copier(env)
        if callable(env):
            return task, env
        raise HimatchError(
            f"an environment is an id of Gymnasium, a function that makes one, or a gymnasium.Env (no vector of them), "
            f"not {type(env).__name__}"
        )
    env_id = env or run.env_id
    if env_id is None:
        raise HimatchError(
            f"task {task.name} has no environment to roll out in; name one (--env ID), hand over an environment, "
            "or use policy.controller in a loop of your own"
        )
    # Other versions of an environment need not know the settings of the task's own.
    return task if env_id == task.env_id else replace(task, env_id=env_id, env_kwargs={}), None


def _check_dims(run: Run, dims: Dims, simulator: Simulator) -> None:
    observation = simulator.observations.shape[1]
    longer = run.task.prefix_only and observation > dims.observation
    if (observation != dims.observation and not longer) or simulator.action_width != dims.action:
        raise HimatchError(
            f"the environment has {observation} observations and {simulator.action_width} actions, this policy of task "
            f"{run.task.name} {dims.observation} and {dims.action}; is it the right environment?"
        )
    if simulator.discrete != run.task.discrete:
        found, own = ("continuous" if d is None else d for d in (simulator.discrete, run.task.discrete))
        raise HimatchError(
            f"the environment's actions are {found}, those of this policy of task {run.task.name} {own}; is it the "
            "right environment?"
        )


def _copier(env: gymnasium.Env[Any, Any]) -> Callable[[], gymnasium.Env[Any, Any]]:
    spec = env.spec
    if spec is not None:
        note(
            f"rollouts play new copies of {spec.id}, made from its registration; what was changed in the one handed "
            "over is not in them: hand over a function that makes and changes it"
        )
        return lambda: _remade(spec)
    return lambda: copy.deepcopy(env)


def _remade(spec: gymnasium.envs.registration.EnvSpec) -> gymnasium.Env[Any, Any]:
    import gymnasium

    try:
        return gymnasium.make(spec)
    except Exception as reason:  # of wrappers and environments of the user's own
        raise SimulationError(
            f"no copy of {spec.id} can be made from its registration ({one_line(reason)}); hand over a function that "
            "makes it: env=lambda: ..."
        ) from reason
