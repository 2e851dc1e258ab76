"""Whoever acts when data is collected: a bundled expert, a Stable-Baselines3 agent, a function of one's own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.data.checks import listed
from himatch.errors import HimatchError, one_line
from himatch.simulation import Behaviour, Simulator
from himatch.tasks import Task
from himatch.tasks.imports import import_code

if TYPE_CHECKING:
    from himatch.experts.expert import Expert

Act = Callable[[NDArray[np.float64]], ArrayLike]
"""A policy: observations ``(n, obs)`` to actions ``(n, act)``."""


class Agent(Protocol):
    """Somebody who acts."""

    @property
    def facts(self) -> dict[str, Any]:
        """What the dataset says about it."""
        ...

    def settings(self, task: Task) -> Mapping[str, Any]:
        """What its environment is made with, beyond the task's own."""
        ...

    def acting(self, simulator: Simulator, seed: int) -> AbstractContextManager[Behaviour]:
        """How it acts in these simulations, for a while; refuses those it was not made for."""
        ...


@dataclass(frozen=True)
class FunctionAgent:
    """A function; it sees only simulations that play, and answers with an action for each."""

    name: str
    act: Act
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """Its name."""
        return {"policy": self.name, **self.more}

    def settings(self, task: Task) -> Mapping[str, Any]:
        """None."""
        return {}

    @contextmanager
    def acting(self, simulator: Simulator, seed: int) -> Iterator[Behaviour]:
        """Its actions; what is random in them is its own business."""
        yield self.behaviour(simulator)

    def behaviour(self, simulator: Simulator) -> Behaviour:
        """Its actions, checked here because only here it is known whose they are."""
        count, width = simulator.count, simulator.action_width

        def behave(
            observations: NDArray[np.float64], episodes: NDArray[np.int64], steps: NDArray[np.int64]
        ) -> NDArray[np.float32]:
            playing = episodes >= 0
            seen = observations[playing]
            try:
                answer = self.act(seen)
                with np.errstate(over="ignore", invalid="ignore"):
                    returned = np.asarray(answer, dtype=np.float32)
            except HimatchError:
                raise
            except (Exception, SystemExit) as reason:  # somebody else's code: whatever it raises, say whose it is
                raise HimatchError(f"the policy {self.name} failed: {one_line(reason)}") from reason
            if returned.shape != (len(seen), width):
                raise HimatchError(
                    f"the policy {self.name} returned shape {returned.shape} for {len(seen)} observations; "
                    f"task {simulator.task.name} needs ({len(seen)}, {width})"
                )
            finite = np.isfinite(returned).all(axis=1)
            if not finite.all():
                row = int(np.flatnonzero(playing)[np.argmin(finite)])
                raise HimatchError(
                    f"the policy {self.name} returned NaN or infinity in episode {episodes[row]}, step {steps[row]}"
                )
            actions = np.zeros((count, width), dtype=np.float32)
            actions[playing] = returned
            return actions

        return behave


@dataclass(frozen=True)
class ExpertAgent:
    """A bundled expert, in the environment it was trained for where that is the task."""

    expert: Expert
    deterministic: bool

    @property
    def facts(self) -> dict[str, Any]:
        """Its name and the hash of its weights."""
        return {"policy": f"expert:{self.expert.name}", "weights_sha256": self.expert.weights_hash}

    def settings(self, task: Task) -> Mapping[str, Any]:
        """Its own (the velocity of cheetah-vel)."""
        return self.expert.settings if task.name == self.expert.task.name else {}

    @contextmanager
    def acting(self, simulator: Simulator, seed: int) -> Iterator[Behaviour]:
        """Its most likely actions, or samples with noise of each episode's own."""
        from himatch._runtime.threads import one_thread
        from himatch.datagen.sampled_experts import SampledExpert

        expert = self.expert
        check_widths(f"the expert {expert.name}", expert.task.observation_width, expert.task.action_width, simulator)
        with one_thread():
            if self.deterministic:
                yield lambda observations, episodes, steps: expert.act(observations)
            else:
                yield SampledExpert(expert, simulator.count, simulator.task.horizon, (seed, 0))


def open_agent(policy: str | Act, *, deterministic: bool = False, vecnormalize: str | Path | None = None) -> Agent:
    """``sb3:AGENT.zip``, ``expert:NAME``, ``module:function``, ``file.py:function``, or a function itself.

    A Stable-Baselines3 file and a Python file run code of whoever wrote them.
    """
    kind, _, rest = ("", "", "") if callable(policy) else policy.partition(":")
    if vecnormalize is not None and kind != "sb3":
        raise HimatchError("--vecnormalize belongs to a Stable-Baselines3 agent (--policy sb3:AGENT.zip)")
    if kind == "sb3" and rest:
        from himatch.datagen.stable_baselines import load_sb3_agent

        return load_sb3_agent(Path(rest), vecnormalize, deterministic=deterministic)
    if kind == "expert" and rest:
        from himatch.experts import load_expert

        return ExpertAgent(load_expert(rest), deterministic)
    if deterministic:
        raise HimatchError("--deterministic is for sb3: and expert: policies; a function decides for itself")
    if callable(policy):
        return FunctionAgent(getattr(policy, "__name__", type(policy).__name__), policy)
    return _function_agent(policy)


def _function_agent(policy: str) -> FunctionAgent:
    place, _, name = policy.rpartition(":")
    if not place or not name:
        raise HimatchError(
            f"cannot understand the policy {policy!r}; write sb3:AGENT.zip, expert:NAME, module:function or "
            "file.py:function"
        )
    names = vars(import_code(place, f"--policy {policy}"))
    more = {"sha256": file_hash(Path(place))} if place.endswith(".py") else {}
    if name not in names:
        known = listed(n for n, value in names.items() if callable(value) and not n.startswith("_"))
        raise HimatchError(f"--policy {policy}: {place} has no function {name!r}; it has: {known}")
    if not callable(names[name]):
        raise HimatchError(f"--policy {policy}: {name} is not a function but of type {type(names[name]).__name__}")
    return FunctionAgent(f"{Path(place).name}:{name}", names[name], more)


def check_widths(who: str, observation: int | None, action: int | None, simulator: Simulator) -> None:
    """Refuse an agent that was made for another observation or action."""
    task, found = simulator.task.name, (simulator.observations.shape[1], simulator.action_width)
    for what, own, others in zip(("observations", "actions"), (observation, action), found, strict=True):
        if own != others:
            raise HimatchError(f"{who} was made for {own} {what}, task {task} has {others}; is it the right task?")


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
