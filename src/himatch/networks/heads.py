"""What every policy network has in common: how its last numbers become an action in [-1, 1], and what they cost."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Float, Int, shaped
from himatch.networks import squashed
from himatch.networks.stacked import Stack

Head = Literal["tanh", "gaussian", "squashed"]


class PolicyNetwork(nn.Module):
    """K policies: z and states to an action for every step.

    The head is a deterministic tanh with squared error (the paper), or a Gaussian with log-likelihood, clipped or
    squashed by tanh: a ``stochastic`` policy, whose actions are sampled. Agents that are trained by SAC squash.

    A policy may be an ensemble: ``members`` networks that see the same windows and are trained each by its own loss.
    Their outputs stand side by side. They act as one, by the mean of their actions or of their Gaussians' parameters:
    what each got wrong by itself averages out, and noise topples an ensemble less.
    """

    def __init__(self, head: Head, members: int = 1) -> None:
        super().__init__()
        self.head, self.members = head, members
        self.stochastic = head != "tanh"

    def stack(self, models: int) -> Stack:
        """What the layers of so many policies are stacked by."""
        return models if self.members == 1 else (models, self.members)

    def to_members(self, x: Float[Tensor, "K ..."]) -> Float[Tensor, "KM ..."]:
        """What K policies are given, for each of their members."""
        if self.members == 1:
            return x
        return x.unsqueeze(1).expand(len(x), self.members, *x.shape[1:]).flatten(0, 1)

    def from_members(self, outputs: Float[Tensor, "KM *rows numbers"]) -> Float[Tensor, "K *rows outputs"]:
        """Outputs of all members, those of a policy side by side."""
        if self.members == 1:
            return outputs
        apart = outputs.view(-1, self.members, *outputs.shape[1:])
        return apart.movedim(1, -2).flatten(-2)

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
        """How many numbers a member's head needs for ``action`` coordinates."""
        return action if self.head == "tanh" else 2 * action

    @shaped
    def loss(
        self, outputs: Float[Tensor, "K B N outputs"], actions: Float[Tensor, "K B N act"]
    ) -> Float[Tensor, "K B N"]:
        """What each step costs, the mean over members: squared error, or negative log-likelihood for Gaussian heads."""
        outputs, actions = self._by_member(outputs), actions.unsqueeze(-2)
        if self.head == "tanh":
            return (torch.tanh(outputs) - actions).square().mean((-2, -1))
        mean, log_std = self._gaussians(outputs)
        if self.head == "squashed":
            return -squashed.log_likelihood(mean, log_std, actions).mean((-2, -1))
        return (0.5 * ((actions - mean) / log_std.exp()).square() + log_std).mean((-2, -1))

    @shaped
    def action(
        self, outputs: Float[Tensor, "*rows outputs"], noise: Float[Tensor, "*rows act"] | None = None
    ) -> Float[Tensor, "*rows act"]:
        """The action in [-1, 1]; of a Gaussian the mean, or a sample by standard normal ``noise``."""
        if self.head == "tanh":
            return torch.tanh(self._by_member(outputs)).mean(-2)
        mean, log_std = self.gaussian(outputs)
        drawn = mean if noise is None else mean + log_std.exp() * noise
        return torch.tanh(drawn) if self.head == "squashed" else drawn.clamp(-1.0, 1.0)

    @shaped
    def gaussian(
        self, outputs: Float[Tensor, "*rows outputs"]
    ) -> tuple[Float[Tensor, "*rows act"], Float[Tensor, "*rows act"]]:
        """Mean and log standard deviation of a Gaussian head, before squashing; of an ensemble, the members' mean."""
        mean, log_std = self._gaussians(self._by_member(outputs))
        return mean.mean(-2), log_std.mean(-2)

    def _by_member(self, outputs: Float[Tensor, "*rows outputs"]) -> Float[Tensor, "*rows M numbers"]:
        return outputs.float().reshape(*outputs.shape[:-1], self.members, -1)

    def _gaussians(self, members: Float[Tensor, "*rows M numbers"]) -> tuple[Tensor, Tensor]:
        if self.head == "squashed":
            return squashed.gaussian(members)
        mean, log_std = members.chunk(2, dim=-1)
        return mean, log_std.clamp(*squashed.LOG_STD_RANGE)
