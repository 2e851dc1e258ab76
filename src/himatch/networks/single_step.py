"""A policy of single steps: fully connected layers over the present state and z."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Float, Int, shaped
from himatch.networks.heads import Head, PolicyNetwork
from himatch.networks.stacked import Linear, dropout


class StepPolicy(PolicyNetwork):
    """Fully connected layers over a single state and z; the past and the time do not reach it."""

    def __init__(
        self, stack: int, observation: int, action: int, z_width: int, hidden: Sequence[int], rate: float, head: Head
    ) -> None:
        super().__init__(head)
        self.dropout = rate
        widths = (observation + z_width, *hidden, self.outputs(action))
        self.layers = nn.ModuleList(Linear(stack, a, b) for a, b in pairwise(widths))

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
        return self.outputs_for(states, z.expand(*states.shape[:-1], -1))

    @shaped
    def outputs_for(
        self, states: Float[Tensor, "K *rows obs"], z: Float[Tensor, "K *rows k"]
    ) -> Float[Tensor, "K *rows outputs"]:
        """Head outputs for states, each with its z."""
        x = torch.cat([states, z], dim=-1)
        for layer in self.layers[:-1]:
            x = dropout(torch.relu(layer(x)), self.dropout, self.training)
        outputs: Tensor = self.layers[-1](x)
        return outputs
