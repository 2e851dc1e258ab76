"""How far rollouts are from a target: exactly, as the paper bins it, and with the time charged that was not played."""

from __future__ import annotations

import numpy as np

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.divergences import wasserstein_bins, wasserstein_cells, wasserstein_samples
from himatch.statistics.bins import Bins
from himatch.types import Array


@shaped
def exact_w1(rows: Float[Array, "n d"], values: Float[Array, "m d"], grid: Bins, spread: Float[Array64, " d"]) -> float:
    """W1 between two samples: in one dimension exact and in feature units.

    In several dimensions it is exact between occupied cells of the grid, which goes as far as the values.
    A metre a second and a radian have no unit in common, so every feature is divided by its spread first: W1 is then in
    spreads.
    """
    if grid.dimensions == 1:
        return wasserstein_samples(rows, values)
    return wasserstein_cells(grid.cells(rows), grid.cells(values), grid.widths / spread)


@shaped
def binned_w1(rows: Float[Array, "n d"], values: Float[Array, "m d"], bins: Bins) -> float:
    """The paper's W1: on the bins of z, what lies outside in the end bins; joint in feature units."""
    if bins.dimensions == 1:
        return float(wasserstein_bins(bins.histogram(rows), bins.histogram(values), bins.widths)[0])
    return wasserstein_cells(bins.indices(rows), bins.indices(values), bins.widths)


def charged(w1: Array64, played: Array64, spread: Float[Array64, " d"]) -> Array64:
    """``p W1 + (1 - p) R``: of the time that was not played, every step is charged the whole range of the feature.

    R is the feature's spread, its 1 to 99 % range in training; of several features, which are measured in spreads, the
    diagonal of their box.
    """
    whole = float(spread[0]) if len(spread) == 1 else float(np.sqrt(len(spread)))
    return played * w1 + (1.0 - played) * whole
