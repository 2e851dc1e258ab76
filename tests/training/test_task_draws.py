"""Which episodes belong together, which windows are drawn for them, and what follows a step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

import himatch as hm
from himatch.methods import Agent
from himatch.methods.batch import Batch, BatchSpec
from himatch.methods.normalizers import Normalizers
from himatch.training.draws import CHUNK, TaskDraws, Tasks, WindowIndex
from himatch.training.sampler import DeviceSampler, Sampler, StreamedSampler, make_sampler

CPU = torch.device("cpu")
LABELS = ("a", None, "b", "a", None, "b", "a")
LENGTHS = (6, 3, 9, 2, 4, 5, 7)


def dataset() -> hm.TrajectoryDataset:
    """Episode i terminates where i is even, and its final observation is known where i is below 5."""
    episodes = []
    for i, (label, steps) in enumerate(zip(LABELS, LENGTHS, strict=True)):
        rows = np.stack([np.arange(steps), np.full(steps, i)], axis=1).astype(np.float32)
        final = np.array([steps, i], np.float32) if i < 5 else None
        rewards = 10.0 * i + np.arange(steps)
        episodes.append(hm.Trajectory(rows, np.zeros((steps, 1)), rewards, final, i % 2 == 0, label))
    return hm.load_dataset(episodes, hm.Task("toy", 20, action_low=-1.0, action_high=1.0))


def test_tasks_are_labels_and_otherwise_episodes() -> None:
    tasks = Tasks(LABELS)
    assert len(tasks) == 4
    a, first, b, _, second, _, _ = tasks.number
    assert tasks.number.tolist() == [a, first, b, a, second, b, a]
    assert len({a, b, first, second}) == 4
    for episode in range(7):
        members = tasks.episodes[tasks.first[episode] : tasks.first[episode] + tasks.count[episode]]
        assert sorted(members) == [i for i in range(7) if tasks.number[i] == tasks.number[episode]]


def test_contexts_are_of_one_task_and_come_in_pairs() -> None:
    tasks, index = Tasks(LABELS), WindowIndex.of(np.array(LENGTHS), 1)
    draws = TaskDraws(tasks, index, 4)((3, 5), 2, 6 * 2 * 4)
    assert draws.window.shape == (CHUNK, 2, 48)
    task = tasks.number[index.locate(draws.window).episode].reshape(CHUNK, 2, 6, 8)
    assert (task == task[..., :1]).all()
    counts = np.bincount(task[..., 0].ravel(), minlength=4)
    assert counts.min() > 0.8 * counts.mean()  # tasks are drawn evenly, whatever their size
    rows = np.bincount(draws.window.ravel(), minlength=36)
    assert (rows > 0).all()


def test_task_draws_depend_on_seed_and_chunk_alone() -> None:
    made = TaskDraws(Tasks(LABELS), WindowIndex.of(np.array(LENGTHS), 1), 2)
    stacked, single = made((4, 9), 2, 8), made((9,), 2, 8)
    np.testing.assert_array_equal(stacked.window[:, 1], single.window[:, 0])
    assert not np.array_equal(single.window, made((9,), 3, 8).window)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(1, 6)), min_size=1, max_size=8))
def test_task_draws_are_those_of_a_sorted_list_of_all_windows(episodes: list[tuple[str | None, int]]) -> None:
    labels, lengths = zip(*episodes, strict=True)
    tasks, index = Tasks(labels), WindowIndex.of(np.array(lengths), 2)
    task = tasks.number[index.locate(np.arange(len(index))).episode]
    made = TaskDraws(tasks, index, 2)
    np.testing.assert_array_equal(made._window(np.arange(len(index))), np.argsort(task, kind="stable"))
    np.testing.assert_array_equal(made.sizes, np.bincount(task))


class Numbering(Agent):
    """Embeds an episode as its number and the model's."""

    def __init__(self, models: int) -> None:
        torch.nn.Module.__init__(self)
        self.models = models

    def embed(self, normalizers: Normalizers, episodes: object) -> Tensor:
        numbers = torch.arange(len(episodes))  # type: ignore[arg-type]
        return torch.stack(
            [torch.stack([numbers, torch.full_like(numbers, k)], dim=1) for k in range(self.models)]
        ).float()


def gathered(sampler: Sampler, window: NDArray[np.int64], ahead: NDArray[np.int64]) -> Batch:
    noise = np.arange(window.size * 2, dtype=np.float32).reshape(*window.shape, 2)
    if isinstance(sampler, DeviceSampler):
        return sampler.gather(torch.from_numpy(window), torch.from_numpy(ahead), torch.from_numpy(noise))
    assert isinstance(sampler, StreamedSampler)
    return sampler.normalizers(sampler.gather(window, ahead, noise))


def raw_states(sampler: Sampler, states: Tensor) -> NDArray[np.float32]:
    n = sampler.normalizers
    return (states * n.state_std + n.state_mean).round().numpy()


@pytest.mark.parametrize("stream", [False, True])
def test_windows_come_with_what_their_task_and_their_episode_say(stream: bool) -> None:
    data = dataset()
    normalizers = Normalizers.fit(data, rewarded=True)
    spec = BatchSpec(1, look_ahead=1000, tasks=True, transitions=True, noise=2)
    sampler = make_sampler(data, None, spec, normalizers, CPU, stream=stream)
    assert sampler.tasks is not None
    sampler.embed_episodes(Numbering(2))
    # Episode 5 was cut by a time limit and nobody saw what came next: its last step is left out.
    assert len(sampler.index) == sum(LENGTHS) - 1
    everything = np.tile(np.arange(len(sampler.index)), (2, 1))
    windows = sampler.index.locate(everything[0])
    companions: dict[int, set[int]] = {i: set() for i in range(7)}
    for ahead in range(12):
        batch = gathered(sampler, everything, np.full_like(everything, ahead))
        assert batch.z is not None
        assert batch.z.shape == (2, 35, 1, 2)
        assert (batch.z[0, :, 0, 1] == 0).all()
        assert (batch.z[1, :, 0, 1] == 1).all()
        for window, companion in enumerate(batch.z[0, :, 0, 0].long().tolist()):
            companions[int(windows.episode[window])].add(companion)
    for episode, found in companions.items():
        assert found == {i for i in range(7) if sampler.tasks.number[i] == sampler.tasks.number[episode]}
    assert batch.rewards is not None
    assert batch.next_states is not None
    assert batch.continues is not None
    assert batch.tasks is not None
    assert batch.noise is not None
    np.testing.assert_array_equal(batch.tasks[1].numpy(), sampler.tasks.number[windows.episode])
    np.testing.assert_array_equal(batch.noise.numpy().ravel(), np.arange(140))
    assert normalizers.reward_std is not None
    rewards = (batch.rewards[0, :, 0] * normalizers.reward_std).numpy()
    next_states = raw_states(sampler, batch.next_states[0, :, 0])
    for window, (time, episode) in enumerate(zip(windows.time, windows.episode, strict=True)):
        ends = time == LENGTHS[episode] - 1
        assert rewards[window] == pytest.approx(10.0 * episode + time, abs=1e-4)
        assert float(batch.continues[0, window, 0]) == (0.0 if ends and episode % 2 == 0 else 1.0)
        if not ends or episode < 5:
            np.testing.assert_array_equal(next_states[window], [time + 1, episode])
    assert batch.next_states.isfinite().all()  # where an episode terminated, what came next does not matter


def test_streaming_gathers_what_the_device_would() -> None:
    data = dataset()[[6, 0, 3, 4]]
    normalizers = Normalizers.fit(data, rewarded=True)
    spec = BatchSpec(1, look_ahead=1000, tasks=True, transitions=True, noise=2)
    found = []
    for stream in (False, True):
        sampler = make_sampler(data, None, spec, normalizers, CPU, stream=stream)
        sampler.embed_episodes(Numbering(2))
        everything = np.tile(np.arange(len(sampler.index)), (2, 1))
        found.append(gathered(sampler, everything, everything % 5))
    for name, on_device, streamed in zip(Batch._fields, *found, strict=True):
        if on_device is not None:
            assert torch.equal(on_device, streamed), name


def test_a_time_limit_and_a_termination_differ_in_nothing_else() -> None:
    """The same episode, once cut by a time limit and once terminated."""
    rng = np.random.default_rng(0)
    arrays = rng.normal(size=(8, 2)), np.zeros((8, 1)), rng.normal(size=8), rng.normal(size=2)
    found = []
    for terminated in (False, True):
        data = hm.load_dataset([hm.Trajectory(*arrays, terminated), hm.Trajectory(*arrays)], hm.Task("toy", 8))
        spec = BatchSpec(1, tasks=True, transitions=True)
        sampler = make_sampler(data, None, spec, Normalizers.fit(data, rewarded=True), CPU)
        assert isinstance(sampler, DeviceSampler)
        found.append(sampler.gather(torch.arange(16).unsqueeze(0), torch.zeros(1, 16, dtype=torch.int64)))
    limit, end = found
    assert limit.continues is not None
    assert end.continues is not None
    assert limit.continues.sum() == 16
    assert end.continues.flatten().tolist() == [1.0] * 7 + [0.0] + [1.0] * 8
    assert limit.next_states is not None
    torch.testing.assert_close(limit.next_states, end.next_states)


def test_an_episode_cut_short_without_a_last_look_may_be_one_step_long(tmp_path: Path) -> None:
    episodes = [hm.Trajectory(np.full((n, 1), n), np.zeros((n, 1)), np.ones(n)) for n in (1, 4)]
    data = hm.load_dataset(episodes, hm.Task("toy", 8))
    spec = BatchSpec(1, tasks=True, transitions=True)
    sampler = make_sampler(data, None, spec, Normalizers.fit(data, rewarded=True), CPU)
    assert sampler.tasks is not None
    drawn = TaskDraws(sampler.tasks, sampler.index, 2)((0,), 0, 8).window
    assert set(sampler.index.locate(drawn).episode.ravel()) == {1}
