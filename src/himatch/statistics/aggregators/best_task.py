"""Which of several tasks the rest of the trajectory serves best (generalized hindsight, HIPI)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from himatch._runtime.shapes import Float, shaped
from himatch.statistics.aggregators.aggregator import check_gamma, discounted_sums
from himatch.types import Array


@dataclass(frozen=True)
class BestTask:
    """``argmax_j sum_i gamma^i r_j(s_{t+i}, a_{t+i})`` as a one-hot row, the features being one reward per task."""

    kind: ClassVar[str] = "best_task"
    gamma: float = 1.0

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    def fit(self, features: Iterable[Array]) -> BestTask:
        """Nothing to learn."""
        return self

    def width(self, dimensions: int) -> int:
        """One place per task."""
        return dimensions

    @shaped
    def __call__(self, phi: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """One-hot rows."""
        best = discounted_sums(phi, self.gamma).argmax(axis=1)
        onehot: Array = np.eye(phi.shape[1], dtype=np.float32)[best]
        return onehot

    @shaped
    def of_task(self, parameter: Float[Array, " d"]) -> Float[Array, " d"]:
        """One-hot: a task is named by the weights of the rewards, of which the largest counts."""
        onehot: Array = np.eye(len(parameter), dtype=np.float32)[parameter.argmax()]
        return onehot
