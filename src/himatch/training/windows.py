"""Windows of N steps inside episodes: where they are, which are drawn, and how they are gathered into batches."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch.data import TrajectoryDataset
from himatch.errors import DataError
from himatch.policy.agent import Batch
from himatch.policy.normalizers import Normalizers
from himatch.types import Array

CHUNK = 256
"""Steps whose random draws are made together. Draws depend on (seed, chunk) alone, so any step can be resumed."""


@dataclass(frozen=True)
class Shape:
    """What a batch is cut to: the context N, and the states and the look-ahead of a learned statistic's target.

    ``literal`` targets start with the window; others start at its last step plus the look-ahead.
    """

    context: int
    target_states: int = 0
    look_ahead: int = 0
    literal: bool = False


@dataclass(frozen=True)
class Index:
    """Every window of a dataset: its first row, the time of that row in its episode, and the episode's last row, (M,).

    Episodes of at least N steps give all windows that lie inside them; a shorter one gives the single window that
    starts it. Drawing windows evenly therefore draws episodes by length.
    """

    row: NDArray[np.int64]
    time: NDArray[np.int64]
    last: NDArray[np.int64]
    short: bool

    @classmethod
    def of(cls, lengths: NDArray[np.int64], context: int) -> Index:
        """Index the windows of packed episodes."""
        if lengths.max() < context:
            raise DataError(
                f"the context of {context} steps is longer than every episode (the longest has {lengths.max()}); "
                "choose a smaller --context"
            )
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        counts = np.maximum(lengths - context + 1, 1)
        episode = np.repeat(np.arange(len(lengths)), counts)
        time = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return cls(starts[episode] + time, time, (starts + lengths - 1)[episode], bool((lengths < context).any()))


@dataclass(frozen=True)
class Draws:
    """Random choices for a run of steps, for K models: window numbers and look-aheads, (steps, K, B)."""

    window: NDArray[np.int64]
    ahead: NDArray[np.int64]


def draw(seeds: tuple[int, ...], chunk: int, windows: int, batch: int, look_ahead: int) -> Draws:
    """The draws of one chunk; each model's depend on its own seed only, whatever it is stacked with."""
    chosen, ahead = [], []
    for seed in seeds:
        rng = np.random.default_rng([seed, chunk])
        chosen.append(rng.integers(windows, size=(CHUNK, batch)))
        ahead.append(rng.integers(look_ahead + 1, size=(CHUNK, batch)))
    return Draws(np.stack(chosen, axis=1), np.stack(ahead, axis=1))


class DeviceWindows:
    """The packed arrays on the training device; batches are gathered there, which a CUDA graph can hold."""

    def __init__(
        self, dataset: TrajectoryDataset, z: Array | None, shape: Shape, normalizers: Normalizers, device: torch.device
    ) -> None:
        self.shape, self.index = shape, Index.of(dataset.lengths, shape.context)
        self.observations = torch.tensor(dataset.observations, device=device)
        self.actions = torch.tensor(dataset.actions, device=device)
        self.z = None if z is None else torch.tensor(z, device=device)
        self.normalizers = normalizers.to(device)
        self.row, self.time, self.last = (
            torch.tensor(a, device=device) for a in (self.index.row, self.index.time, self.index.last)
        )
        self.steps = torch.arange(shape.context, device=device)
        self.target_steps = torch.arange(shape.target_states, device=device)

    def batch(self, window: Tensor, ahead: Tensor) -> Batch:
        """The windows of those numbers, ``(K, B)`` each."""
        last = self.last[window].unsqueeze(-1)
        unclamped = self.row[window].unsqueeze(-1) + self.steps
        rows = torch.minimum(unclamped, last) if self.index.short else unclamped
        targets = None
        if self.shape.target_states:
            start = unclamped[..., :1] if self.shape.literal else unclamped[..., -1:] + ahead.unsqueeze(-1)
            targets = self.observations[torch.minimum(start + self.target_steps, last)]
        return self.normalizers(
            Batch(
                self.observations[rows],
                self.actions[rows],
                self.time[window].unsqueeze(-1) + self.steps,
                None if self.z is None else self.z[rows],
                targets,
                (unclamped <= last).float() if self.index.short else None,
            )
        )

    @staticmethod
    def bytes_needed(dataset: TrajectoryDataset, z: Array | None) -> int:
        """Device memory that the arrays and the index take."""
        widths = dataset.observations.shape[1] + dataset.actions.shape[1] + (0 if z is None else z.shape[1])
        return int(dataset.steps * (4 * widths + 24))


class StreamedWindows:
    """The packed arrays stay where they are (memory or mapped files); each batch is gathered there and sent over."""

    def __init__(
        self, dataset: TrajectoryDataset, z: Array | None, shape: Shape, normalizers: Normalizers, device: torch.device
    ) -> None:
        self.shape, self.index, self.device = shape, Index.of(dataset.lengths, shape.context), device
        self.observations, self.actions, self.z = dataset.observations, dataset.actions, z
        self.normalizers = normalizers.to(device)

    def gather(self, window: NDArray[np.int64], ahead: NDArray[np.int64]) -> Batch:
        """The raw windows of those numbers, ``(K, B)`` each, in pinned memory where there is a GPU to send them to."""
        last = self.index.last[window][..., None]
        unclamped = self.index.row[window][..., None] + np.arange(self.shape.context)
        rows = np.minimum(unclamped, last)
        targets = None
        if self.shape.target_states:
            start = unclamped[..., :1] if self.shape.literal else unclamped[..., -1:] + ahead[..., None]
            targets = self._tensor(self.observations[np.minimum(start + np.arange(self.shape.target_states), last)])
        times = self.index.time[window][..., None] + np.arange(self.shape.context)
        return Batch(
            self._tensor(self.observations[rows]),
            self._tensor(self.actions[rows]),
            self._tensor(times),
            None if self.z is None else self._tensor(self.z[rows]),
            targets,
            self._tensor((unclamped <= last).astype(np.float32)) if self.index.short else None,
        )

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        tensor = torch.from_numpy(array)
        return tensor.pin_memory() if self.device.type == "cuda" else tensor


class Prefetch:
    """Gathers the batch after this one in a thread while this one is used."""

    def __init__(self, windows: StreamedWindows) -> None:
        self.windows, self._pool = windows, ThreadPoolExecutor(1)
        self._coming: tuple[int, Future[Batch]] | None = None

    def batch(self, draws: Draws, chunk: int, place: int) -> Batch:
        """The raw batch of a chunk's step; what was gathered ahead is used if it is the right one."""
        step = chunk * CHUNK + place
        if self._coming is None or self._coming[0] != step:
            self._coming = (step, self._gather(draws, place))
        gathered = self._coming[1].result()
        self._coming = (step + 1, self._gather(draws, place + 1)) if place + 1 < CHUNK else None
        return gathered

    def _gather(self, draws: Draws, place: int) -> Future[Batch]:
        return self._pool.submit(self.windows.gather, draws.window[place], draws.ahead[place])


Windows = DeviceWindows | StreamedWindows


def make_windows(
    dataset: TrajectoryDataset,
    z: Array | None,
    shape: Shape,
    normalizers: Normalizers,
    device: torch.device,
    *,
    stream: bool | None = None,
) -> Windows:
    """Hold the data on the device where it fits (half of what is free), else stream it.

    On the CPU data that is mapped from files is streamed, everything else is taken as it is.
    """
    if stream is None:
        if device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(device)
            stream = DeviceWindows.bytes_needed(dataset, z) > free // 2
        else:
            stream = isinstance(dataset.observations, np.memmap)
    made = StreamedWindows if stream else DeviceWindows
    return made(dataset, z, shape, normalizers, device)
