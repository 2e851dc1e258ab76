"""Batches of windows: gathered on the training device, or where the data lies and sent over.

A sampler is used a chunk of steps at a time: ``begin`` lays out the chunk's draws, ``fetch`` makes the batch of a step
ready where that takes the host, and ``batch`` gives it. What ``batch`` reads keeps its place in memory, so that a CUDA
graph can hold it.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch._runtime.shapes import Float, Int, shaped
from himatch.data import TrajectoryDataset
from himatch.methods.base import Agent
from himatch.methods.batch import Batch, BatchSpec
from himatch.methods.normalizers import Normalizers
from himatch.methods.window import Rows, cut
from himatch.training.draws import CHUNK, Draws, Sampling, TaskDraws, Tasks, WindowIndex, draw
from himatch.training.transitions import Transitions
from himatch.types import Array, StepRows


class Sampler:
    """The windows of a dataset: which there are, how they are drawn, and what of their episodes comes with them."""

    def __init__(
        self,
        dataset: TrajectoryDataset,
        z: StepRows | None,
        spec: BatchSpec,
        normalizers: Normalizers,
        device: torch.device,
    ) -> None:
        self.dataset, self.spec, self.device = dataset, spec, device
        self.normalizers = normalizers.to(device)
        self.tasks = Tasks(dataset.labels) if spec.tasks else None
        self.transitions = Transitions(dataset) if spec.transitions else None
        followed = None if self.transitions is None else self.transitions.followed
        self.index = WindowIndex.of(dataset.lengths, spec.context, followed)
        self.signs: tuple[Any, Any] | None = None
        if spec.hindsight is not None:
            assert z is not None
            self.signs = spec.hindsight.of.signs(z.shape[1])
        self._task_draws: dict[int, TaskDraws] = {}

    def draw(
        self, seeds: tuple[int, ...], chunk: int, batch: int, context_steps: int = 0, sampling: Sampling = "windows"
    ) -> Draws:
        """Random windows for a chunk of steps; ``context_steps`` in a row of one task each, or any."""
        if not context_steps or self.tasks is None:
            spec = self.spec
            return draw(seeds, chunk, self.index, batch, spec.look_ahead, spec.noise, sampling, spec.hindsight)
        if context_steps not in self._task_draws:
            self._task_draws[context_steps] = TaskDraws(self.tasks, self.index, context_steps)
        return self._task_draws[context_steps](seeds, chunk, batch)

    def z_of(self, z: Any, rows: Rows, now: Rows, last: Rows, start: Rows, ahead: Rows) -> Any:
        """What windows are conditioned on: z of their rows, or with hindsight that until the later steps drawn.

        Windows end at times ``now``; their episodes begin at rows ``start`` and end at times ``last``.
        """
        hindsight = self.spec.hindsight
        if z is None or hindsight is None:
            return None if z is None else z[rows]
        assert self.signs is not None
        return hindsight.z(z, rows, hindsight.later(now, last, start, ahead, len(z)), self.signs)

    def embed_episodes(self, agent: Agent) -> Float[Tensor, "K E m"] | None:
        """Give windows the embedding of an episode of their task, where the agent makes such."""
        codes = agent.embed(self.normalizers, self.dataset)
        if codes is not None:
            self.take_codes(codes)
        return codes

    def take_codes(self, codes: Float[Tensor, "K E m"]) -> None:
        """Take over embeddings of all episodes."""
        raise TypeError(f"{type(self).__name__} holds no embeddings")

    def begin(self, draws: Draws, chunk: int) -> None:
        """Lay out a chunk's draws."""
        raise TypeError(f"{type(self).__name__} samples nothing")

    def fetch(self, place: int) -> None:
        """Make the batch of a step of the chunk ready, where the host has to."""

    def batch(self, place: Tensor) -> Batch:
        """The normalised batch of a step of the chunk, on the device."""
        raise TypeError(f"{type(self).__name__} samples nothing")


class DeviceSampler(Sampler):
    """The packed arrays lie on the training device, normalised; batches are gathered there."""

    def __init__(
        self,
        dataset: TrajectoryDataset,
        z: StepRows | None,
        spec: BatchSpec,
        normalizers: Normalizers,
        device: torch.device,
    ) -> None:
        super().__init__(dataset, z, spec, normalizers, device)
        normalize, index = self.normalizers, self.index

        def here(array: NDArray[Any]) -> Tensor:
            return torch.tensor(array, device=device)

        observations = here(dataset.observations)
        if self.transitions is not None:
            self.terminated = here(self.transitions.terminated)
            observations = torch.cat([observations, here(self.transitions.finals)])
        self.observations, self.actions = normalize.states(observations), normalize.actions(here(dataset.actions))
        self.z = None if z is None else here(np.asarray(z))
        if self.signs is not None:  # z is made when a window is cut
            self.signs = here(self.signs[0]), here(self.signs[1])
        elif self.z is not None:
            self.z = normalize.z(self.z)
        # Of every episode: the number of its first window, the row of its start and the time of its last step.
        self.window, self.start, self.last = here(index.first), here(index.start), here(index.last)
        self.steps = torch.arange(spec.context, device=device)
        self.target_steps = torch.arange(spec.target_states, device=device)
        self.codes: Tensor | None = None
        if self.tasks is not None:
            tasks = self.tasks
            assert dataset.rewards is not None
            self.rewards = normalize.rewards(here(dataset.rewards))
            self.number, self.episodes = here(tasks.number), here(tasks.episodes)
            self.first, self.count = here(tasks.first), here(tasks.count)
        self._drawn: list[Tensor] = []

    @shaped
    def take_codes(self, codes: Float[Tensor, "K E m"]) -> None:
        """Keep them on the device."""
        self.codes = codes
        self.models = torch.arange(len(codes), device=self.device).unsqueeze(1)

    def begin(self, draws: Draws, chunk: int) -> None:
        """Copy the chunk's draws to the device."""
        drawn = [torch.from_numpy(array) for array in draws if array is not None]
        if [tensor.shape for tensor in drawn] != [tensor.shape for tensor in self._drawn]:
            self._drawn = [torch.empty_like(tensor, device=self.device) for tensor in drawn]
        for buffer, tensor in zip(self._drawn, drawn, strict=True):
            buffer.copy_(tensor)

    def batch(self, place: Tensor) -> Batch:
        """Gather the windows drawn for a step."""
        return self.gather(*(drawn.index_select(0, place)[0] for drawn in self._drawn))

    @shaped
    def gather(
        self, window: Int[Tensor, "K B"], ahead: Int[Tensor, "K B"], noise: Float[Tensor, "K B n"] | None = None
    ) -> Batch:
        """The windows of those numbers.

        ``ahead`` is a random number for each, as the spec draws it, and means one of three things. For learned codes it
        is how many steps after the window's last one its target states start. With hindsight it selects the later step
        that the window is relabelled with. For methods of tasks it selects the companion, the episode of the same task
        whose embedding is z. No method of himatch needs two of them.
        """
        episode = torch.searchsorted(self.window, window.contiguous(), right=True) - 1
        time, start, last = window - self.window[episode], self.start[episode, None], self.last[episode, None]
        now = torch.minimum(time + self.spec.context - 1, last[..., 0])
        times, target_times = cut(self.spec, now, self.steps, self.target_steps, ahead)
        inside, mask = times, None
        if self.index.short:
            inside, mask = torch.minimum(times, last), (times <= last).float()
        rows = inside + start
        z = self.z_of(self.z, rows, now, last[..., 0], start[..., 0], ahead)
        if z is not None and self.signs is not None:
            z = self.normalizers.z(z)
        batch = Batch(self.observations[rows], self.actions[rows], times, z, mask=mask, noise=noise)
        if self.spec.target_states:
            target_times = torch.minimum(target_times, last)
            batch = batch._replace(target_states=self.observations[target_times + start], target_times=target_times)
        if self.tasks is not None:
            rewards = None if self.rewards is None else self.rewards[rows]
            batch = batch._replace(rewards=rewards, tasks=self.number[episode])
            if self.codes is not None:
                companion = self.episodes[self.first[episode] + ahead % self.count[episode]]
                batch = batch._replace(z=self.codes[self.models, companion].unsqueeze(2))
        if self.transitions is not None:
            ends, steps = inside == last, len(self.actions)  # final observations lie behind those of all steps
            next_rows = torch.where(ends, steps + episode.unsqueeze(-1), rows + 1)
            continues = 1.0 - (ends & self.terminated[episode].unsqueeze(-1)).float()
            batch = batch._replace(next_states=self.observations[next_rows], continues=continues)
        return batch

    @staticmethod
    def bytes_needed(dataset: TrajectoryDataset, z: StepRows | None) -> int:
        """Device memory that the arrays take, with the rewards that a method may need beside them."""
        widths = dataset.observation_width + dataset.action_width + 1 + (0 if z is None else z.shape[1])
        return int(dataset.steps * 4 * widths)


class StreamedSampler(Sampler):
    """The packed arrays stay where they are (memory or mapped files); each batch is gathered there and sent over.

    ``observations``, ``actions`` and ``rewards`` are those of all episodes that were loaded, since selecting rows would
    copy them; z and the index count the rows of the selection. The next batch is gathered in a thread meanwhile.
    """

    def __init__(
        self,
        dataset: TrajectoryDataset,
        z: StepRows | None,
        spec: BatchSpec,
        normalizers: Normalizers,
        device: torch.device,
    ) -> None:
        super().__init__(dataset, z, spec, normalizers, device)
        packed = dataset.packed
        self.observations, self.actions, self.rewards, self.z = packed.observations, packed.actions, packed.rewards, z
        self.shifts = dataset.shifts
        self.codes: Array | None = None
        self._prefetch = Prefetch(self)
        self._received: Batch | None = None

    @shaped
    def take_codes(self, codes: Float[Tensor, "K E m"]) -> None:
        """Keep them beside the data."""
        self.codes = codes.cpu().numpy()

    def begin(self, draws: Draws, chunk: int) -> None:
        """Begin to gather the chunk's batches."""
        self._prefetch.begin(draws, chunk)

    def fetch(self, place: int) -> None:
        """Copy this step's batch into the tensors that the step reads."""
        gathered = self._prefetch.batch(place)
        if self._received is None or not _alike(self._received, gathered):
            self._received = Batch._make(None if t is None else t.to(self.device, copy=True) for t in gathered)
            return
        for buffer, tensor in zip(self._received, gathered, strict=True):
            if buffer is not None and tensor is not None:
                buffer.copy_(tensor, non_blocking=True)

    def batch(self, place: Tensor) -> Batch:
        """What was fetched, normalised."""
        assert self._received is not None
        return self.normalizers(self._received)

    @shaped
    def gather(
        self,
        window: Int[NDArray[np.int64], "K B"],
        ahead: Int[NDArray[np.int64], "K B"],
        noise: Float[Array, "K B n"] | None = None,
    ) -> Batch:
        """The raw windows of those numbers, in pinned memory where there is a GPU to send them to.

        ``ahead`` is what it is for :meth:`DeviceSampler.gather`.
        """
        spec, index = self.spec, self.index
        episode, time = index.locate(window)
        start, last = index.start[episode][..., None], index.last[episode][..., None]
        steps, target_steps = np.arange(spec.context), np.arange(spec.target_states)
        now = np.minimum(time + spec.context - 1, last[..., 0])
        times, target_times = cut(spec, now, steps, target_steps, ahead)
        inside = np.minimum(times, last)
        rows = inside + start
        shift = self.shifts[episode][..., None]
        packed_rows = rows + shift
        z = self.z_of(self.z, rows, now, last[..., 0], start[..., 0], ahead)
        batch = Batch(
            self._tensor(self.observations[packed_rows]),
            self._tensor(self.actions[packed_rows]),
            self._tensor(times),
            None if z is None else self._tensor(z),
            mask=self._tensor((times <= last).astype(np.float32)) if index.short else None,
            noise=None if noise is None else self._tensor(noise),
        )
        if spec.target_states:
            target_times = np.minimum(target_times, last)
            target_states = self._tensor(self.observations[target_times + start + shift])
            batch = batch._replace(target_states=target_states, target_times=self._tensor(target_times))
        if self.tasks is not None:
            assert self.rewards is not None
            tasks, rewards = self.tasks, self._tensor(self.rewards[packed_rows])
            batch = batch._replace(rewards=rewards, tasks=self._tensor(tasks.number[episode]))
            if self.codes is not None:
                companion = tasks.episodes[tasks.first[episode] + ahead % tasks.count[episode]]
                codes = self.codes[np.arange(len(window))[:, None], companion]
                batch = batch._replace(z=self._tensor(codes[:, :, None]))
        if self.transitions is not None:
            transitions, ends = self.transitions, inside == last
            batch = batch._replace(
                next_states=self._tensor(transitions.observations(episode, ends, self.observations, packed_rows)),
                continues=self._tensor(transitions.continues(episode, ends)),
            )
        return batch

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        tensor = torch.from_numpy(array)
        return tensor.pin_memory() if self.device.type == "cuda" else tensor


def _alike(one: Batch, other: Batch) -> bool:
    """Whether the tensors of one batch can hold the other's."""
    shapes = [[None if tensor is None else tensor.shape for tensor in batch] for batch in (one, other)]
    return shapes[0] == shapes[1]


class Prefetch:
    """Gathers the batch after this one in a thread while this one is used."""

    def __init__(self, sampler: StreamedSampler) -> None:
        self.sampler, self._pool = sampler, ThreadPoolExecutor(1)
        self._draws: tuple[Draws, int] | None = None
        self._coming: tuple[int, int, Future[Batch]] | None = None

    def begin(self, draws: Draws, chunk: int) -> None:
        """From now on batches of this chunk are wanted; what was gathered before is not."""
        self._draws, self._coming = (draws, chunk), None

    def batch(self, place: int) -> Batch:
        """The raw batch of a step of the chunk; what was gathered ahead is used if it is the right one."""
        assert self._draws is not None
        coming = self._coming
        future = coming[2] if coming is not None and coming[:2] == (self._draws[1], place) else self._gather(place)
        gathered = future.result()
        self._coming = (self._draws[1], place + 1, self._gather(place + 1)) if place + 1 < CHUNK else None
        return gathered

    def _gather(self, place: int) -> Future[Batch]:
        assert self._draws is not None
        draws = self._draws[0]
        noise = None if draws.noise is None else draws.noise[place]
        return self._pool.submit(self.sampler.gather, draws.window[place], draws.ahead[place], noise)


def make_sampler(
    dataset: TrajectoryDataset,
    z: StepRows | None,
    spec: BatchSpec,
    normalizers: Normalizers,
    device: torch.device,
    *,
    stream: bool | None = None,
) -> Sampler:
    """Hold the data on the device where it fits (half of what is free), else stream it.

    On the CPU data that is mapped from files is streamed, everything else is taken as it is.
    """
    if stream is None:
        if device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(device)
            stream = DeviceSampler.bytes_needed(dataset, z) > free // 2
        else:
            stream = dataset.mapped
    made = StreamedSampler if stream else DeviceSampler
    return made(dataset, z, spec, normalizers, device)
