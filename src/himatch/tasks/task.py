"""A task as data: which environment, how long, what the numbers mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.errors import TaskError
from himatch.tasks.discrete import Discrete

FeatureFunction = Callable[[NDArray[np.float32], NDArray[np.float32], "NDArray[np.float32] | None"], ArrayLike]
"""A user's feature: ``(observations (T, obs), actions (T, act), rewards (T,) or None) -> (T,) or (T, d)``.

Row t may depend on other steps of the episode, but then it is not known before the end, as ``remaining`` needs it.
"""

FeatureSource = int | str | Sequence[int] | FeatureFunction
"""Where a named feature comes from: an observation coordinate, several of them, ``act[0]``, or a function.

A task takes NumPy's numbers and arrays and slices for coordinates too, and keeps them as plain numbers.
"""


ACTION = re.compile(r"act\[(\d+)\]")


@dataclass(frozen=True)
class Task:
    """What himatch knows about a control problem.

    Parameters
    ----------
    name
        How the task is called on the command line and in files.
    horizon
        Longest episode, in steps; the scale of DT's returns.
    observation_width, action_width
        ``None`` means "whatever the data has".
    action_low, action_high
        Range of every action coordinate, or of each one; ``None`` means unbounded.
    features
        Names for observation coordinates (``{"x_velocity": 8}``), groups of them, or functions.
    env_id, env_kwargs
        Gymnasium environment, or ``None`` for logs without a simulator.
    reference_returns
        Return of a random and of an expert policy, the 0 and 100 of D4RL's normalised score.
    prefix_only
        Rows wider than ``observation_width`` are cut to it (Ant: contact forces follow the first 27 numbers).
    rate
        Control steps a second (Hz), for data that has no time of its own; ``None`` means unknown.
    discrete
        The actions where one of several is taken at a step, or how many these are; ``action_width`` is their count.
    """

    name: str
    horizon: int
    observation_width: int | None = None
    action_width: int | None = None
    action_low: float | Sequence[float] | None = None
    action_high: float | Sequence[float] | None = None
    features: Mapping[str, FeatureSource] = field(default_factory=dict)
    env_id: str | None = None
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    reference_returns: tuple[float, float] | None = None
    prefix_only: bool = False
    rate: float | None = None
    discrete: Discrete | None = None

    def __post_init__(self) -> None:
        if not self.name or any(c.isspace() or c in "+:,()/" for c in self.name):
            raise TaskError(f"a task name is one word without + : , ( ) or /, got {self.name!r}")
        if self.horizon < 1:
            raise TaskError(f"task {self.name}: the horizon must be at least one step, got {self.horizon}")
        if self.discrete is not None:
            self._set_discrete(Discrete.of(self.discrete))
        for width, what in ((self.observation_width, "observation"), (self.action_width, "action")):
            if width is not None and width < 1:
                raise TaskError(f"task {self.name}: the {what} width must be at least 1, got {width}")
        if self.rate is not None and not 0 < self.rate < np.inf:
            raise TaskError(f"task {self.name}: the rate is a positive number of steps a second, got {self.rate}")
        low, high = self._bound(self.action_low, "action_low"), self._bound(self.action_high, "action_high")
        if (low is None) != (high is None):
            raise TaskError(f"task {self.name}: give both action_low and action_high, or neither")
        if low is not None and high is not None and np.any(np.asarray(low) >= np.asarray(high)):
            raise TaskError(f"task {self.name}: action_low must be below action_high, got {low} and {high}")
        object.__setattr__(self, "action_low", low)
        object.__setattr__(self, "action_high", high)
        features = {name: self._feature(name, source) for name, source in self.features.items()}
        object.__setattr__(self, "features", MappingProxyType(features))
        object.__setattr__(self, "env_kwargs", MappingProxyType(dict(self.env_kwargs)))

    def _set_discrete(self, discrete: Discrete) -> None:
        """Actions are one-hot rows, whose width says how many there are."""
        if self.action_low is not None or self.action_high is not None:
            raise TaskError(f"task {self.name}: discrete actions have no range; leave out action_low and action_high")
        if self.action_width not in (None, discrete.count):
            raise TaskError(
                f"task {self.name}: its actions are {discrete}, so their width is {discrete.count}, not "
                f"{self.action_width}; leave action_width out"
            )
        object.__setattr__(self, "discrete", discrete)
        object.__setattr__(self, "action_width", discrete.count)

    def _bound(self, bound: float | Sequence[float] | None, what: str) -> float | tuple[float, ...] | None:
        if bound is None:
            return None
        values = np.atleast_1d(np.asarray(bound, dtype=np.float64))
        if values.ndim != 1 or not np.isfinite(values).all():
            raise TaskError(
                f"task {self.name}: {what} must be finite numbers; leave it out where actions are unbounded"
            )
        if values.size == 1:
            return float(values[0])
        if self.action_width not in (None, values.size):
            raise TaskError(f"task {self.name}: {what} has {values.size} numbers for {self.action_width} actions")
        return tuple(float(v) for v in values)

    def _feature(self, name: str, source: FeatureSource) -> FeatureSource:
        """A function as it is, coordinates as plain numbers."""
        if not nameable(name):
            raise TaskError(
                f"task {self.name}: {name!r} cannot name a feature; use letters, digits and _, not 'reward' or 'state'"
            )
        if callable(source):
            return source
        if isinstance(source, str):
            return self._action(name, source)
        width = self.observation_width
        try:
            plain = _coordinates(source, width)
        except (TypeError, ValueError):
            raise TaskError(
                f"task {self.name}: feature {name!r} cannot be {source!r}; give a coordinate of the observation (3), "
                "several ([3, 4]), or a function of observations, actions and rewards"
            ) from None
        several = [plain] if isinstance(plain, int) else plain
        bad = [c for c in several if c < 0 or (width is not None and c >= width)]
        if bad or not several:
            raise TaskError(f"task {self.name}: feature {name!r} names coordinate {bad or '(none)'} of {width or '?'}")
        return plain

    def _action(self, name: str, source: str) -> str:
        found = ACTION.fullmatch(source)
        if found is None or (self.action_width is not None and int(found[1]) >= self.action_width):
            raise TaskError(
                f"task {self.name}: feature {name!r} cannot be {source!r}; give a coordinate of the observation "
                "(3), several ([3, 4]), an action (act[0]), or a function of observations, actions and rewards"
            )
        return source

    def __repr__(self) -> str:
        environment = self.env_id or "no environment"
        return f"Task({self.name!r}, {environment}, horizon {self.horizon}, features {', '.join(self.features) or '-'})"

    def normalized_return(self, total: float) -> float | None:
        """D4RL's score: 0 for the random policy, 100 for the expert; ``None`` where no reference is known."""
        if self.reference_returns is None:
            return None
        low, high = self.reference_returns
        return 100.0 * (total - low) / (high - low)


def nameable(name: str) -> bool:
    """Whether a feature may have this name: columns of a table often have points, blanks or strokes in theirs."""
    if not name or name in ("reward", "state") or name[0].isdigit() or name != name.strip():
        return False
    return name.isprintable() and not set(name) & set(",[](){}/\\'\"")


def _coordinates(source: Any, width: int | None) -> int | tuple[int, ...]:
    """What a user may write for coordinates: a number, a list, a NumPy array or a slice; anything else is an error."""
    if isinstance(source, slice):
        from_the_end = source.stop is None or min(source.start or 0, source.stop) < 0
        length: Any = width if from_the_end else source.stop
        source = range(length)[source]
    try:
        return _coordinate(source)
    except TypeError:
        return tuple(_coordinate(one) for one in source)


def _coordinate(number: Any) -> int:
    if isinstance(number, (bool, np.bool_)):  # of a mask; it would be coordinate 0 or 1
        raise TypeError
    return index(number)
