"""How much data, training and evaluation a run of the benchmark spends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from himatch.datagen.mazes import MAZES
from himatch.methods import CDT, METHODS
from himatch.training import configure

BudgetName = Literal["smoke", "cpu", "fast", "paper"]


@dataclass(frozen=True)
class Budget:
    """How much of everything a run of the benchmark spends.

    ``episodes`` are those of a medium-expert set; ``steps`` of ``None`` are the preset's own. Of OGBench's mazes a
    ``maze_share`` of its episodes is made.
    """

    preset: str
    steps: int | None
    episodes: int
    velocity_episodes: int
    flip_episodes: int
    seeds: int
    rollouts: int
    maze_share: float = 1.0

    def dataset_size(self, dataset: str) -> int:
        """Episodes of a dataset that himatch makes."""
        if dataset in MAZES:
            return max(1, round(self.maze_share * MAZES[dataset].episodes))
        sizes = {"cheetah-vel": self.velocity_episodes, "halfcheetah-run-backflip": self.flip_episodes}
        return sizes.get(dataset, self.episodes)


BUDGETS: Mapping[str, Budget] = {
    "smoke": Budget("cpu", 4_000, 100, 31 * 14, 100, 2, 5, 0.1),
    "cpu": Budget("cpu", None, 2_000, 31 * 250, 1_000, 4, 20),
    "fast": Budget("fast", None, 2_000, 31 * 250, 1_000, 4, 20),
    "paper": Budget("paper", None, 2_000, 31 * 250, 1_000, 4, 20),
}
"""From the smallest to the largest."""

EARLIER_STEPS: Mapping[str, int] = {"fast": 30_000}
"""Training steps of budgets whose preset has had others since results record their policy."""


def usual_steps(budget: str, method: str) -> int | None:
    """Training steps of a budget for a method, one of the user's own included; nothing for an unknown budget."""
    if budget not in BUDGETS:
        return None
    known = METHODS.get(method, CDT)  # one that is not registered here has the usual presets
    _, train = configure(BUDGETS[budget].preset, known, steps=BUDGETS[budget].steps)
    return train.steps
