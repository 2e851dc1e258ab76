"""Experts as behaviours: sampled actions that do not depend on what else is computed beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from himatch.datagen.recipes import Recipe, recipe_cards
from himatch.experts.expert import Expert, load_expert, to_range


class SampledExpert:
    """A behaviour: an expert whose actions are drawn with noise of each episode's own.

    Parameters
    ----------
    expert
        Who acts.
    count
        Simulations; rows of a batch are always as many, because the last bits of a matrix product depend on it.
    seed
        Numbers that together with the episode's determine its noise.
    """

    def __init__(self, expert: Expert, count: int, horizon: int, seed: Sequence[int]) -> None:
        width, actions = expert.task.observation_width or 0, expert.task.action_width or 0
        self._expert, self._seed, self._horizon = expert, tuple(seed), horizon
        self._noise = np.zeros((count, horizon, actions), dtype=np.float32)
        # Torch's own memory is aligned and NumPy's need not be; that, too, can reach the last bits.
        self._seen = torch.zeros(1, count, width)
        self._drawn = torch.zeros(1, count, actions)

    @torch.no_grad()
    def __call__(
        self, observations: NDArray[np.float64], episodes: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Actions ``(count, act)``; rows of simulations that do not play are meaningless."""
        for slot in np.flatnonzero((steps == 0) & (episodes >= 0)).tolist():
            rng = np.random.default_rng([*self._seed, int(episodes[slot])])
            self._noise[slot] = rng.standard_normal(self._noise.shape[1:], dtype=np.float32)
        self._seen[0].copy_(torch.from_numpy(observations))
        rows = np.arange(len(steps)), np.minimum(steps, self._horizon - 1)
        self._drawn[0].copy_(torch.from_numpy(self._noise[rows]))
        return to_range(self._expert.actor.act(self._seen, self._drawn)[0].numpy(), self._expert.task)


def recipe_experts(recipe: Recipe, folder: str | Path | None = None) -> list[Expert]:
    """The expert of every part, bundled or from a folder of the user's own."""
    return [load_expert(card["name"], folder) for card in recipe_cards(recipe, folder)]
