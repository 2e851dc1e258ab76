"""The first moments: a short summary of a distribution that needs no bins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.errors import HimatchError
from himatch.statistics.aggregators.aggregator import check_gamma, discounted_by, discounted_counts, discounted_sums
from himatch.types import Array


@dataclass(frozen=True)
class Moments:
    """Mean, standard deviation and, up to ``order`` 4, signed roots of the third and fourth central moments.

    All are in feature units: ``sign(m_p) |m_p|^(1/p)``. Columns: all means, then all deviations, and so on.
    ``center`` is subtracted before powers are taken, for precision only.
    """

    kind: ClassVar[str] = "moments"
    order: int = 2
    gamma: float = 1.0
    center: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        if not 1 <= self.order <= 4:
            raise HimatchError(f"moments are computed up to order 1, 2, 3 or 4, got {self.order}")
        object.__setattr__(self, "center", tuple(self.center))

    def fit(self, features: Iterable[Array]) -> Moments:
        """Take the training mean as centre."""
        total, steps = np.float64(0.0), 0
        for phi in features:
            total = total + phi.sum(axis=0, dtype=np.float64)
            steps += len(phi)
        if steps == 0:
            raise HimatchError("moments cannot be fitted to an empty dataset")
        return Moments(self.order, self.gamma, tuple(float(x) for x in np.atleast_1d(total / steps)))

    def width(self, dimensions: int) -> int:
        """One number per feature and order."""
        return dimensions * self.order

    @shaped
    def __call__(self, phi: Float[Array, "T d"]) -> Float[Array, "T d*{self.order}"]:
        """Moments of the rest."""
        totals = discounted_sums(self.contributions(phi), self.gamma)
        return self.of_total(totals, discounted_counts(len(phi), self.gamma)).astype(np.float32)

    def meaning(self, feature: str) -> str:
        """In words."""
        what = ("mean", "standard deviation", "third", "fourth central moment, as signed roots")
        return f"{', '.join(what[: self.order])} of {feature} over the rest of the episode{discounted_by(self.gamma)}"

    @shaped
    def contributions(self, phi: Float[NDArray[np.floating], "T d"]) -> Float[Array64, "T d*{self.order}"]:
        """Powers of the centred feature."""
        x = phi.astype(np.float64) - self._center
        return np.concatenate([x**p for p in range(1, self.order + 1)], axis=1)

    @shaped
    def of_total(self, total: Float[Array64, "*rows k"], steps: Float[Array64, "*rows 1"]) -> Float[Array64, "*rows k"]:
        """Moments from mean powers; what no steps can have, such as a negative variance, becomes zero."""
        raw = np.split(total / np.where(steps > 0, steps, np.nan), self.order, axis=-1)
        mean = raw[0]
        columns = [mean + self._center]
        if self.order >= 2:
            variance = np.maximum(raw[1] - mean**2, 0.0)
            columns.append(np.sqrt(variance))
        if self.order >= 3:
            columns.append(np.cbrt(raw[2] - 3 * mean * raw[1] + 2 * mean**3))
        if self.order >= 4:
            fourth = raw[3] - 4 * mean * raw[2] + 6 * mean**2 * raw[1] - 3 * mean**4
            columns.append(np.maximum(fourth, 0.0) ** 0.25)
        return np.concatenate(columns, axis=-1)

    @property
    def _center(self) -> NDArray[np.float64]:
        return np.array(self.center or 0.0)
