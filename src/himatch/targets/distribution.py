"""Distributions of one feature that a person can write down: Gaussians, intervals, points and their mixtures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch._runtime.shapes import Array64, Float, Int, shaped
from himatch.errors import TargetError

Shape = Literal["normal", "uniform", "point"]
LARGEST = 1e30  # of a number in a distribution: what is drawn has to be one of single precision
PARAMETERS: dict[Shape, tuple[str, ...]] = {
    "normal": ("mean", "standard deviation"),
    "uniform": ("low", "high"),
    "point": ("value",),
}


@dataclass(frozen=True)
class Component:
    """One part of a mixture."""

    shape: Shape
    parameters: tuple[float, ...]

    def __post_init__(self) -> None:
        wanted = PARAMETERS[self.shape]
        if len(self.parameters) != len(wanted):
            raise TargetError(f"{self.shape} takes {len(wanted)} numbers ({', '.join(wanted)})")
        for place, value in enumerate(self.parameters):
            if not abs(value) <= LARGEST:
                raise TargetError(f"{number(value)} is too large for a distribution, {LARGEST:g} at most", place)
        if self.shape == "normal" and self.parameters[1] <= 0:
            raise TargetError(f"a standard deviation must be positive, got {number(self.parameters[1])}", 1)
        if self.shape == "uniform" and self.parameters[0] >= self.parameters[1]:
            raise TargetError("uniform(low, high) needs low below high", 1)

    def __str__(self) -> str:
        return f"{self.shape}({','.join(map(number, self.parameters))})"

    @shaped
    def sample(self, count: int, rng: np.random.Generator) -> Float[Array64, " {count}"]:
        """Draws."""
        first, second = self.parameters[0], self.parameters[-1]
        if self.shape == "normal":
            return rng.normal(first, second, size=count)
        if self.shape == "uniform":
            return rng.uniform(first, second, size=count)
        return np.full(count, first)

    @classmethod
    def fitted(cls, shape: Shape, values: Array64) -> Component:
        """The component of this shape with the mean and the deviation of some values."""
        mean, deviation = float(values.mean()), max(float(values.std()), 1e-6 * max(1.0, abs(float(values.mean()))))
        if shape == "normal":
            return cls(shape, (rounded(mean), rounded(deviation)))
        if shape == "uniform":
            half = 3**0.5 * deviation
            low, high = rounded(mean - half), rounded(mean + half)
            return cls(shape, (low, high) if low < high else (mean - half, mean + half))  # too narrow for few digits
        return cls(shape, (rounded(mean),))


@dataclass(frozen=True)
class Distribution:
    """A mixture of components; weights sum to one."""

    components: tuple[Component, ...]
    weights: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if len(self.components) != len(self.weights) or not self.components:
            raise TargetError("a mixture needs one weight per component")
        if min(self.weights) <= 0 or abs(sum(self.weights) - 1.0) > 1e-6:
            raise TargetError(f"the weights of a mixture must be positive and add up to 1, got {sum(self.weights):g}")

    def __str__(self) -> str:
        if len(self.components) == 1:
            return str(self.components[0])
        return "+".join(f"{number(w)}*{c}" for w, c in zip(self.weights, self.components, strict=True))

    @shaped
    def sample(self, count: int, rng: np.random.Generator) -> Float[Array64, " {count}"]:
        """Draws of every component in turn, as many as its weight says, in the listed order."""
        counts = apportion(self.weights, count)
        return np.concatenate([c.sample(int(n), rng) for c, n in zip(self.components, counts, strict=True)])

    def fitted(self, values: ArrayLike) -> Distribution:
        """The mixture of the same shapes and weights for some values.

        In one dimension the nearest way to move one distribution to another keeps the order of values, so every value
        belongs to the component whose draw has its rank.
        """
        reached = np.sort(np.asarray(values, dtype=np.float64))
        draws = self.sample(len(reached), np.random.default_rng(0))
        owner = np.repeat(np.arange(len(self.components)), apportion(self.weights, len(reached)))
        of_rank = owner[np.argsort(draws, kind="stable")]
        found = [
            Component.fitted(one.shape, reached[of_rank == n]) if (of_rank == n).any() else one
            for n, one in enumerate(self.components)
        ]
        return Distribution(tuple(found), self.weights)


@shaped
def apportion(weights: ArrayLike, total: int) -> Int[NDArray[np.int64], " n"]:
    """Whole numbers in proportion to the weights that add up to ``total`` (largest remainders)."""
    shares = np.asarray(weights, dtype=np.float64)
    exact = shares / shares.sum() * total
    counts: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    rest = total - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:rest]] += 1
    return counts


def number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def rounded(value: float) -> float:
    """Three digits, for numbers that are measured and then said."""
    return float(f"{value:.3g}")
