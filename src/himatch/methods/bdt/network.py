"""BDT's second transformer, by places in its window or, as in the authors' code, by time steps."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Bool, Float, Int, shaped
from himatch.networks.stacked import Embedding, LayerNorm, Linear
from himatch.networks.transformer import STD, Transformer


class AntiCausalAggregator(nn.Module):
    """BDT's second transformer reads target states last to first: a code has seen a state and those after it.

    Of ``positions`` there is an embedding each, of deviation ``std`` at first: of the places in its window, the last
    state's first.
    """

    def __init__(
        self,
        stack: int,
        observation: int,
        m: int,
        positions: int,
        width: int,
        layers: int,
        heads: int,
        dropout: float,
        std: float = STD,
    ) -> None:
        super().__init__()
        self.embed = Linear(stack, observation, width)
        self.position = Embedding(stack, positions, width, std)
        self.transformer = Transformer(stack, width, layers, heads, dropout)
        self.code = Linear(stack, width, m)

    @shaped
    def forward(
        self,
        windows: Float[Tensor, "K B S obs"],
        times: Int[Tensor, "K B S"],
        count: int,
        seen: Bool[Tensor, "K B S"] | None = None,
    ) -> Float[Tensor, "K B {count} m"]:
        """The last ``count`` codes in the order of reading: the very last has seen the whole window.

        A mask says which states can be ``seen``.
        """
        tokens = self.tokens(windows.flip(2), times.flip(2))
        hidden = self.transformer(tokens.float(), None if seen is None else seen.flip(2))
        codes: Tensor = self.code(hidden[:, :, -count:])
        return codes

    def tokens(self, states: Tensor, times: Tensor) -> Tensor:
        """What the transformer reads, in that order."""
        places = torch.arange(states.shape[2], device=states.device).expand(states.shape[:3])
        embedded: Tensor = self.embed(states) + self.position(places)
        return embedded


class TimedAggregator(AntiCausalAggregator):
    """As in the authors' code: positions are time steps, and a LayerNorm comes before the transformer."""

    def __init__(
        self,
        stack: int,
        observation: int,
        m: int,
        positions: int,
        width: int,
        layers: int,
        heads: int,
        dropout: float,
        std: float = STD,
    ) -> None:
        super().__init__(stack, observation, m, positions, width, layers, heads, dropout, std)
        self.embed_norm = LayerNorm(stack, width)

    def tokens(self, states: Tensor, times: Tensor) -> Tensor:
        """What the transformer reads, in that order; times past the horizon are its last."""
        last = self.position.weight.shape[1] - 1
        embedded: Tensor = self.embed_norm((self.embed(states) + self.position(times.clamp(max=last))).float())
        return embedded
