"""DT-X's encoder of states, and what trains it without actions: reconstruction (DT-AE) or contrast (DT-CPC)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Bool, Float, Int, shaped
from himatch.networks.stacked import MLP, Linear

NOISE = 0.1  # standard deviation of the perturbation that makes CPC's positives
MOMENTUM = 0.95  # of CPC's key encoder


class SummedEncoder(nn.Module):
    """An encoder of single states, whose outputs are summed over states of the target and divided by ``window``.

    The mean over a window instead of the sum keeps the code's size independent of it; a linear embedding follows
    anyway.
    """

    def __init__(self, stack: int, observation: int, m: int, window: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.window, self.sizes = window, (observation, *hidden, m)
        self.encoder = MLP(stack, self.sizes)

    @shaped
    def forward(
        self,
        windows: Float[Tensor, "K B S obs"],
        times: Int[Tensor, "K B S"],
        count: int,
        seen: Bool[Tensor, "K B S"] | None = None,
    ) -> Float[Tensor, "K B {count} m"]:
        """The last ``count`` codes in the order of reading, last to first: the very last sums the whole window.

        A mask says which states can be ``seen``.
        """
        features = self.encoder(windows).float()
        if seen is not None:
            features = features * seen.unsqueeze(-1)
        sums = nn.functional.pad(torch.cumsum(features, dim=2), (0, 0, 1, 0))
        return ((sums[:, :, -1:] - sums[:, :, :count]) / self.window).flip(2)

    def unsupervised_loss(self, states: Float[Tensor, "K B obs"]) -> Float[Tensor, " K"]:
        """What trains the encoder without actions."""
        raise TypeError("this encoder has no loss of its own")

    def prepare(self) -> None:
        """What follows once all weights are drawn."""

    @torch.no_grad()
    def after_step(self) -> None:
        """What follows an optimiser step."""


class Autoencoder(SummedEncoder):
    """Trained to reconstruct states."""

    def __init__(self, stack: int, observation: int, m: int, window: int, hidden: tuple[int, ...]) -> None:
        super().__init__(stack, observation, m, window, hidden)
        self.decoder = MLP(stack, self.sizes[::-1])

    @shaped
    def unsupervised_loss(self, states: Float[Tensor, "K B obs"]) -> Float[Tensor, " K"]:
        """Mean squared error of the reconstruction."""
        error: Tensor = self.decoder(self.encoder(states)).float() - states
        return error.square().mean((1, 2))


class ContrastiveEncoder(SummedEncoder):
    """Trained to tell a perturbed state from the other states of the batch, with a momentum encoder for keys (CURL)."""

    def __init__(self, stack: int, observation: int, m: int, window: int, hidden: tuple[int, ...]) -> None:
        super().__init__(stack, observation, m, window, hidden)
        self.bilinear = Linear(stack, m, m)
        self.key_encoder = MLP(stack, self.sizes)
        self.key_encoder.requires_grad_(False)

    @shaped
    def unsupervised_loss(self, states: Float[Tensor, "K B obs"]) -> Float[Tensor, " K"]:
        """InfoNCE: the perturbed same state against the other states of the batch."""
        query: Tensor = self.bilinear(self.encoder(states)).float()
        key: Tensor = self.key_encoder(states + NOISE * torch.randn_like(states)).float()
        logits = query @ key.transpose(1, 2)
        return torch.logsumexp(logits, dim=2).mean(1) - logits.diagonal(dim1=1, dim2=2).mean(1)

    def prepare(self) -> None:
        """The key encoder begins as the encoder."""
        self.key_encoder.load_state_dict(self.encoder.state_dict())

    @torch.no_grad()
    def after_step(self) -> None:
        """The key encoder follows the encoder."""
        for slow, fast in zip(self.key_encoder.parameters(), self.encoder.parameters(), strict=True):
            slow.lerp_(fast.to(slow.dtype), 1.0 - MOMENTUM)
