"""Widths and ranges of Gymnasium spaces: continuous vectors, and for actions a single choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from himatch.errors import HimatchError, SimulationError, TaskError
from himatch.tasks.discrete import Discrete
from himatch.tasks.environments import made, make_environment
from himatch.tasks.notices import quiet_loading
from himatch.tasks.physics import import_gymnasium

if TYPE_CHECKING:
    import gymnasium

DIGITS = 6  # of a rate that are more than rounding
FLATTENED = (
    "gymnasium.wrappers.FlattenObservation makes one of a Dict of observations, whose keys it takes in the space's "
    "order, as a rule the alphabet's; logs must have them in the same order"
)


@dataclass(frozen=True)
class EnvironmentFacts:
    """What an environment says about itself."""

    observation_width: int
    action_width: int
    action_low: tuple[float, ...] | None
    action_high: tuple[float, ...] | None
    horizon: int | None
    rate: float | None
    """Control steps a second, where the environment has a ``dt``."""
    discrete: Discrete | None = None
    """The actions, where one of several is taken at a step."""


def vector_width(space: gymnasium.Space[Any], what: str) -> int:
    """Width of a continuous vector space; anything else is refused by name."""
    spaces = import_gymnasium("a space").spaces
    if not isinstance(space, spaces.Box):
        reason = refusal(what, f"a {type(space).__name__} space")
        raise TaskError(f"{reason}; {FLATTENED}") if isinstance(space, spaces.Dict) else reason
    shape, dtype = tuple(space.shape or ()), np.dtype(space.dtype)
    if len(shape) != 1:
        raise refusal(what, "pixels" if len(shape) == 3 else f"an array of shape {shape}")
    if not np.issubdtype(dtype, np.floating):
        raise refusal(what, f"integers ({dtype})")
    return int(shape[0])


def action_dims(space: gymnasium.Space[Any], what: str) -> tuple[int, Discrete | None]:
    """Width of an action, and for a Discrete space, whose actions are one-hot rows, which there are."""
    spaces = import_gymnasium("a space").spaces
    if not isinstance(space, spaces.Discrete):
        return vector_width(space, what), None
    try:
        discrete = Discrete(int(space.n), int(space.start))
    except TaskError as reason:
        raise TaskError(f"{what}: {reason}") from None
    return discrete.count, discrete


def refusal(what: str, kind: str, error: type[HimatchError] = TaskError) -> HimatchError:
    """The error for spaces himatch does not handle."""
    return error(
        f"{what} is {kind}; himatch handles continuous vectors only (a one-dimensional Box of floats), and of actions "
        "also a Discrete space, one number a step"
    )


def _rate(seconds: object) -> float | None:
    """Steps a second, of what an environment calls its dt."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float, np.number)) or not 0 < seconds < np.inf:
        return None
    return float(f"{1 / float(seconds):.{DIGITS}g}")


def environment_facts(env_id: str, env_kwargs: Mapping[str, Any]) -> EnvironmentFacts:
    """Make the environment once and read its spaces, time limit and rate."""
    try:
        with quiet_loading():
            env = made(partial(make_environment, env_id, env_kwargs), env_id)
    except SimulationError as reason:
        raise TaskError(f"{reason}; or give observation_width, action_width and horizon yourself") from reason
    try:
        observation_width = vector_width(env.observation_space, f"the observation of {env_id}")
        action_width, discrete = action_dims(env.action_space, f"the action of {env_id}")
        space: Any = env.action_space  # a Box or Discrete, or it would have been refused
        bounded = discrete is None and bool(np.isfinite(space.low).all() and np.isfinite(space.high).all())
        return EnvironmentFacts(
            observation_width,
            action_width,
            tuple(space.low.tolist()) if bounded else None,
            tuple(space.high.tolist()) if bounded else None,
            None if env.spec is None else env.spec.max_episode_steps,
            _rate(getattr(env.unwrapped, "dt", None)),
            discrete,
        )
    finally:
        env.close()
