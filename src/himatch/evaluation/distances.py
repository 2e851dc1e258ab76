"""How far rollouts are from a target: exactly, as the paper bins it, and with the time charged that was not played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.divergences import wasserstein_bins, wasserstein_cells, wasserstein_samples
from himatch.statistics.bins import Bins
from himatch.targets import Frame, Target
from himatch.types import Array


class Stretch(NamedTuple):
    """Values, and the steps of a rollout that are compared with them."""

    values: Array
    steps: slice


def stretches_of(target: Target, frame: Frame) -> list[Stretch]:
    """What targets one after another ask for, each in its own steps; of a single one in all that are played."""
    parts = target.stretches(frame)
    if len(parts) == 1:
        return [Stretch(parts[0].compared(frame), slice(None))]
    ends = np.cumsum([len(part.values(frame)) for part in parts]).tolist()
    places = zip([0, *ends], ends, strict=False)
    return [Stretch(part.compared(frame), slice(*place)) for part, place in zip(parts, places, strict=True)]


def in_order(
    played: Sequence[Float[Array, "_ d"]], stretches: Sequence[Stretch], distance: Callable[[Array, Array], float]
) -> float:
    """How far rollouts together are from each stretch in its own steps, on average over the steps that were played."""
    found, counts = [], []
    for stretch in stretches:
        rows = np.concatenate([phi[stretch.steps] for phi in played])
        if len(rows):
            found.append(distance(rows, stretch.values))
            counts.append(len(rows))
    return float(np.average(found, weights=counts))


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


def charged(distance: Array64, played: Array64, whole: float) -> Array64:
    """``p D + (1 - p) R``: of the time that was not played, every step is charged R, the whole range of the feature."""
    return played * distance + (1.0 - played) * whole


def whole_range(spread: Float[Array64, " d"], *, in_spreads: bool) -> float:
    """R: the feature's spread, its 1 to 99 % range in training; of several features the diagonal of their box.

    W1 of several features is measured in spreads, and so is the box; a goal is as far as its features say.
    """
    return float(np.sqrt(len(spread))) if in_spreads and len(spread) > 1 else float(np.linalg.norm(spread))
