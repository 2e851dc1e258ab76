"""Feature functions Phi(s, a): what is counted, summed or matched (Section "Hindsight Information Matching")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from himatch._runtime.shapes import Float, shaped
from himatch.errors import DataError, one_line
from himatch.tasks import FeatureFunction
from himatch.types import Array, Trajectory


class Feature(Protocol):
    """A fixed feature: a trajectory of T steps to ``(T, d)``, row t read at step t."""

    @property
    def name(self) -> str:
        """The name it is chosen and stored by; a task and this name give the feature back."""

    def names(self, width: int) -> tuple[str, ...]:
        """A name for each of the ``width`` columns."""

    def __call__(self, trajectory: Trajectory) -> Float[Array, "T d"]:
        """The feature of every step."""


@dataclass(frozen=True)
class Reward:
    """The reward r(s, a)."""

    name: str = "reward"

    def names(self, width: int) -> tuple[str, ...]:
        """One column."""
        return ("reward",)

    @shaped
    def __call__(self, trajectory: Trajectory) -> Float[Array, "T 1"]:
        """Rewards as a column."""
        if trajectory.rewards is None:
            raise DataError("the feature 'reward' needs rewards, but the data has no rewards; match another feature")
        return trajectory.rewards[:, None]


@dataclass(frozen=True)
class State:
    """The whole observation (Phi is the identity)."""

    name: str = "state"

    def names(self, width: int) -> tuple[str, ...]:
        """Coordinates by number."""
        return tuple(f"obs[{i}]" for i in range(width))

    @shaped
    def __call__(self, trajectory: Trajectory) -> Float[Array, "T obs"]:
        """The observations themselves."""
        return trajectory.observations


@dataclass(frozen=True)
class Coordinates:
    """Named coordinates of the observation (or the action)."""

    name: str
    indices: tuple[int, ...]
    of_action: bool = False

    def names(self, width: int) -> tuple[str, ...]:
        """The name itself for one coordinate, numbered for several."""
        return (self.name,) if len(self.indices) == 1 else tuple(f"{self.name}[{i}]" for i in range(len(self.indices)))

    @shaped
    def __call__(self, trajectory: Trajectory) -> Float[Array, "T d"]:
        """The chosen columns."""
        rows = trajectory.actions if self.of_action else trajectory.observations
        if max(self.indices) >= rows.shape[1]:
            raise DataError(f"feature {self.name!r} reads coordinate {max(self.indices)}, the data has {rows.shape[1]}")
        return rows[:, list(self.indices)]


class NotFiniteError(DataError):
    """A function gave NaN or infinity for an episode; of others it may give numbers."""


@dataclass(frozen=True)
class Function:
    """A user's function of ``(observations, actions, rewards)``; its output is checked."""

    name: str
    function: FeatureFunction

    def names(self, width: int) -> tuple[str, ...]:
        """The name itself for one column, numbered for several."""
        return (self.name,) if width == 1 else tuple(f"{self.name}[{i}]" for i in range(width))

    @shaped
    def __call__(self, trajectory: Trajectory) -> Float[Array, "T d"]:
        """Call the function and refuse what is not one finite row a step."""
        rewards = trajectory.rewards
        try:
            phi = np.asarray(self.function(trajectory.observations, trajectory.actions, rewards), dtype=np.float32)
        except Exception as reason:  # it is the user's code, whatever it raises
            missed = rewards is None and isinstance(reason, TypeError | AttributeError) and "None" in str(reason)
            hint = "the data has no rewards, it is given None for them" if missed else "mend its function"
            raise DataError(f"feature {self.name!r} failed with {one_line(reason)}; {hint}") from reason
        phi = phi[:, None] if phi.ndim == 1 else phi
        if phi.ndim != 2 or len(phi) != len(trajectory) or phi.shape[1] == 0:
            raise DataError(
                f"feature {self.name!r} returned shape {phi.shape} for an episode of {len(trajectory)} steps; "
                "it must return one number or one row a step"
            )
        if not np.isfinite(phi).all():
            step = int(np.argwhere(~np.isfinite(phi))[0][0])
            raise NotFiniteError(f"feature {self.name!r} returned NaN or infinity at step {step}")
        return phi


@dataclass(frozen=True)
class Stack:
    """Several features side by side: d is d1 + d2 + ..."""

    parts: Sequence[Feature]

    @property
    def name(self) -> str:
        """The names joined with commas."""
        return ",".join(part.name for part in self.parts)

    def names(self, width: int) -> tuple[str, ...]:
        """The parts' own names where each is one column, numbered otherwise."""
        if width == len(self.parts):
            return tuple(part.name for part in self.parts)
        return tuple(f"{self.name}[{i}]" for i in range(width))

    @shaped
    def __call__(self, trajectory: Trajectory) -> Float[Array, "T d"]:
        """All parts' columns."""
        return np.concatenate([part(trajectory) for part in self.parts], axis=1)


@dataclass(frozen=True)
class OfEach:
    """The feature of every episode, computed anew each time it is asked for; where it is no number, that is named."""

    feature: Feature
    episodes: Iterable[Trajectory]

    def __post_init__(self) -> None:
        if isinstance(self.episodes, Iterator):  # which gives them only once
            object.__setattr__(self, "episodes", list(self.episodes))

    def __iter__(self) -> Iterator[Array]:
        for number, episode in enumerate(self.episodes):
            try:
                phi = self.feature(episode)
            except NotFiniteError as reason:
                raise DataError(f"{reason} of episode {number}") from reason
            yield phi


def of_each(feature: Feature, episodes: Iterable[Trajectory]) -> OfEach:
    """The feature of every episode."""
    return OfEach(feature, episodes)
