"""A policy that is conditioned on how much better than usual the rest of the episode is to be."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Float, Int, shaped
from himatch.networks.heads import Head
from himatch.networks.single_step import StepPolicy
from himatch.networks.stacked import MLP


class UsualReturn(nn.Module):
    """V(s): the return that is usual from a state on, and how far single returns are from it, ``log_std``."""

    def __init__(self, stack: int, observation: int, z_width: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.mlp = MLP(stack, (observation, *hidden, z_width))
        self.log_std = nn.Parameter(torch.zeros(stack, z_width))

    @shaped
    def advantage(self, z: Float[Tensor, "K B N k"], states: Float[Tensor, "K B N obs"]) -> Float[Tensor, "K B N k"]:
        """Z - V(s), in units of its own spread."""
        value: Tensor = self.mlp(states)
        return (z - value) * (-self.log_std).exp()[:, None, None]

    @shaped
    def loss(self, z: Float[Tensor, "K B N k"], states: Float[Tensor, "K B N obs"]) -> Float[Tensor, " K"]:
        """Negative log-likelihood of the returns that followed: Monte Carlo, TD(1)."""
        return (0.5 * self.advantage(z, states).square() + self.log_std[:, None, None]).mean((1, 2, 3))


class AdvantagePolicy(StepPolicy):
    """Given a return it subtracts what is usual; so targets, conditioners and exports are those of returns."""

    def __init__(
        self, stack: int, observation: int, action: int, z_width: int, hidden: Sequence[int], rate: float, head: Head
    ) -> None:
        super().__init__(stack, observation, action, z_width, hidden, rate, head)
        self.usual = UsualReturn(stack, observation, z_width, hidden)

    @shaped
    def forward(
        self,
        z: Float[Tensor, "K B #N k"] | None,
        states: Float[Tensor, "K B N obs"],
        actions: Float[Tensor, "K B N act"],
        times: Int[Tensor, "K B N"],
    ) -> Float[Tensor, "K B N outputs"]:
        """Head outputs for every step."""
        assert z is not None
        return self.outputs_for(states, self.usual.advantage(z.expand(*states.shape[:-1], -1), states))
