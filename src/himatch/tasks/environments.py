"""An environment of Gymnasium, or one clear line about why it cannot be made."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from himatch._runtime.extras import installed
from himatch.errors import HimatchError, SimulationError, one_line
from himatch.tasks.physics import import_gymnasium
from himatch.tasks.registration import register_environments

if TYPE_CHECKING:
    from gymnasium import Env

MakeEnv = Callable[[], "Env[Any, Any]"]
"""Makes one environment."""


def make_environment(
    env_id: str, settings: Mapping[str, Any], horizon: int | None = None, *, otherwise: str = ""
) -> Env[Any, Any]:
    """Gymnasium's environment of that id, with ``horizon`` as its time limit in place of its own.

    ``otherwise`` ends the message about an unknown id with what else the caller could do.
    """
    gymnasium = import_gymnasium(f"the environment {env_id}")
    register_environments()
    try:
        env: Env[Any, Any] = gymnasium.make(env_id, max_episode_steps=horizon, disable_env_checker=True, **settings)
        return env
    except gymnasium.error.Error as reason:
        raise SimulationError(
            f"Gymnasium cannot make {env_id!r} ({one_line(reason)}); import the package that registers it first "
            f"(--import FILE.py){otherwise}"
        ) from None
    except HimatchError:  # an extra that is missing, or a setting that one of himatch's own refuses
        raise
    except (TypeError, ValueError, OSError) as reason:  # a setting that the environment does not know, or its value
        if not settings:
            raise
        raise SimulationError(f"{env_id} does not take the settings {dict(settings)}: {reason}") from None


def made(make: MakeEnv, name: str) -> Env[Any, Any]:
    """The environment, or one clear line about what making it raised."""
    gymnasium = import_gymnasium(f"the environment of {name}")
    try:
        env = make()
    except HimatchError:
        raise
    except Exception as reason:
        raise SimulationError(f"the environment of {name} cannot be made: {one_line(reason)}") from reason
    fits = isinstance(env, gymnasium.Env)
    if not fits:
        raise SimulationError(f"what should make the environment of {name} gave {type(env).__name__}, no gymnasium.Env")
    return env


def environment_spec(env_id: str, settings: Mapping[str, Any]) -> str | None:
    """An environment as Gymnasium's JSON; ``None`` where Gymnasium is not installed, or does not know the id."""
    if not installed("gymnasium"):
        return None
    gymnasium = import_gymnasium(f"the environment {env_id}")
    register_environments()
    try:
        spec = copy.deepcopy(gymnasium.spec(env_id))  # the registry's own must not change
    except gymnasium.error.Error:
        return None
    spec.kwargs.update(settings)
    try:
        text: str = spec.to_json()
    except (TypeError, ValueError):  # registered with a class or function instead of its name, which no file can hold
        return None
    return text
