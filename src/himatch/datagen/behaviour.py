"""Behaviour policies: whatever acts when data is collected, and the simplest of them, a function."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.errors import HimatchError, TaskError, one_line
from himatch.simulation import Behaviour, Simulator
from himatch.tasks import Task

Act = Callable[[NDArray[np.float64]], ArrayLike]
"""A policy: observations ``(n, obs)`` to actions ``(n, act)``."""


class BehaviourPolicy(Protocol):
    """A policy that collects data."""

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
class FunctionPolicy:
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
        count, width, discrete = simulator.count, simulator.action_width, simulator.discrete

        def behave(
            observations: NDArray[np.float64], episodes: NDArray[np.int64], steps: NDArray[np.int64]
        ) -> NDArray[np.float32]:
            playing = episodes >= 0
            seen = observations[playing]
            try:
                answer = self.act(seen)
                with np.errstate(over="ignore", invalid="ignore"):
                    rows = None if discrete is None else discrete.as_rows(answer, len(seen))
                    returned = np.asarray(answer if rows is None else rows, dtype=np.float32)
            except TaskError as reason:
                raise HimatchError(f"the policy {self.name} returned an action that is none: {reason}") from None
            except HimatchError:
                raise
            except (Exception, SystemExit) as reason:  # somebody else's code: whatever it raises, say whose it is
                raise HimatchError(f"the policy {self.name} failed: {one_line(reason)}") from reason
            if returned.shape != (len(seen), width):
                needed = f"({len(seen)}, {width})" + ("" if discrete is None else f", or numbers ({len(seen)},)")
                raise HimatchError(
                    f"the policy {self.name} returned shape {returned.shape} for {len(seen)} observations; "
                    f"task {simulator.task.name} needs {needed}"
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


def check_dims(who: str, observation: int | None, action: int | None, simulator: Simulator) -> None:
    """Refuse an agent that was made for another observation or action."""
    task, found = simulator.task.name, (simulator.observations.shape[1], simulator.action_width)
    for what, own, others in zip(("observations", "actions"), (observation, action), found, strict=True):
        if own != others:
            raise HimatchError(f"{who} was made for {own} {what}, task {task} has {others}; is it the right task?")


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
