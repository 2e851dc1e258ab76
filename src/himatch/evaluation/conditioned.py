"""What a rollout was conditioned on over time: mean and quantiles of a histogram, a goal, or the return-to-go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from himatch._runtime.shapes import Array64, Float, Int, shaped
from himatch.methods.normalizers import Normalizers
from himatch.rollout import Player
from himatch.statistics.aggregators import DiscountedSum, FinalValue, Histogram
from himatch.statistics.bins import Bins
from himatch.statistics.information import InformationStatistic, Statistic

TAILS = (0.1, 0.9)


class Conditioned(NamedTuple):
    """What a rollout was conditioned on, as far as it can be drawn beside the feature.

    ``rest`` is mean, 10 and 90 % quantile of what the rest of the episode is to be; ``to_go`` what it is to earn.
    """

    rest: Float[Array64, "T 3 d"] | None = None
    to_go: Float[Array64, "T d"] | None = None


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

    def of(self, number: int, steps: int, normalizers: Normalizers, statistic: Statistic) -> Conditioned:
        """That of one of the rollouts, over its steps."""
        if not self._steps or not isinstance(statistic, InformationStatistic):
            return Conditioned()
        z = torch.stack([rows[number] for rows in self._steps[:steps]])
        times = torch.arange(len(z), device=z.device)
        clipped = z if normalizers.support is None else normalizers.support(z, times)  # as the network saw it
        seen = clipped.cpu().numpy().astype(np.float64)
        match statistic.aggregator:
            case Histogram(bins=bins):
                return Conditioned(summary(seen, bins))
            case FinalValue():
                return Conditioned(np.repeat(seen[:, None], 3, axis=1))
            case DiscountedSum(scale=scale):
                return Conditioned(to_go=seen * scale)
        return Conditioned()


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
