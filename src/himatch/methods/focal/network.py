"""FOCAL's actor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from himatch._runtime.shapes import Float, shaped
from himatch.networks import squashed
from himatch.networks.single_step import StepPolicy


class SquashedTaskPolicy(StepPolicy):
    """An actor-critic's actor, a Gaussian squashed by tanh: stochastic in training, used by its mean action."""

    def __init__(self, stack: int, observation: int, action: int, z_width: int, hidden: Sequence[int]) -> None:
        super().__init__(stack, observation, action, z_width, hidden, 0.0, "gaussian")
        self.stochastic = False

    @shaped
    def action(
        self,
        outputs: Float[Tensor, "*rows outputs"],
        noise: Float[Tensor, "*rows act"] | None = None,
        temperature: float = 1.0,
    ) -> Float[Tensor, "*rows act"]:
        """The squashed mean."""
        return torch.tanh(self.gaussian(outputs)[0])

    @shaped
    def loss(
        self, outputs: Float[Tensor, "K B N outputs"], actions: Float[Tensor, "K B N act"]
    ) -> Float[Tensor, "K B N"]:
        """Squared error of the squashed mean."""
        return (self.action(outputs) - actions).square().mean(-1)

    @shaped
    def gaussian(
        self, outputs: Float[Tensor, "*rows outputs"]
    ) -> tuple[Float[Tensor, "*rows act"], Float[Tensor, "*rows act"]]:
        """Mean and log standard deviation before squashing."""
        return squashed.gaussian(outputs.float())
