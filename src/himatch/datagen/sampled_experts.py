"""Experts as behaviour policies: sampled actions that do not depend on what else is computed beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from himatch._runtime.threads import one_thread
from himatch.datagen.behaviour import check_dims
from himatch.datagen.recipes import Recipe, recipe_cards
from himatch.experts.expert import Expert, load_expert, to_range
from himatch.simulation import Behaviour, Simulator
from himatch.tasks import Task


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


@dataclass(frozen=True)
class ExpertPolicy:
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
        expert = self.expert
        check_dims(f"the expert {expert.name}", expert.task.observation_width, expert.task.action_width, simulator)
        with one_thread():
            if self.deterministic:
                yield lambda observations, episodes, steps: expert.act(observations)
            else:
                yield SampledExpert(expert, simulator.count, simulator.task.horizon, (seed, 0))


def recipe_experts(recipe: Recipe, folder: str | Path | None = None) -> list[Expert]:
    """The expert of every part, bundled or from a folder of the user's own."""
    return [load_expert(card["name"], folder) for card in recipe_cards(recipe, folder)]
