"""Agents of policies that see single steps and are told the embedding of an episode: what they share, and Meta-BC's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from himatch.methods.agent import Agent, Batch, Widths
from himatch.methods.baselines import TaskMethod
from himatch.methods.normalizers import Normalizers
from himatch.networks.tasks import TaskEncoder, TaskPolicy, metric_loss
from himatch.networks.transformer import ModelConfig, initialize
from himatch.types import Trajectory

BLOCK = 65_536  # steps embedded together, about


class TaskAgent(Agent):
    """The encoder, which is trained first and fixed then.

    In single precision: the networks are small, and values that are learned from one another do not survive rounding.
    """

    method: TaskMethod
    precision: ClassVar[torch.dtype] = torch.float32

    def __init__(self, method: TaskMethod, config: ModelConfig, widths: Widths, seeds: tuple[int, ...]) -> None:
        super().__init__(method, config, widths, seeds)
        self.encoder = TaskEncoder(len(seeds), widths.observation, widths.action, method.m, method.encoder)

    def part_losses(self, part: str, batch: Batch) -> Tensor:
        """The metric loss between contexts, ``(K,)``; a context is ``context_steps`` windows of a task in a row."""
        assert batch.rewards is not None
        assert batch.tasks is not None
        steps = self.encoder(batch.states[:, :, 0], batch.actions[:, :, 0], batch.rewards[:, :, 0])
        contexts = steps.unflatten(1, (-1, self.method.context_steps)).mean(2)
        return metric_loss(contexts, batch.tasks[:, :: self.method.context_steps])

    @torch.no_grad()
    def embed(self, normalizers: Normalizers, episodes: Sequence[Trajectory]) -> Tensor:
        """Mean embedding of each episode's steps, ``(K, E, m)``."""
        device, found = normalizers.state_mean.device, []
        for block in _blocks(episodes):
            rows = [np.concatenate([part[i] for part in block]) for i in range(3)]
            states, actions, rewards = (torch.from_numpy(array).to(device) for array in rows)
            raw = Batch(states, actions, states, rewards=rewards)
            steps = normalizers(raw)
            assert steps.rewards is not None
            inputs = (x.expand(len(self.seeds), *x.shape) for x in (steps.states, steps.actions, steps.rewards))
            codes = self.encoder(*inputs).double().split([len(part[0]) for part in block], dim=1)
            found += [code.mean(1) for code in codes]
        return torch.stack(found, dim=1).float()

    def settle(self, part: str, codes: Tensor | None) -> None:
        """Once the encoder is learned, give the training episodes' embeddings unit size."""
        if part == "encoder" and codes is not None:
            self.encoder.rescale(codes)


class MetaBCAgent(TaskAgent):
    """Meta-BC: the policy is a behavioural clone. Layers and width of the model's configuration are the policy's."""

    def __init__(self, method: TaskMethod, config: ModelConfig, widths: Widths, seeds: tuple[int, ...]) -> None:
        super().__init__(method, config, widths, seeds)
        hidden = (config.width,) * config.layers
        self.policy = TaskPolicy(
            len(seeds), widths.observation, widths.action, method.m, hidden, config.dropout, config.head
        )
        initialize(self, seeds)


Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def _blocks(episodes: Sequence[Trajectory]) -> Iterator[list[Arrays]]:
    """Observations, actions and rewards of several episodes at a time."""
    block: list[Arrays] = []
    for episode in episodes:
        assert episode.rewards is not None
        block.append((episode.observations, episode.actions, episode.rewards))
        if sum(len(part[2]) for part in block) >= BLOCK:
            yield block
            block = []
    if block:
        yield block
