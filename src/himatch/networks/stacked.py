"""Layers with a leading axis of K models, so that K seeds train as one.

A single model is a stack of one. Weights are ``(K, in, out)`` and inputs ``(K, ..., in)``; nothing in here mixes
models, so each of them computes what it would compute alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from himatch._runtime.graphs import fused
from himatch._runtime.shapes import Float, Int, shaped

EVEN = 8  # numbers that tensor cores take at a time


@shaped
def dropout(x: Float[Tensor, "*shape"], p: float, training: bool) -> Float[Tensor, "*shape"]:
    """Zero a part ``p`` of the numbers and scale up the rest.

    On a CPU drawing is what costs: sixteen random bits a number, four numbers a draw, take a fifth of the usual time.
    """
    if not training or p == 0.0:
        return x
    if x.device.type != "cpu":
        return nn.functional.dropout(x, p)
    bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
    threshold = round(p * 2**16) - 2**15
    kept = bits[: x.numel()].view(x.shape) >= threshold
    return x * (kept * (1.0 / (1.0 - p)))


class Linear(nn.Module):
    """``y = x W + b`` for each model; computed in the dtype of the weights. ``std`` is what they are drawn with."""

    def __init__(self, stack: int, inputs: int, outputs: int, std: float | None = None) -> None:
        super().__init__()
        self.std = std
        self.weight = nn.Parameter(torch.empty(stack, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(stack, outputs))

    @torch.no_grad()
    def initialize(self, model: int, generator: torch.Generator) -> None:
        """Draw the weights of one model: normal with ``std``, or PyTorch's default for a linear layer."""
        if self.std is not None:
            self.weight[model].normal_(0.0, self.std, generator=generator)
        else:
            bound = 1.0 / math.sqrt(self.weight.shape[1])
            self.weight[model].uniform_(-bound, bound, generator=generator)
            self.bias[model].uniform_(-bound, bound, generator=generator)

    @shaped
    def forward(self, x: Float[Tensor, "K *rows inputs"]) -> Float[Tensor, "K *rows outputs"]:
        """Every row by itself."""
        weight: Tensor = self.weight
        rows = x.reshape(x.shape[0], -1, x.shape[-1]).to(weight.dtype)
        if len(weight) == 1:  # one model: the plain product, which CPU libraries do better than a batch of one
            y = torch.addmm(self.bias.squeeze(0), rows.squeeze(0), weight.squeeze(0)).unsqueeze(0)
        else:
            if fused(rows) and (odd := -rows.shape[-1] % EVEN):  # 17 observations are multiplied like 24, and faster
                rows, weight = nn.functional.pad(rows, (0, odd)), nn.functional.pad(weight, (0, 0, 0, odd))
            # Not baddbmm: it first copies the bias over the whole output; a compiler fuses this addition instead.
            y = torch.bmm(rows, weight) + self.bias.unsqueeze(1)
        return y.view(*x.shape[:-1], weight.shape[2])


class LayerNorm(nn.Module):
    """Layer normalisation with an affine map of its own for each model, in single precision."""

    def __init__(self, stack: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(stack, width))
        self.bias = nn.Parameter(torch.zeros(stack, width))

    @shaped
    def forward(self, x: Float[Tensor, "K *rows width"]) -> Float[Tensor, "K *rows width"]:
        """Every row by itself."""
        if len(self.weight) == 1:
            weight, bias = (p.squeeze(0).to(x.dtype) for p in (self.weight, self.bias))
            return nn.functional.layer_norm(x, x.shape[-1:], weight, bias)
        shape = (x.shape[0], *(1,) * (x.dim() - 2), x.shape[-1])
        return nn.functional.layer_norm(x, x.shape[-1:]) * self.weight.view(shape) + self.bias.view(shape)


class Embedding(nn.Module):
    """A learned vector for each of ``count`` positions, one table a model; ``std`` is what they are drawn with."""

    def __init__(self, stack: int, count: int, width: int, std: float) -> None:
        super().__init__()
        self.std = std
        self.weight = nn.Parameter(torch.empty(stack, count, width))

    @torch.no_grad()
    def initialize(self, model: int, generator: torch.Generator) -> None:
        """Draw the table of one model."""
        self.weight[model].normal_(0.0, self.std, generator=generator)

    @shaped
    def forward(self, index: Int[Tensor, " K *rows"]) -> Float[Tensor, "K *rows width"]:
        """The vectors of these positions."""
        stack, count, width = self.weight.shape
        if stack == 1:
            return nn.functional.embedding(index.squeeze(0), self.weight.squeeze(0)).unsqueeze(0)
        offset = torch.arange(stack, device=index.device).view(stack, *(1,) * (index.dim() - 1)) * count
        return nn.functional.embedding(index + offset, self.weight.reshape(stack * count, width))


class MLP(nn.Module):
    """Fully connected layers with ReLU between them."""

    def __init__(self, stack: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Linear(stack, a, b) for a, b in pairwise(widths))

    @shaped
    def forward(self, x: Float[Tensor, "K *rows inputs"]) -> Float[Tensor, "K *rows outputs"]:
        """Every row by itself, from the first of the widths to the last."""
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        output: Tensor = self.layers[-1](x)
        return output


def draw(module: nn.Module, generators: Sequence[torch.Generator]) -> None:
    """Draw the weights of every model in the stack with its own generator, layer after layer."""
    for model, generator in enumerate(generators):
        for layer in module.modules():
            if isinstance(layer, Linear | Embedding):
                layer.initialize(model, generator)
