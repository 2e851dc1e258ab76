"""What ``himatch show`` says of a policy, as data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

QUANTILES = (1, 5, 25, 50, 75, 95, 99)  # per cent


@dataclass(frozen=True)
class Covered:
    """One dimension of the matched feature in the training data: its range, quantiles and histogram."""

    name: str
    low: float
    high: float
    quantiles: dict[str, float]
    """By per cent."""
    histogram: list[float]
    """Shares of the bins from the lowest to the highest."""
    range: tuple[float, float]
    """Of the bins."""


@dataclass(frozen=True)
class Suggestion:
    """A target to begin with, as an expression for ``match``."""

    what: str
    target: str
    outside: float | None = None
    """Part of it that the training data does not cover; ``None`` where that cannot be known."""
    mixture: float | None = None
    """W1 of the nearest mixture of training episodes; distributions have one."""


@dataclass(frozen=True)
class Label:
    """Episodes with one label, and a target like one of them where the run knows any."""

    name: str
    episodes: int
    where: str
    """``training`` or ``held-out``."""
    target: str | None = None


@dataclass(frozen=True)
class Column:
    """One number of an observation or action, in the order in which the policy reads it."""

    name: str
    low: float | None = None
    high: float | None = None
    unit: str | None = None


@dataclass(frozen=True)
class Promise:
    """What a rehearsal expects of a target: W1 (of a return or goal the error), its interval, and the time played."""

    target: str
    score: float
    low: float
    high: float
    played: float


@dataclass(frozen=True, repr=False)
class Content:
    """What a policy is, what its data covers, and which targets it can match."""

    name: str
    """What ``himatch.load`` finds it by."""
    method: str
    settings: dict[str, Any]
    task: str
    environment: str | None
    horizon: int
    seeds: list[int]
    steps: list[int | None]
    """Gradient steps of every seed's weights."""
    weights: str
    data: dict[str, Any]
    """Name, episodes, steps and hash of the training data; episodes that the run keeps of it."""
    conditioned_on: str
    acts: str
    """How it chooses an action."""
    feature: str
    covered: list[Covered]
    labels: list[Label]
    targets: list[Suggestion]
    conditionings: dict[str, str]
    rehearsed: list[Promise]
    """Targets that programs are known for, with what is expected of these."""
    observations: list[Column]
    actions: list[Column]
    discrete: dict[str, int] | None
    """How many actions there are to choose from, and the number of the first; ``actions`` are their one-hot rows."""
    rate: float | None
    """Control steps a second, where the data said."""
    sensitivity: list[float] | None
    sensitivity_in_words: list[str] | None
    scored_on: str | None
    start: dict[str, Any] | None
    """The run that its training started from, if any."""
    next: str
    """A command to go on with."""

    def as_json(self) -> dict[str, Any]:
        """Everything, in built-in types."""
        found: dict[str, Any] = _plain(asdict(self))
        return found


def _plain(value: Any) -> Any:
    """JSON has no NaN and no tuples."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
