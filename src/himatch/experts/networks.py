"""The networks of SAC, stacked: one actor and two critics for each of K agents.

Agents of different tasks share one stack: observations and actions are padded to the widest, and a mask keeps padded
action coordinates at zero and out of the likelihood.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from himatch.networks import squashed
from himatch.networks.stacked import MLP, draw
from himatch.networks.values import ValueNetwork


class NetworkDims(NamedTuple):
    """NetworkDims of a stack: the widest observation and action, and the hidden layers."""

    observation: int
    action: int
    hidden: tuple[int, ...]


class Actor(MLP):
    """A Gaussian squashed by tanh, as SAC's."""

    mask: Tensor

    def __init__(self, action_widths: tuple[int, ...], dims: NetworkDims) -> None:
        stack = len(action_widths)
        super().__init__(stack, (dims.observation, *dims.hidden, 2 * dims.action))
        mask = torch.zeros(stack, 1, dims.action)
        for agent, width in enumerate(action_widths):
            mask[agent, :, :width] = 1.0
        self.register_buffer("mask", mask, persistent=False)

    def gaussian(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """``(K, B, obs)`` to the mean and log standard deviation before squashing, ``(K, B, act)`` each."""
        return squashed.gaussian(self(observations))

    def act(self, observations: Tensor, noise: Tensor | None) -> Tensor:
        """Actions in [-1, 1]: a sample for standard normal ``noise``, the squashed mean without."""
        mean, log_std = self.gaussian(observations)
        chosen = mean if noise is None else mean + log_std.exp() * noise
        return torch.tanh(chosen) * self.mask

    def sample(self, observations: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Sampled actions ``(K, B, act)`` and their log-likelihood ``(K, B)``."""
        mean, log_std = self.gaussian(observations)
        actions, density = squashed.sample(mean, log_std, noise)
        return actions * self.mask, (density * self.mask).sum(-1)


class Critics(ValueNetwork):
    """Two action values for each agent."""

    def __init__(self, stack: int, dims: NetworkDims) -> None:
        super().__init__(2 * stack, dims.observation + dims.action, dims.hidden)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Observations ``(K, B, obs)`` and actions ``(K, B, act)`` to ``(K, 2, B)``."""
        values = super().forward(*(x.repeat_interleave(2, dim=0) for x in inputs))
        return values.view(-1, 2, values.shape[1])


def initialize(actor: Actor, critics: Critics, seeds: tuple[int, ...]) -> None:
    """Draw the weights of each agent, its actor and then one critic after the other, from its own seed."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    draw(actor, generators)
    draw(critics, [generator for generator in generators for _ in range(2)])
