"""Value networks of actor-critics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call

from himatch._runtime.shapes import Float, shaped
from himatch.networks.stacked import LayerNorm, Linear


class ValueNetwork(nn.Module):
    """One number for each row, with layer normalisation, which keeps values of unseen actions in bounds."""

    def __init__(self, stack: int, inputs: int, hidden: Sequence[int]) -> None:
        super().__init__()
        sizes = (inputs, *hidden)
        self.layers = nn.ModuleList(Linear(stack, a, b) for a, b in pairwise(sizes))
        self.norms = nn.ModuleList(LayerNorm(stack, b) for b in hidden)
        self.last = Linear(stack, sizes[-1], 1)

    @shaped
    def forward(self, *inputs: Float[Tensor, "K B _"]) -> Float[Tensor, "K B"]:
        """The values of what is given in parts, side by side."""
        x = torch.cat(inputs, dim=-1)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = torch.relu(norm(layer(x)))
        values: Tensor = self.last(x)
        return values.squeeze(-1)


def held(network: nn.Module, *inputs: Tensor) -> Tensor:
    """A network's output through which gradients reach its inputs but not its weights."""
    values: Tensor = functional_call(network, {name: p.detach() for name, p in network.named_parameters()}, inputs)
    return values
