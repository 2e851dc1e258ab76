"""The same protocol over Gymnasium environments, for everything himatch has no faster way for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.errors import HimatchError, SimulationError, one_line
from himatch.simulation.episodes import Episodes
from himatch.simulation.simulator import Transition
from himatch.tasks import Discrete, Task
from himatch.tasks.environments import MakeEnv as MakeEnv
from himatch.tasks.environments import made, make_environment
from himatch.tasks.notices import quiet_loading
from himatch.tasks.spaces import action_dims, vector_width

if TYPE_CHECKING:
    import gymnasium

LARGEST = float(np.finfo(np.float32).max)


class Call(NamedTuple):
    """A function of environments, and what Gymnasium has it return."""

    name: str
    returns: tuple[str, ...]


RESET = Call("reset(seed=...)", ("observation", "info"))
STEP = Call("step(action)", ("observation", "reward", "terminated", "truncated", "info"))


class GymnasiumSimulator:
    """A ``Simulator`` that steps environments one after another; ``make_simulator`` makes them.

    Gymnasium's own vector environments step episodes that have ended, or refuse to; here they are left alone.
    """

    def __init__(self, task: Task, makers: Sequence[MakeEnv]) -> None:
        self.count = len(makers)
        self._envs: list[gymnasium.Env[Any, Any]] = []
        with ExitStack() as unfinished:
            unfinished.callback(self.close)  # those that were made, where a later one fails or is refused
            with quiet_loading():
                for make in makers:
                    self._envs.append(made(make, task.env_id or task.name))
            first = self._envs[0]
            self._name = type(first.unwrapped).__name__ if first.spec is None else first.spec.id
            observation_width, self.action_width, self.discrete = self._dims()
            self.task = self._task(task)
            unfinished.pop_all()
        self._episodes = Episodes(self.count, task.horizon)
        self._observations = np.zeros((self.count, observation_width))

    def _dims(self) -> tuple[int, int, Discrete | None]:
        """Numbers in an observation and in an action, the same in all environments, and discrete actions."""
        dims = {
            (
                vector_width(env.observation_space, f"the observation of {self._name}"),
                *action_dims(env.action_space, f"the action of {self._name}"),
            )
            for env in self._envs
        }
        if len(dims) > 1:
            raise SimulationError(f"the simulations of {self._name} differ in the width of observations or actions")
        return dims.pop()

    def _task(self, task: Task) -> Task:
        """The task with the actions of the environment, which those that it names must be."""
        silent = task.discrete is None and task.action_low is None and task.action_width in (None, self.action_width)
        if task.discrete == self.discrete:
            return task
        if not silent or self.discrete is None:
            found, own = ("continuous" if d is None else d for d in (self.discrete, task.discrete))
            raise SimulationError(
                f"the actions of {self._name} are {found}, those of task {task.name} {own}; is it the right "
                "environment?"
            )
        return replace(task, discrete=self.discrete, action_width=self.action_width)

    def __repr__(self) -> str:
        return f"GymnasiumSimulator({self.task.name}, {self.count} environments)"

    @property
    def environments(self) -> list[gymnasium.Env[Any, Any]]:
        """One for each simulation."""
        return self._envs

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
        observations = self._observations.copy()
        with calling(self._name, RESET):
            for simulation, seed in zip(chosen.tolist(), numbers, strict=True):
                observations[simulation], _ = self._checked(self._envs[simulation].reset(seed=seed), RESET)
        self._check_finite("observation", observations, np.zeros(self.count, np.int64))
        self._observations = observations
        if numbers:
            self._episodes.begin(chosen)
        return self._observations[chosen]

    def rest(self, ids: Sequence[int]) -> None:
        """Take simulations out of stepping until they are reset."""
        self._episodes.rest(self._episodes.checked_ids(ids))

    def step(self, actions: ArrayLike) -> Transition:
        """Step every active simulation."""
        sent: Any = self._episodes.checked_actions(actions, self.action_width)
        if self.discrete is not None:
            sent = self.discrete.numbers(sent).tolist()
        observations, rewards = self._observations.copy(), np.zeros(self.count)
        terminated, truncated = np.zeros((2, self.count), dtype=np.bool_)
        with calling(self._name, STEP):
            for i in self._episodes.ids.tolist():
                found = self._checked(self._envs[i].step(sent[i]), STEP)
                observations[i], rewards[i], terminated[i], truncated[i], _ = found
        self._check_finite("observation", observations, self._episodes.elapsed + 1)
        self._check_finite("reward", rewards, self._episodes.elapsed + 1)
        self._episodes.advance(terminated, truncated)
        self._observations = observations
        return Transition(observations, rewards, self._episodes.terminated, self._episodes.truncated)

    def close(self) -> None:
        """Close every environment."""
        for env in self._envs:
            env.close()

    # -- what an environment may do wrong ---------------------------------------------------------------------------

    def _checked(self, found: Any, call: Call) -> Any:
        """What a call returned, with an observation of the right shape."""
        several = isinstance(found, (tuple, list))
        if not several or len(found) != len(call.returns):
            kind = f"{len(found)} values" if several else f"one {type(found).__name__}"
            raise SimulationError(
                f"{self._name}: {call.name} returned {kind}; Gymnasium's returns {', '.join(call.returns)}"
            )
        shape, wanted = np.shape(found[0]), self._observations.shape[1:]
        if shape != wanted:
            raise SimulationError(
                f"{self._name}: {call.name} returned an observation of shape {shape}, not {wanted} as its space says"
            )
        return found

    def _check_finite(self, what: str, numbers: NDArray[np.float64], steps: NDArray[np.int64]) -> None:
        """Refuse what is no number in single precision, in which rollouts are kept."""
        good = np.abs(numbers) <= LARGEST
        if not good.all():
            simulation = int(np.argwhere(~good)[0][0])
            raise SimulationError(
                f"{self._name}: the {what} of simulation {simulation} holds NaN or infinity (or a number beyond single "
                f"precision) after {steps[simulation]} steps; mend the environment"
            )


@contextmanager
def calling(name: str, call: Call) -> Iterator[None]:
    """One clear line for whatever an environment raises when it is called: it is the user's code."""
    try:
        yield
    except HimatchError:
        raise
    except Exception as reason:
        hint = "mend the environment"
        if isinstance(reason, (TypeError, ValueError)):  # as Gymnasium's wrappers do that unpack something else
            hint = f"Gymnasium's {call.name} returns {', '.join(call.returns)}"
        raise SimulationError(f"{name}: {call.name} failed with {one_line(reason)}; {hint}") from reason


def environment_makers(task: Task, settings: Sequence[Mapping[str, Any]]) -> list[MakeEnv]:
    """One function for each simulation that makes its environment, with the task's horizon as its time limit."""
    assert task.env_id is not None
    otherwise = ", or hand over a function that makes it (env=...)"
    return [partial(make_environment, task.env_id, own, task.horizon, otherwise=otherwise) for own in settings]
