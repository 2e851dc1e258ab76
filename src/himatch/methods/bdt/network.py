"""BDT's second transformer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Float, shaped
from himatch.networks.stacked import Embedding, Linear
from himatch.networks.transformer import STD, Transformer


class AntiCausalAggregator(nn.Module):
    """BDT's second transformer reads the target's states last to first: a code sees its own state and later ones."""

    def __init__(
        self, stack: int, observation: int, m: int, window: int, width: int, layers: int, heads: int, dropout: float
    ) -> None:
        super().__init__()
        self.embed = Linear(stack, observation, width)
        self.position = Embedding(stack, window, width, STD)
        self.transformer = Transformer(stack, width, layers, heads, dropout)
        self.code = Linear(stack, width, m)

    @shaped
    def forward(self, windows: Float[Tensor, "K B S obs"], count: int) -> Float[Tensor, "K B {count} m"]:
        """Codes of the first ``count`` steps of windows."""
        reversed_states = windows.flip(2)
        places = torch.arange(windows.shape[2], device=windows.device).expand(windows.shape[:3])
        hidden = self.transformer((self.embed(reversed_states) + self.position(places)).float())
        codes: Tensor = self.code(hidden[:, :, -count:].flip(2))
        return codes
