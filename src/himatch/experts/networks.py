"""The networks of SAC, stacked: one actor and two critics for each of K agents.

Agents of different tasks share one stack: observations and actions are padded to the widest, and a mask keeps padded
action coordinates at zero and out of the likelihood.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from himatch._runtime.shapes import Float, shaped
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

    @shaped
    def gaussian(
        self, observations: Float[Tensor, "K B obs"]
    ) -> tuple[Float[Tensor, "K B act"], Float[Tensor, "K B act"]]:
        """The mean and log standard deviation before squashing."""
        return squashed.gaussian(self(observations))

    @shaped
    def act(
        self, observations: Float[Tensor, "K B obs"], noise: Float[Tensor, "K B act"] | None
    ) -> Float[Tensor, "K B act"]:
        """Actions in [-1, 1]: a sample for standard normal ``noise``, the squashed mean without."""
        mean, log_std = self.gaussian(observations)
        chosen = mean if noise is None else mean + log_std.exp() * noise
        return torch.tanh(chosen) * self.mask

    @shaped
    def sample(
        self, observations: Float[Tensor, "K B obs"], noise: Float[Tensor, "K B act"]
    ) -> tuple[Float[Tensor, "K B act"], Float[Tensor, "K B"]]:
        """Sampled actions and their log-likelihood."""
        mean, log_std = self.gaussian(observations)
        actions, density = squashed.sample(mean, log_std, noise)
        return actions * self.mask, (density * self.mask).sum(-1)


class Critics(ValueNetwork):
    """Two action values for each agent."""

    def __init__(self, stack: int, dims: NetworkDims) -> None:
        super().__init__(2 * stack, dims.observation + dims.action, dims.hidden)

    @shaped
    def forward(self, *inputs: Float[Tensor, "K B _"]) -> Float[Tensor, "K 2 B"]:
        """Values of observations and actions."""
        values = super().forward(*(x.repeat_interleave(2, dim=0) for x in inputs))
        return values.view(-1, 2, values.shape[1])


def initialize(actor: Actor, critics: Critics, seeds: tuple[int, ...]) -> None:
    """Draw the weights of each agent, its actor and then one critic after the other, from its own seed."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    draw(actor, generators)
    draw(critics, [generator for generator in generators for _ in range(2)])
