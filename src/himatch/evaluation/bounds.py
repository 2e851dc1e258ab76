"""How well rollouts kept within bounds, with each of their features computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.evaluation.wording import share
from himatch.statistics.features import Feature, resolve_feature
from himatch.targets import Bound
from himatch.tasks import Task
from himatch.types import Array, Trajectory

Values = tuple[tuple[Array, ...], ...]
"""The feature of rollout e of seed k is ``values[k][e]``, ``(T, d)``."""


class Measured:
    """The features of some rollouts, by name; one that is a column of another is taken from it."""

    def __init__(self, played: Sequence[Sequence[Trajectory]]) -> None:
        self.played = played
        self._found: dict[str, Values] = {}

    def of(self, feature: Feature) -> Values:
        """The feature of every rollout."""
        if feature.name not in self._found:
            values = tuple(tuple(feature(trajectory) for trajectory in row) for row in self.played)
            self._found[feature.name] = values
            names = feature.names(values[0][0].shape[1])
            for i, name in enumerate(names if len(names) > 1 else ()):
                self._found.setdefault(name, tuple(tuple(phi[:, i : i + 1] for phi in row) for row in values))
        return self._found[feature.name]


@dataclass(frozen=True, eq=False)
class BoundScore:
    """How well the rollouts of every seed, pooled, kept within a bound."""

    bound: Bound
    held_per_seed: NDArray[np.float64]
    """The share of the played time in which it held, ``(K,)``."""
    violation_per_seed: NDArray[np.float64]
    """How far the feature was from the range on average, ``(K,)``, in its units."""

    @property
    def held(self) -> float:
        """Mean over seeds of the share of the played time in which it held."""
        return float(self.held_per_seed.mean())

    @property
    def violation(self) -> float:
        """Mean over seeds of the mean distance to the range, which is W1 to the nearest distribution inside it."""
        return float(self.violation_per_seed.mean())

    def __str__(self) -> str:
        return f"{self.bound} held {share(self.held)} of the time, mean violation {self.violation:.3g}"

    def as_json(self) -> dict[str, Any]:
        """In built-in types."""
        return {
            "bound": str(self.bound),
            "held": self.held,
            "held_per_seed": self.held_per_seed.tolist(),
            "violation": self.violation,
            "violation_per_seed": self.violation_per_seed.tolist(),
        }


def score_bound(bound: Bound, measured: Measured, task: Task) -> BoundScore:
    """How well these rollouts kept within a bound."""
    pooled = [np.concatenate(rows) for rows in measured.of(resolve_feature(bound.feature, task))]
    held = np.array([bound.holds(rows).mean() for rows in pooled])
    return BoundScore(bound, held, np.array([bound.violation(rows).mean() for rows in pooled]))
