"""Bounds of a feature: ``height > 1.1``. They condition nothing; rollouts are scored on them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64, Bool, Float, shaped
from himatch.errors import TargetError
from himatch.targets.distribution import number
from himatch.types import Array

FEATURE = re.compile(r"[^\W\d]\w*(\[\d+\])?")
"""How a feature is called in a target; one of any other name stands in quotation marks."""


@dataclass(frozen=True)
class Bound:
    """The range that a feature is to stay in; a feature of several numbers with each of them.

    ``open`` says of either end whether it lies outside itself, as in ``low < x <= high``.
    """

    feature: str
    low: float = -np.inf
    high: float = np.inf
    open: tuple[bool, bool] = (True, True)

    def __post_init__(self) -> None:
        if np.isinf(self.low) and np.isinf(self.high):
            raise TargetError(f"a bound of {self.feature} needs a number")
        if not self.low < self.high and (self.low != self.high or any(self.open)):
            raise TargetError(f"no {self.feature} lies between {number(self.low)} and {number(self.high)}")

    def __str__(self) -> str:
        name, (low, high) = quoted(self.feature), ("<" if end else "<=" for end in self.open)
        if np.isinf(self.high):
            return f"{name} {low.replace('<', '>')} {number(self.low)}"
        below = f"{name} {high} {number(self.high)}"
        return below if np.isinf(self.low) else f"{number(self.low)} {low} {below}"

    @shaped
    def holds(self, phi: Float[Array, "n d"]) -> Bool[NDArray[np.bool_], " n"]:
        """Whether every row lies in the range."""
        low, high = np.float32(self.low), np.float32(self.high)  # 1.1 is the nearest number to it that phi can be
        above = phi > low if self.open[0] else phi >= low
        below = phi < high if self.open[1] else phi <= high
        return np.asarray((above & below).all(axis=1))

    @shaped
    def violation(self, phi: Float[Array, "n d"]) -> Float[Array64, " n"]:
        """How far every row lies from the range; their mean is W1 to the nearest distribution inside it."""
        beyond = np.maximum(np.maximum(np.float32(self.low) - phi, phi - np.float32(self.high)), 0.0)
        found: Array64 = np.linalg.norm(beyond.astype(np.float64), axis=1)
        return found


def quoted(feature: str) -> str:
    """A feature's name as it stands in a target."""
    return feature if FEATURE.fullmatch(feature) else f"'{feature}'"
