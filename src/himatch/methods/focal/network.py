"""FOCAL's actor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from himatch.methods.metabc.network import TaskPolicy
from himatch.networks import squashed


class SquashedTaskPolicy(TaskPolicy):
    """An actor-critic's actor, a Gaussian squashed by tanh: stochastic in training, used by its mean action."""

    def __init__(self, stack: int, observation: int, action: int, z_width: int, hidden: Sequence[int]) -> None:
        super().__init__(stack, observation, action, z_width, hidden, 0.0, "gaussian")
        self.stochastic = False

    def action(self, outputs: Tensor, noise: Tensor | None = None) -> Tensor:
        """The squashed mean."""
        return torch.tanh(self.gaussian(outputs)[0])

    def loss(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """Squared error of the squashed mean, ``(K, B, N)``."""
        return (self.action(outputs) - actions).square().mean(-1)

    def gaussian(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation before squashing."""
        return squashed.gaussian(outputs.float())
