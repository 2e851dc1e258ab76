"""Which windows a training step samples: random choices for a chunk of steps, made before it.

They depend on (seed, chunk) alone, so any step can be resumed, and a model's do not depend on what it is stacked with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from himatch.methods.batch import BatchSpec
from himatch.methods.hindsight import Hindsight

Sampling = Literal["windows", "episodes"]
CHUNK = 256
"""Steps whose random draws are made together."""


class Windows(NamedTuple):
    """Where windows lie: their episodes, and the time of their first steps."""

    episode: NDArray[np.int64]
    time: NDArray[np.int64]


@dataclass(frozen=True)
class WindowIndex:
    """Every window of a dataset, by number, episode after episode: arithmetic on episodes, nothing for each step.

    Episodes of at least N steps give all windows that lie inside them; a shorter one gives the single window that
    starts it. Drawing windows evenly therefore draws episodes by length. Windows ``first[e]`` to ``first[e + 1]`` are
    those of episode e, ``(E + 1,)``; it has rows ``start[e]`` to ``start[e] + last[e]``, ``(E,)``.
    """

    first: NDArray[np.int64]
    start: NDArray[np.int64]
    last: NDArray[np.int64]
    short: bool

    @classmethod
    def of(cls, lengths: NDArray[np.int64], context: int, followed: NDArray[np.bool_] | None = None) -> WindowIndex:
        """Index the windows of packed episodes.

        Where ``followed`` (E,) is False nobody knows what came after an episode's last step, and the window that
        begins there is left out.
        """
        counts = np.maximum(lengths - context + 1, 1)
        if followed is not None:
            counts -= (counts == lengths) & ~followed
        first, starts = np.append(0, np.cumsum(counts)), np.cumsum(lengths) - lengths
        return cls(first, starts, lengths - 1, bool((lengths < context).any()))

    def __len__(self) -> int:
        return int(self.first[-1])

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], sampling: Sampling) -> NDArray[np.int64]:
        """Numbers of random windows: any, so that episodes come by length, or any of any episode."""
        if sampling == "windows":
            return rng.integers(len(self), size=shape)
        counts = np.diff(self.first)
        episode = rng.choice(np.flatnonzero(counts), size=shape)
        window: NDArray[np.int64] = self.first[episode] + rng.integers(counts[episode])
        return window

    def locate(self, window: NDArray[np.int64]) -> Windows:
        """Where the windows of these numbers lie."""
        episode = np.searchsorted(self.first, window, side="right") - 1
        return Windows(episode, window - self.first[episode])


class Draws(NamedTuple):
    """Random choices for a chunk of steps, for K models: window numbers and look-aheads, (steps, K, B), and noise.

    ``ahead`` is a look-ahead, or selects a later step to relabel with, or for methods of tasks an episode
    (``DeviceSampler.gather``). ``noise`` is (steps, K, B, n), standard normal, where a method needs some.
    """

    window: NDArray[np.int64]
    ahead: NDArray[np.int64]
    noise: NDArray[np.float32] | None = None


def draw(
    seeds: tuple[int, ...],
    chunk: int,
    index: WindowIndex,
    batch: int,
    look_ahead: int,
    noise: int = 0,
    sampling: Sampling = "windows",
    hindsight: Hindsight | None = None,
) -> Draws:
    """The draws of one chunk, window by window."""
    spec = BatchSpec(1, look_ahead=look_ahead, hindsight=hindsight)
    chosen, ahead, random = [], [], []
    for seed in seeds:
        rng = np.random.default_rng([seed, chunk])
        chosen.append(index.draw(rng, (CHUNK, batch), sampling))
        ahead.append(spec.draw_ahead(rng, (CHUNK, batch)))
        if noise:
            random.append(rng.standard_normal((CHUNK, batch, noise), dtype=np.float32))
    stacked = np.stack(random, axis=1) if noise else None
    return Draws(np.stack(chosen, axis=1), np.stack(ahead, axis=1), stacked)


class Tasks:
    """Which episodes belong together: those of one label; an episode without one is a task of its own.

    ``number`` (E,) is the task of every episode. ``episodes`` (E,) are all of them task by task; those of episode e's
    task are the ``count[e]`` from place ``first[e]`` on.
    """

    def __init__(self, labels: Sequence[str | None]) -> None:
        known = {label: i for i, label in enumerate(dict.fromkeys(label for label in labels if label is not None))}
        own = iter(range(len(known), len(known) + len(labels)))
        self.number = np.array([next(own) if label is None else known[label] for label in labels], dtype=np.int64)
        self.episodes = np.argsort(self.number, kind="stable")
        sizes = np.bincount(self.number)
        self.count, self.first = sizes[self.number], (np.cumsum(sizes) - sizes)[self.number]

    def __len__(self) -> int:
        return int(self.number.max()) + 1


class TaskDraws:
    """Draws for a metric between tasks: contexts of some windows of one task each, two for every task drawn."""

    def __init__(self, tasks: Tasks, index: WindowIndex, context_steps: int) -> None:
        self.context_steps = context_steps
        counts = np.diff(index.first)[tasks.episodes]  # windows of every episode, task by task
        self.ends, self.shifts = np.cumsum(counts), index.first[tasks.episodes] - (np.cumsum(counts) - counts)
        sizes = np.zeros(len(tasks), dtype=np.int64)
        np.add.at(sizes, tasks.number, np.diff(index.first))
        first = np.cumsum(sizes) - sizes
        self.first, self.sizes = first[sizes > 0], sizes[sizes > 0]

    def __call__(self, seeds: tuple[int, ...], chunk: int, batch: int) -> Draws:
        """The draws of one chunk; a context's windows stand in a row, and a task's two contexts beside one another."""
        pairs = batch // (2 * self.context_steps)
        chosen = []
        for seed in seeds:
            rng = np.random.default_rng([seed, chunk])
            task = np.repeat(rng.integers(len(self.sizes), size=(CHUNK, pairs)), 2 * self.context_steps, axis=1)
            place = (rng.random(task.shape) * self.sizes[task]).astype(np.int64)
            chosen.append(self._window(self.first[task] + place))
        window = np.stack(chosen, axis=1)
        return Draws(window, np.zeros_like(window))

    def _window(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the window at a place among all windows, task by task."""
        shift: NDArray[np.int64] = self.shifts[np.searchsorted(self.ends, place, side="right")]
        return place + shift
