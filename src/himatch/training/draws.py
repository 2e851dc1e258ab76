"""Which windows a training step samples: random choices for a chunk of steps, made before it.

They depend on (seed, chunk) alone, so any step can be resumed, and a model's do not depend on what it is stacked with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CHUNK = 256
"""Steps whose random draws are made together."""


@dataclass(frozen=True)
class WindowIndex:
    """Every window of a dataset: its first row, the time of that row in its episode, and the episode's last row, (M,).

    Episodes of at least N steps give all windows that lie inside them; a shorter one gives the single window that
    starts it. Drawing windows evenly therefore draws episodes by length.
    """

    row: NDArray[np.int64]
    time: NDArray[np.int64]
    last: NDArray[np.int64]
    episode: NDArray[np.int64]
    short: bool

    @classmethod
    def of(cls, lengths: NDArray[np.int64], context: int) -> WindowIndex:
        """Index the windows of packed episodes."""
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        counts = np.maximum(lengths - context + 1, 1)
        episode = np.repeat(np.arange(len(lengths)), counts)
        time = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        last = (starts + lengths - 1)[episode]
        return cls(starts[episode] + time, time, last, episode, bool((lengths < context).any()))

    def only(self, kept: NDArray[np.bool_]) -> WindowIndex:
        """Some of the windows."""
        return WindowIndex(self.row[kept], self.time[kept], self.last[kept], self.episode[kept], self.short)


class Draws(NamedTuple):
    """Random choices for a chunk of steps, for K models: window numbers and look-aheads, (steps, K, B), and noise.

    ``ahead`` is a look-ahead, or for methods of tasks selects an episode (``DeviceSampler.gather``). ``noise`` is
    (steps, K, B, n), standard normal, where a method needs some.
    """

    window: NDArray[np.int64]
    ahead: NDArray[np.int64]
    noise: NDArray[np.float32] | None = None


def draw(seeds: tuple[int, ...], chunk: int, windows: int, batch: int, look_ahead: int, noise: int = 0) -> Draws:
    """The draws of one chunk: any windows, one by one."""
    chosen, ahead, random = [], [], []
    for seed in seeds:
        rng = np.random.default_rng([seed, chunk])
        chosen.append(rng.integers(windows, size=(CHUNK, batch)))
        ahead.append(rng.integers(look_ahead + 1, size=(CHUNK, batch)))
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
        task = tasks.number[index.episode]
        self.context_steps = context_steps
        self.order = np.argsort(task, kind="stable")
        sizes = np.bincount(task)
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
            chosen.append(self.order[self.first[task] + place])
        window = np.stack(chosen, axis=1)
        return Draws(window, np.zeros_like(window))
