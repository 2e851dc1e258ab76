"""Episodes played for a dataset: their seeds, and a bar that shows how far they are."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch._runtime.progress import progress_bar
from himatch.errors import DataError
from himatch.simulation import EVALUATION_SEED, Behaviour, Simulator, record
from himatch.types import Trajectory

FIRST_SEED = 2**30
SEEDS = EVALUATION_SEED - FIRST_SEED  # no rollout starts where an episode of its data did

SLOTS = 128  # simulations at once: enough to keep the threads busy, few enough to start the last episodes early


def reset_seeds(seed: int, part: int, episodes: int) -> list[int]:
    """Seeds of a part's initial states."""
    if seed < 0:
        raise DataError(f"the seed must be 0 or more, got {seed}")
    states = (np.random.SeedSequence((seed, part, i)).generate_state(1)[0] for i in range(episodes))
    return [FIRST_SEED + int(state) % SEEDS for state in states]


def even_slots(episodes: int, most: int = SLOTS) -> int:
    """Simulations at once, so that episodes of equal length need the fewest rounds and the last one is full."""
    return math.ceil(episodes / math.ceil(episodes / most))


class Meter:
    """How far a recording is, in steps; an episode that ends early counts as if it had gone on to the horizon."""

    def __init__(self, show: Callable[..., None]) -> None:
        self._show = show
        self._begun, self._steps, self._behind = time.perf_counter(), 0, 0

    def play(
        self, simulator: Simulator, behaviour: Behaviour, seeds: Sequence[int], label: str | None
    ) -> list[Trajectory]:
        """Record one episode for each seed."""
        horizon = simulator.task.horizon

        def watched(
            observations: NDArray[np.float64], episodes: NDArray[np.int64], steps: NDArray[np.int64]
        ) -> ArrayLike:
            playing = episodes >= 0
            self._steps += int(playing.sum())
            self._update(self._behind + int(steps[playing].sum()))
            return behaviour(observations, episodes, steps)

        def finished(count: int) -> None:
            self._behind += count * horizon
            self._update(self._behind)

        return record(simulator, watched, seeds, labels=label, progress=finished)

    def _update(self, done: int) -> None:
        self._show(done, self._steps / max(time.perf_counter() - self._begun, 1e-9))


@contextmanager
def metered(title: str, steps: int, *, quiet: bool = False) -> Iterator[Meter]:
    """A bar over at most so many steps, where somebody watches."""
    with progress_bar(title, steps, quiet=quiet or not sys.stderr.isatty()) as show:
        yield Meter(show)
