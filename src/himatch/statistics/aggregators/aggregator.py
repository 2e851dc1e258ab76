"""Anti-causal aggregators: the statistic of the rest of the trajectory, at every step.

An aggregator maps features ``(T, d)`` to ``(T, k)``; row t depends on rows t, t + 1, ... only, and the last row is the
statistic of the last step alone. A new one is a frozen dataclass in a file of its own, exported from this package; the
shared contract tests pick it up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.errors import HimatchError
from himatch.types import Array


class Aggregator(Protocol):
    """A fixed aggregator. Its fields are plain numbers and travel with the weights as they are."""

    kind: ClassVar[str]

    def fit(self, features: Iterable[Array]) -> Self:
        """The same aggregator with what it must learn from training data (bin ranges, a centre) filled in."""

    def width(self, dimensions: int) -> int:
        """How many numbers the statistic of ``dimensions`` features has (k)."""

    def __call__(self, phi: Float[Array, "T d"]) -> Float[Array, "T k"]:
        """Features to statistics."""


@runtime_checkable
class Additive(Aggregator, Protocol):
    """An aggregator whose statistic follows from a total to which every step adds its part.

    ``remaining`` conditioning is for these: it takes what was achieved from the target's total. Others need not be.
    """

    def contributions(self, phi: Float[NDArray[np.floating], "T d"]) -> Float[Array64, "T j"]:
        """What each step adds to the total."""

    def of_total(self, total: Float[Array64, "*rows j"], steps: Float[Array64, "*rows 1"]) -> Float[Array64, "*rows k"]:
        """The statistic of so many steps with that total.

        A total that remains may be one that no steps have. NaN says that nothing remains.
        """


Signs = tuple[NDArray[np.float32], NDArray[np.float32]]


@runtime_checkable
class Stretchwise(Aggregator, Protocol):
    """An aggregator of any stretch of an episode, from a step i to a later one f, not of the whole rest alone.

    What is ``kept`` of every step is as wide as the statistic, and that of a stretch is linear in it: ``a * kept_i +
    b * kept_g``, ``a, b = signs(k)``, where g = f + ``beyond``, and what is kept of a step past the end is zero. So a
    sampler can relabel windows with any later step, and stores nothing else. For f the last step it is ``z_i``.
    """

    beyond: ClassVar[int]

    def kept(self, phi: Float[Array, "T d"]) -> Float[Array, "T k"]:
        """What a sampler keeps of every step; of each episode by itself."""

    @staticmethod
    def signs(width: int) -> Signs:
        """What both steps are multiplied by, ``(k,)`` each."""


@runtime_checkable
class Tasked(Aggregator, Protocol):
    """An aggregator whose statistic says which task the rest serves, so that a target may name one."""

    def of_task(self, parameter: Float[Array, " d"]) -> Float[Array, " k"]:
        """The statistic of what serves the task with that parameter."""


def check_gamma(gamma: float) -> None:
    """Refuse a discount outside (0, 1]."""
    if not 0.0 < gamma <= 1.0:
        raise HimatchError(f"the discount gamma must be above 0 and at most 1, got {gamma}")


def discounted_by(gamma: float) -> str:
    """The discount in words."""
    return "" if gamma == 1.0 else f" discounted by {gamma:g}"


@shaped
def discounted_sums(values: Float[NDArray[np.floating], "T k"], gamma: float) -> Float[Array64, "T k"]:
    """``y_t = x_t + gamma y_{t+1}`` down the rows, in double precision."""
    backwards = np.asarray(values, dtype=np.float64)[::-1]
    if gamma == 1.0:
        return np.cumsum(backwards, axis=0)[::-1]
    from scipy.signal import lfilter  # a second to import, and only discounts need it

    return np.asarray(lfilter([1.0], [1.0, -gamma], backwards, axis=0), dtype=np.float64)[::-1]


@shaped
def discounted_counts(steps: int, gamma: float) -> Float[Array64, "{steps} 1"]:
    """Total weight of the rest at every step: what turns a discounted sum into a mean."""
    remaining = np.arange(steps, 0, -1, dtype=np.float64)[:, None]
    return remaining if gamma == 1.0 else -np.expm1(remaining * np.log(gamma)) / (1.0 - gamma)
