"""What every policy network has in common: how its last numbers become an action in [-1, 1], and what they cost."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Float, Int, shaped
from himatch.networks import squashed

Head = Literal["tanh", "gaussian", "squashed"]

ACCURACY = 50.0  # of squared error beside a Gaussian's likelihood, which weighs it so where the deviation is 0.1


class PolicyNetwork(nn.Module):
    """K policies: z and states to an action for every step.

    The head is a deterministic tanh with squared error (the paper), or a Gaussian with log-likelihood, clipped or
    squashed by tanh: a ``stochastic`` policy, whose actions are sampled. Agents that are trained by SAC squash.

    A likelihood alone weighs errors of the mean by the inverse of the variance, so hardly at all where the agent was
    noisy. Rollouts pay for them there too: the clipped Gaussian adds squared error.
    """

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head
        self.stochastic = head != "tanh"

    def forward(
        self,
        z: Float[Tensor, "K B #N k"] | None,
        states: Float[Tensor, "K B N obs"],
        actions: Float[Tensor, "K B N act"],
        times: Int[Tensor, "K B N"],
    ) -> Float[Tensor, "K B N outputs"]:
        """Head outputs for every step of windows, before tanh."""
        raise NotImplementedError

    def outputs(self, action: int) -> int:
        """How many numbers the head needs for ``action`` coordinates."""
        return action if self.head == "tanh" else 2 * action

    @shaped
    def loss(
        self, outputs: Float[Tensor, "K B N outputs"], actions: Float[Tensor, "K B N act"]
    ) -> Float[Tensor, "K B N"]:
        """What each step costs: squared error, negative log-likelihood for Gaussian heads, or both."""
        if self.head == "tanh":
            return (torch.tanh(outputs.float()) - actions).square().mean(-1)
        mean, log_std = self.gaussian(outputs)
        if self.head == "squashed":
            return -squashed.log_likelihood(mean, log_std, actions).mean(-1)
        error = (actions - mean).square()
        return (error * (0.5 * (-2.0 * log_std).exp() + ACCURACY) + log_std).mean(-1)

    @shaped
    def action(
        self, outputs: Float[Tensor, "*rows outputs"], noise: Float[Tensor, "*rows act"] | None = None
    ) -> Float[Tensor, "*rows act"]:
        """The action in [-1, 1]; of a Gaussian the mean, or a sample by standard normal ``noise``."""
        if self.head == "tanh":
            return torch.tanh(outputs.float())
        mean, log_std = self.gaussian(outputs)
        drawn = mean if noise is None else mean + log_std.exp() * noise
        return torch.tanh(drawn) if self.head == "squashed" else drawn.clamp(-1.0, 1.0)

    @shaped
    def gaussian(
        self, outputs: Float[Tensor, "*rows outputs"]
    ) -> tuple[Float[Tensor, "*rows act"], Float[Tensor, "*rows act"]]:
        """Mean and log standard deviation of a Gaussian head, before squashing."""
        if self.head == "squashed":
            return squashed.gaussian(outputs.float())
        mean, log_std = outputs.float().chunk(2, dim=-1)
        return mean, log_std.clamp(*squashed.LOG_STD_RANGE)
