"""Learned statistics: networks that turn a window of target states into a code (BDT, DT-AE, DT-CPC, DT-E2E)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from himatch.networks.stacked import MLP, Embedding, Linear
from himatch.networks.transformer import STD, Transformer

Unsupervised = Literal["ae", "cpc"]

NOISE = 0.1  # standard deviation of the perturbation that makes CPC's positives
MOMENTUM = 0.95  # of CPC's key encoder


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

    def forward(self, windows: Tensor, count: int) -> Tensor:
        """Codes of the first ``count`` steps of ``(K, B, S, obs)`` windows, ``(K, B, count, m)``."""
        reversed_states = windows.flip(2)
        places = torch.arange(windows.shape[2], device=windows.device).expand(windows.shape[:3])
        hidden = self.transformer((self.embed(reversed_states) + self.position(places)).float())
        codes: Tensor = self.code(hidden[:, :, -count:].flip(2))
        return codes


class SummedEncoder(nn.Module):
    """DT-X: an encoder of single states, whose outputs are averaged over a window of the target."""

    def __init__(
        self,
        stack: int,
        observation: int,
        m: int,
        window: int,
        hidden: tuple[int, ...],
        unsupervised: Unsupervised | None,
    ) -> None:
        super().__init__()
        self.window, self.unsupervised = window, unsupervised
        widths = (observation, *hidden, m)
        self.encoder = MLP(stack, widths)
        if unsupervised == "ae":
            self.decoder = MLP(stack, widths[::-1])
        elif unsupervised == "cpc":
            self.bilinear = Linear(stack, m, m)
            self.key_encoder = MLP(stack, widths)
            self.key_encoder.requires_grad_(False)

    def forward(self, windows: Tensor, count: int) -> Tensor:
        """Codes of the first ``count`` steps of ``(K, B, S, obs)``: means over the next ``window`` states.

        The mean instead of the sum keeps the code's size independent of the window; a linear embedding follows anyway.
        """
        features = self.encoder(windows).float()
        sums = torch.cumsum(features, dim=2)
        sums = nn.functional.pad(sums, (0, 0, 1, 0))
        return (sums[:, :, self.window : self.window + count] - sums[:, :, :count]) / self.window

    def unsupervised_loss(self, states: Tensor) -> Tensor:
        """What trains the encoder without actions, ``(K,)``, from ``(K, B, obs)`` states."""
        if self.unsupervised == "ae":
            error: Tensor = self.decoder(self.encoder(states)).float() - states
            return error.square().mean((1, 2))
        query: Tensor = self.bilinear(self.encoder(states)).float()
        key: Tensor = self.key_encoder(states + NOISE * torch.randn_like(states)).float()
        # CURL's InfoNCE: the perturbed same state against the other states of the batch.
        logits = query @ key.transpose(1, 2)
        return torch.logsumexp(logits, dim=2).mean(1) - logits.diagonal(dim1=1, dim2=2).mean(1)

    @torch.no_grad()
    def follow(self) -> None:
        """Move CPC's key encoder towards the encoder; a no-op for the others."""
        if self.unsupervised == "cpc":
            for slow, fast in zip(self.key_encoder.parameters(), self.encoder.parameters(), strict=True):
                slow.lerp_(fast.to(slow.dtype), 1.0 - MOMENTUM)
