"""Making an environment, or one clear line about why it cannot be made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium

from himatch.errors import HimatchError, SimulationError, one_line

MakeEnv = Callable[[], gymnasium.Env[Any, Any]]


def make_environment(
    env_id: str, settings: Mapping[str, Any], horizon: int | None = None, *, otherwise: str = ""
) -> gymnasium.Env[Any, Any]:
    """Gymnasium's environment of that id, with ``horizon`` as its time limit in place of its own.

    ``otherwise`` ends the message about an unknown id with what else the caller could do.
    """
    try:
        return gymnasium.make(env_id, max_episode_steps=horizon, disable_env_checker=True, **settings)
    except gymnasium.error.Error as reason:
        raise SimulationError(
            f"Gymnasium cannot make {env_id!r} ({one_line(reason)}); import the package that registers it first "
            f"(--import FILE.py){otherwise}"
        ) from None
    except (TypeError, ValueError, OSError) as reason:  # a setting that the environment does not know, or its value
        if not settings:
            raise
        raise SimulationError(f"{env_id} does not take the settings {dict(settings)}: {reason}") from None


def made(make: MakeEnv, name: str) -> gymnasium.Env[Any, Any]:
    """The environment, or one clear line about what making it raised."""
    try:
        env = make()
    except HimatchError:
        raise
    except Exception as reason:
        raise SimulationError(f"the environment of {name} cannot be made: {one_line(reason)}") from reason
    if not isinstance(env, gymnasium.Env):
        raise SimulationError(f"what should make the environment of {name} gave {type(env).__name__}, no gymnasium.Env")
    return env
