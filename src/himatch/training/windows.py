"""Windows of N steps inside episodes, gathered into batches: on the training device, or where the data lies."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch.data import TrajectoryDataset
from himatch.methods.agent import Agent, Batch
from himatch.methods.base import Shape as Shape
from himatch.methods.normalizers import Normalizers
from himatch.training.draws import CHUNK, Draws, Index, Tasks, draw
from himatch.training.episodes import Following
from himatch.types import Array


class Windows:
    """The windows of a dataset: which there are, how they are drawn, and what of their episodes they come with."""

    def __init__(
        self, dataset: TrajectoryDataset, shape: Shape, normalizers: Normalizers, device: torch.device
    ) -> None:
        self.dataset, self.shape, self.device = dataset, shape, device
        self.normalizers = normalizers.to(device)
        self.index = Index.of(dataset.lengths, shape.context)
        self.tasks = Tasks(dataset.labels) if shape.tasks else None
        self.following = Following(dataset) if shape.transitions else None
        if self.following is not None:
            self.index = self.index.only(self.following.known[self.index.row])

    def draw(self, seeds: tuple[int, ...], chunk: int, batch: int) -> Draws:
        """Random windows for a chunk of steps."""
        return draw(seeds, chunk, len(self.index.row), batch, self.shape.look_ahead, self.shape.noise)

    def relabel(self, agent: Agent) -> Tensor | None:
        """Tell windows what an agent is told of an episode of their task, where it is told that, ``(K, E, m)``."""
        codes = agent.embed(self.normalizers, self.dataset)
        if codes is not None:
            self.take_codes(codes)
        return codes

    def take_codes(self, codes: Tensor) -> None:
        """Take over embeddings of all episodes."""
        raise NotImplementedError


class DeviceWindows(Windows):
    """The packed arrays on the training device; batches are gathered there, which a CUDA graph can hold."""

    def __init__(
        self, dataset: TrajectoryDataset, z: Array | None, shape: Shape, normalizers: Normalizers, device: torch.device
    ) -> None:
        super().__init__(dataset, shape, normalizers, device)

        def here(array: NDArray[Any]) -> Tensor:
            return torch.tensor(array, device=device)

        self.observations, self.actions = here(dataset.observations), here(dataset.actions)
        self.z = None if z is None else here(z)
        self.row, self.time, self.last = (here(a) for a in (self.index.row, self.index.time, self.index.last))
        self.steps = torch.arange(shape.context, device=device)
        self.target_steps = torch.arange(shape.target_states, device=device)
        self.codes: Tensor | None = None
        if self.tasks is not None:
            tasks = self.tasks
            assert dataset.rewards is not None
            self.rewards, self.episode = here(dataset.rewards), here(self.index.episode)
            self.number, self.episodes = here(tasks.number), here(tasks.episodes)
            self.first, self.count = here(tasks.first), here(tasks.count)
        if self.following is not None:
            self.next_row, self.goes_on = here(self.following.row), here(self.following.goes_on)
            self.observations = torch.cat([self.observations, here(self.following.finals)])

    def take_codes(self, codes: Tensor) -> None:
        """Keep them on the device."""
        self.codes = codes
        self.models = torch.arange(len(codes), device=self.device).unsqueeze(1)

    def batch(self, window: Tensor, ahead: Tensor, noise: Tensor | None = None) -> Batch:
        """The windows of those numbers, ``(K, B)`` each."""
        last = self.last[window].unsqueeze(-1)
        unclamped = self.row[window].unsqueeze(-1) + self.steps
        rows = torch.minimum(unclamped, last) if self.index.short else unclamped
        targets = None
        if self.shape.target_states:
            start = unclamped[..., :1] if self.shape.literal else unclamped[..., -1:] + ahead.unsqueeze(-1)
            targets = self.observations[torch.minimum(start + self.target_steps, last)]
        batch = Batch(
            self.observations[rows],
            self.actions[rows],
            self.time[window].unsqueeze(-1) + self.steps,
            None if self.z is None else self.z[rows],
            targets,
            (unclamped <= last).float() if self.index.short else None,
            noise=noise,
        )
        if self.tasks is not None:
            episode = self.episode[window]
            batch = batch._replace(rewards=self.rewards[rows], tasks=self.number[episode])
            if self.codes is not None:
                companion = self.episodes[self.first[episode] + ahead % self.count[episode]]
                batch = batch._replace(z=self.codes[self.models, companion].unsqueeze(2))
        if self.following is not None:
            batch = batch._replace(next_states=self.observations[self.next_row[rows]], goes_on=self.goes_on[rows])
        return self.normalizers(batch)

    @staticmethod
    def bytes_needed(dataset: TrajectoryDataset, z: Array | None) -> int:
        """Device memory that the arrays and the index take, with all that a method may want beside them."""
        widths = dataset.observation_width + dataset.action_width + (0 if z is None else z.shape[1])
        return int(dataset.steps * (4 * widths + 48))


class StreamedWindows(Windows):
    """The packed arrays stay where they are (memory or mapped files); each batch is gathered there and sent over.

    ``observations``, ``actions`` and ``rewards`` are those of all episodes that were loaded, since picking out the rows
    of a selection would copy them; z and the index count the rows of the selection.
    """

    def __init__(
        self, dataset: TrajectoryDataset, z: Array | None, shape: Shape, normalizers: Normalizers, device: torch.device
    ) -> None:
        super().__init__(dataset, shape, normalizers, device)
        packed = dataset.packed
        self.observations, self.actions, self.rewards, self.z = packed.observations, packed.actions, packed.rewards, z
        self.shifts = dataset.shifts
        self.codes: Array | None = None

    def take_codes(self, codes: Tensor) -> None:
        """Keep them beside the data."""
        self.codes = codes.cpu().numpy()

    def gather(
        self, window: NDArray[np.int64], ahead: NDArray[np.int64], noise: NDArray[np.float32] | None = None
    ) -> Batch:
        """The raw windows of those numbers, ``(K, B)`` each, in pinned memory where there is a GPU to send them to."""
        episode, last = self.index.episode[window], self.index.last[window][..., None]
        unclamped = self.index.row[window][..., None] + np.arange(self.shape.context)
        rows, shift = np.minimum(unclamped, last), self.shifts[episode][..., None]
        packed_rows = rows + shift
        targets = None
        if self.shape.target_states:
            start = unclamped[..., :1] if self.shape.literal else unclamped[..., -1:] + ahead[..., None]
            target_rows = np.minimum(start + np.arange(self.shape.target_states), last)
            targets = self._tensor(self.observations[target_rows + shift])
        times = self.index.time[window][..., None] + np.arange(self.shape.context)
        batch = Batch(
            self._tensor(self.observations[packed_rows]),
            self._tensor(self.actions[packed_rows]),
            self._tensor(times),
            None if self.z is None else self._tensor(self.z[rows]),
            targets,
            self._tensor((unclamped <= last).astype(np.float32)) if self.index.short else None,
            noise=None if noise is None else self._tensor(noise),
        )
        if self.tasks is not None:
            assert self.rewards is not None
            tasks, rewards = self.tasks, self._tensor(self.rewards[packed_rows])
            batch = batch._replace(rewards=rewards, tasks=self._tensor(tasks.number[episode]))
            if self.codes is not None:
                companion = tasks.episodes[tasks.first[episode] + ahead % tasks.count[episode]]
                told = self.codes[np.arange(len(window))[:, None], companion]
                batch = batch._replace(z=self._tensor(told[:, :, None]))
        if self.following is not None:
            batch = batch._replace(
                next_states=self._tensor(self.following.observations(rows, self.observations, packed_rows)),
                goes_on=self._tensor(self.following.goes_on[rows]),
            )
        return batch

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
        noise = None if draws.noise is None else draws.noise[place]
        return self._pool.submit(self.windows.gather, draws.window[place], draws.ahead[place], noise)


def make_windows(
    dataset: TrajectoryDataset,
    z: Array | None,
    shape: Shape,
    normalizers: Normalizers,
    device: torch.device,
    *,
    stream: bool | None = None,
) -> DeviceWindows | StreamedWindows:
    """Hold the data on the device where it fits (half of what is free), else stream it.

    On the CPU data that is mapped from files is streamed, everything else is taken as it is.
    """
    if stream is None:
        if device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(device)
            stream = DeviceWindows.bytes_needed(dataset, z) > free // 2
        else:
            stream = dataset.mapped
    made = StreamedWindows if stream else DeviceWindows
    return made(dataset, z, shape, normalizers, device)
