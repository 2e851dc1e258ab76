"""What every policy network has in common: how its last numbers become an action in [-1, 1], and what they cost."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from himatch.networks.squashed import LOG_STD_RANGE

Head = Literal["tanh", "gaussian"]


class PolicyNetwork(nn.Module):
    """K policies: z and states to an action for every step.

    The head is a deterministic tanh with squared error (the paper), or a Gaussian with log-likelihood: a ``stochastic``
    policy, whose actions are sampled.
    """

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head
        self.stochastic = head == "gaussian"

    def forward(self, z: Tensor | None, states: Tensor, actions: Tensor, times: Tensor) -> Tensor:
        """Head outputs for every step of windows ``(K, B, N, ...)``, before tanh."""
        raise NotImplementedError

    def outputs(self, action: int) -> int:
        """How many numbers the head needs for ``action`` coordinates."""
        return action if self.head == "tanh" else 2 * action

    def loss(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """What each step costs, ``(K, B, N)``: squared error, or negative log-likelihood for the Gaussian head."""
        if self.head == "tanh":
            return (torch.tanh(outputs.float()) - actions).square().mean(-1)
        mean, log_std = self.gaussian(outputs)
        return (0.5 * ((actions - mean) / log_std.exp()).square() + log_std).mean(-1)

    def action(self, outputs: Tensor, noise: Tensor | None = None) -> Tensor:
        """The action in [-1, 1]; of a Gaussian the mean, or a sample by standard normal ``noise``."""
        if self.head == "tanh":
            return torch.tanh(outputs.float())
        mean, log_std = self.gaussian(outputs)
        return (mean if noise is None else mean + log_std.exp() * noise).clamp(-1.0, 1.0)

    def gaussian(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation of the Gaussian head."""
        mean, log_std = outputs.float().chunk(2, dim=-1)
        return mean, log_std.clamp(*LOG_STD_RANGE)
