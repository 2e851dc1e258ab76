"""What a rollout was conditioned on over time: mean and quantiles of the histogram at every step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from himatch._runtime.shapes import Array64, Float, Int, shaped
from himatch.methods.normalizers import Normalizers
from himatch.rollout import Player
from himatch.statistics.bins import Bins

TAILS = (0.1, 0.9)


class Recorder:
    """Keeps the z of a few rollouts of the first seed while they are played, where they lie: nothing waits for it."""

    def __init__(self, player: Player, rollouts: Sequence[int]) -> None:
        self.player, self.rows = player, torch.tensor(rollouts, device=player.device)
        self._steps: list[Tensor] = []

    def step(self) -> None:
        """Remember what the policy is conditioned on at this step."""
        z = self.player.latest_z
        if z is not None:
            self._steps.append(z[0].index_select(0, self.rows))

    def of(self, number: int, steps: int, normalizers: Normalizers, bins: Bins) -> Float[Array64, "T 3 d"] | None:
        """The summary of one of the rollouts, over its steps."""
        if not self._steps:
            return None
        z = torch.stack([rows[number] for rows in self._steps[:steps]])
        times = torch.arange(len(z), device=z.device)
        clipped = z if normalizers.support is None else normalizers.support(z, times)  # as the network saw it
        return summary(clipped.cpu().numpy().astype(np.float64), bins)


@shaped
def summary(z: Float[Array64, "T k"], bins: Bins) -> Float[Array64, "T 3 d"]:
    """Mean and quantiles of histograms side by side, one for each feature, in feature units."""
    shares = np.maximum(z.reshape(len(z), bins.dimensions, bins.count), 0.0)  # clipping leaves the simplex slightly
    shares /= np.maximum(shares.sum(axis=2, keepdims=True), 1e-12)
    below = shares.cumsum(axis=2)
    centers = bins.centers
    places: list[Int[np.ndarray, "T d"]] = [(below >= tail - 1e-9).argmax(axis=2) for tail in TAILS]
    quantiles = [np.take_along_axis(centers[None], place[..., None], axis=2)[..., 0] for place in places]
    found: Array64 = np.stack([(shares * centers).sum(axis=2), *quantiles], axis=1)
    return found
