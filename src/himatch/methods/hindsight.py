"""Hindsight relabelling: which later step of its episode a window is conditioned on, and the z that makes of it.

The step is drawn when a window is cut, and nothing is stored of it. What a random number means is said here once, for
samplers that gather on a device and for those that gather where the data lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from himatch.errors import HimatchError
from himatch.statistics.aggregators import FinalValue, Stretchwise, TimedValue

Relabelling = Literal["final", "uniform", "geometric", "random"]
RELABELLINGS: tuple[Relabelling, ...] = get_args(Relabelling)
ANY_STEP = 2**62  # more than there are steps of episodes times steps of data, and 64 bits can add to it
Rows = TypeVar("Rows", NDArray[np.int64], Tensor)


class Later(NamedTuple):
    """Rows of the data that a window is relabelled with: the value's, the time's, and whether these exist."""

    value: Any
    time: Any
    inside: Any


@dataclass(frozen=True)
class Hindsight:
    """How windows are relabelled with a later step f of their episode, after the last step t of the window.

    ``uniform``: f is any step after t. ``geometric``: t plus a geometric number of steps, on average
    1 / (1 - ``gamma``), but no later than the end. ``random``: the value is that of any step of the data, and the time
    left that of a uniform f. (``final`` is the last step: z is then known before training, and needs no relabelling.)
    Of sums, which have the step itself in them, f may be t.
    """

    relabel: Relabelling
    of: type[Stretchwise]
    gamma: float = 0.99

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Random numbers that say which steps."""
        if self.relabel == "geometric":
            return rng.geometric(1.0 - self.gamma, size=shape) - 1
        return rng.integers(ANY_STEP, size=shape)

    def later(self, now: Rows, last: Rows, start: Rows, ahead: Rows, steps: int) -> Later:
        """What the windows that end at times ``now`` are relabelled with.

        Their episodes begin at rows ``start`` and end at times ``last``; the data has ``steps`` rows.
        """
        stop = last + self.of.beyond
        if self.relabel == "geometric":
            time = now + 1 + ahead
        elif self.relabel == "random":
            time = now + 1 + (ahead // steps) % (stop - now).clip(min=1)
        else:
            time = now + 1 + ahead % (stop - now).clip(min=1)
        time = time.clip(max=stop)
        row = start + time.clip(max=last)
        value = ahead % steps if self.relabel == "random" else row
        return Later(value, row, time <= last)

    def z(self, kept: Any, rows: Rows, later: Later, signs: tuple[Any, Any]) -> Any:
        """Z of the steps ``rows``, ``(K, B, N)`` to ``(K, B, N, k)``, from what is kept of every step of the data.

        ``signs`` are the aggregator's, ``(k,)`` each, as tensors or as arrays.
        """
        here, there = signs
        found = kept[later.time] * later.inside[..., None]
        if self.relabel == "random":  # what depends on both steps is the time between them
            found = found * (here != 0) + kept[later.value] * (here == 0)
        return kept[rows] * here + (found * there)[..., None, :]


def check_relabelling(relabel: str, gamma: float) -> None:
    """Refuse another word, and a discount that gives no geometric distribution."""
    if relabel not in RELABELLINGS:
        raise HimatchError(f"relabel is {', '.join(RELABELLINGS[:-1])} or {RELABELLINGS[-1]}, got {relabel!r}")
    if not 0.0 <= gamma < 1.0:
        raise HimatchError(f"the gamma of geometric relabelling must be at least 0 and below 1, got {gamma}")


def goal_hindsight(relabel: Relabelling, gamma: float, *, timed: bool) -> Hindsight | None:
    """How windows are relabelled with goals; not at all where these are last values, which are known before."""
    return None if relabel == "final" else Hindsight(relabel, TimedValue if timed else FinalValue, gamma)
