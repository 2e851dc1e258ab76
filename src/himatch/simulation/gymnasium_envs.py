"""The same protocol over Gymnasium environments, for everything himatch has no faster way for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.errors import SimulationError
from himatch.simulation.episodes import Episodes
from himatch.simulation.simulator import Transition
from himatch.tasks import Task
from himatch.tasks.notices import quiet_loading
from himatch.tasks.spaces import vector_width

MakeEnv = Callable[[], gymnasium.Env[Any, Any]]


class GymnasiumSimulator:
    """A ``Simulator`` that steps environments one after another; ``make_simulator`` makes them.

    Gymnasium's own vector environments step episodes that have ended, or refuse to; here they are left alone.
    """

    def __init__(self, task: Task, makers: Sequence[MakeEnv]) -> None:
        self.task, self.count = task, len(makers)
        with quiet_loading():
            self._envs = [make() for make in makers]
        name = task.env_id or task.name
        widths = {
            (
                vector_width(env.observation_space, f"the observation of {name}"),
                vector_width(env.action_space, f"the action of {name}"),
            )
            for env in self._envs
        }
        if len(widths) > 1:
            raise SimulationError(f"the simulations of {name} differ in the width of observations or actions")
        [(observation_width, self.action_width)] = widths
        self._episodes = Episodes(self.count, task.horizon)
        self._observations = np.zeros((self.count, observation_width))

    def __repr__(self) -> str:
        return f"GymnasiumSimulator({self.task.name}, {self.count} environments)"

    @property
    def observations(self) -> NDArray[np.float64]:
        """The current observations, ``(count, obs)``."""
        return self._observations

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which simulations are in the middle of an episode."""
        return self._episodes.active

    def reset(self, seeds: Sequence[int], ids: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Start new episodes with these seeds."""
        chosen = self._episodes.checked_ids(ids)
        numbers = self._episodes.checked_seeds(seeds, chosen)
        self._observations = self._observations.copy()
        for simulation, seed in zip(chosen.tolist(), numbers, strict=True):
            self._observations[simulation], _ = self._envs[simulation].reset(seed=seed)
        if numbers:
            self._episodes.begin(chosen)
        return self._observations[chosen]

    def rest(self, ids: Sequence[int]) -> None:
        """Take simulations out of stepping until they are reset."""
        self._episodes.rest(self._episodes.checked_ids(ids))

    def step(self, actions: ArrayLike) -> Transition:
        """Step every active simulation."""
        sent = self._episodes.checked_actions(actions, self.action_width)
        observations, rewards = self._observations.copy(), np.zeros(self.count)
        terminated, truncated = np.zeros((2, self.count), dtype=np.bool_)
        for i in self._episodes.ids.tolist():
            observations[i], rewards[i], terminated[i], truncated[i], _ = self._envs[i].step(sent[i])
        self._episodes.advance(terminated, truncated)
        self._observations = observations
        return Transition(observations, rewards, self._episodes.terminated, self._episodes.truncated)

    def close(self) -> None:
        """Close every environment."""
        for env in self._envs:
            env.close()


def environment_makers(task: Task, settings: Sequence[Mapping[str, Any]]) -> list[MakeEnv]:
    """One function for each simulation that makes its environment, with the task's horizon as its time limit."""
    return [partial(_make, task, own) for own in settings]


def _make(task: Task, settings: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    assert task.env_id is not None
    try:
        return gymnasium.make(task.env_id, max_episode_steps=task.horizon, disable_env_checker=True, **settings)
    except gymnasium.error.Error as reason:
        raise SimulationError(
            f"Gymnasium cannot make {task.env_id!r} ({str(reason).splitlines()[0]}); import the package that "
            "registers it first, or hand over make_env"
        ) from None
    except (TypeError, ValueError, OSError) as reason:  # a setting that the environment does not know, or its value
        raise SimulationError(f"{task.env_id} does not take the settings {dict(settings)}: {reason}") from None
