from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import himatch as hm
from himatch.api import as_split
from himatch.data import extremes
from himatch.methods import normalizers as normalizing
from himatch.methods.batch import BatchSpec
from himatch.methods.normalizers import Normalizers, ZScale, moments, slices
from himatch.statistics import fences
from himatch.statistics.histograms import HistogramsOfRest
from himatch.tasks import Task
from himatch.training import make_plan
from himatch.training.draws import CHUNK, Sampling, WindowIndex, draw
from himatch.training.sampler import DeviceSampler, Sampler, StreamedSampler, make_sampler

CPU = torch.device("cpu")


def dataset(lengths: list[int]) -> hm.TrajectoryDataset:
    steps = sum(lengths)
    observations = np.stack([np.arange(steps), np.repeat(np.arange(len(lengths)), lengths)], axis=1)
    arrays = {"observations": observations, "actions": np.linspace(-1, 1, steps)[:, None], "lengths": lengths}
    return hm.load_dataset(
        {k: np.asarray(v) for k, v in arrays.items()}, Task("toy", 50, action_low=-1.0, action_high=1.0)
    )


@given(st.data(), st.lists(st.integers(1, 12), min_size=1, max_size=8), st.integers(1, 6))
def test_the_index_holds_every_window_inside_an_episode(data: st.DataObject, lengths: list[int], context: int) -> None:
    followed = data.draw(st.none() | st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    index = WindowIndex.of(np.array(lengths), context, None if followed is None else np.array(followed))
    expected = []  # as it was first written: a list of all windows
    for episode, length in enumerate(lengths):
        for time in range(max(length - context + 1, 1)):
            if followed is None or followed[episode] or time < length - 1:
                expected.append((episode, time))
    assert len(index) == len(expected)
    assert list(zip(*index.locate(np.arange(len(index))), strict=True)) == expected
    assert index.start.tolist() == [sum(lengths[:episode]) for episode in range(len(lengths))]
    assert (index.last + 1).tolist() == lengths
    assert index.short == (min(lengths) < context)


def standard(z: np.ndarray) -> ZScale:
    """To unit spread, as statistics in feature units are scaled."""
    return ZScale(*moments(len(z), partial(slices, z)))


def raw(sampler: Sampler, chosen: list[int], ahead: list[int]) -> tuple[torch.Tensor, ...]:
    """Batches with the normalisation undone."""
    window, offset = np.array([chosen]), np.array([ahead])
    if isinstance(sampler, DeviceSampler):
        batch = sampler.gather(torch.from_numpy(window), torch.from_numpy(offset))
    else:
        assert isinstance(sampler, StreamedSampler)
        batch = sampler.normalizers(sampler.gather(window, offset))
    n = sampler.normalizers
    states = batch.states * n.state_std + n.state_mean
    targets = states if batch.target_states is None else batch.target_states * n.state_std + n.state_mean
    mask = torch.ones(1) if batch.mask is None else batch.mask
    return states.round(), targets.round(), batch.times, mask


@pytest.mark.parametrize("stream", [False, True])
def test_windows_stay_inside_their_episode(stream: bool) -> None:
    data = dataset([6, 3, 9])
    normalizers = Normalizers.fit(data)
    sampler = make_sampler(data, None, BatchSpec(4, 3, 5), normalizers, CPU, stream=stream)
    assert isinstance(sampler, StreamedSampler if stream else DeviceSampler)
    index, everything = sampler.index, np.arange(len(sampler.index))
    states, targets, times, mask = raw(sampler, everything.tolist(), [2] * len(everything))
    for i, (episode, time) in enumerate(zip(*index.locate(everything), strict=True)):
        row, last = index.start[episode] + time, index.start[episode] + index.last[episode]
        rows = np.arange(row, row + 4)
        np.testing.assert_array_equal(states[0, i, :, 0], np.minimum(rows, last))
        np.testing.assert_array_equal(times[0, i], np.arange(time, time + 4))
        np.testing.assert_array_equal(mask[0, i], rows <= last)
        # The target starts two steps after the last of the window and repeats the episode's last state.
        np.testing.assert_array_equal(targets[0, i, :, 0], np.minimum(row + 3 + 2 + np.arange(3), last))


@pytest.mark.parametrize("stream", [False, True])
def test_targets_can_be_the_window_itself(stream: bool) -> None:
    """Also that of an episode shorter than a window, whose first state stands for what came before."""
    data = dataset([10, 2])
    sampler = make_sampler(data, None, BatchSpec(4, 4, target_start=-3), Normalizers.fit(data), CPU, stream=stream)
    _, targets, _, _ = raw(sampler, [3, 7], [0, 0])
    np.testing.assert_array_equal(targets[0, :, :, 0], [[3, 4, 5, 6], [10, 10, 10, 11]])


@pytest.mark.parametrize("chosen", [[0, 1, 2], [4, 0, 1]])
def test_streaming_gathers_what_the_device_would(chosen: list[int]) -> None:
    data = dataset([6, 3, 9, 5, 9])[chosen]
    z = np.random.default_rng(0).random((18, 5), dtype=np.float32)
    normalizers = Normalizers.fit(data, standard(z))
    made = [make_sampler(data, z, BatchSpec(4, 3, 5), normalizers, CPU, stream=stream) for stream in (False, True)]
    draws = draw((3,), 0, made[0].index, 7, 5)
    assert isinstance(made[0], DeviceSampler)
    assert isinstance(made[1], StreamedSampler)
    for sampler in made:
        sampler.begin(draws, 0)
    for place in range(4):
        gathered = made[0].gather(torch.from_numpy(draws.window[place]), torch.from_numpy(draws.ahead[place]))
        batches = []
        for sampler in made:
            sampler.fetch(place)
            batches.append(sampler.batch(torch.tensor([place])))
        for expected, on_device, streamed in zip(gathered, *batches, strict=True):
            torch.testing.assert_close(on_device, expected)
            torch.testing.assert_close(streamed, expected)


def test_draws_depend_on_seed_and_chunk_alone() -> None:
    index = WindowIndex.of(np.array([30, 22]), 2)
    assert len(index) == 50
    stacked, single = draw((4, 9), 2, index, 8, 3), draw((9,), 2, index, 8, 3)
    np.testing.assert_array_equal(stacked.window[:, 1], single.window[:, 0])
    np.testing.assert_array_equal(stacked.ahead[:, 1], single.ahead[:, 0])
    assert not np.array_equal(single.window, draw((9,), 3, index, 8, 3).window)
    assert single.window.shape == (CHUNK, 1, 8)
    assert single.ahead.max() == 3


@pytest.mark.parametrize(("sampling", "parts"), [("windows", [0.1, 0.0, 0.9]), ("episodes", [0.5, 0.0, 0.5])])
def test_episodes_come_by_length_or_evenly(sampling: Sampling, parts: list[float]) -> None:
    """Each of an episode's windows as often as the others; an episode that has none never."""
    index = WindowIndex.of(np.array([104, 1, 940]), 5, followed=np.array([True, False, True]))
    index = replace(index, first=np.array([0, 100, 100, 1000]))
    window = draw((0,), 0, index, 64, 0, sampling=sampling).window
    episode, time = index.locate(window.ravel())
    assert np.bincount(episode, minlength=3) / window.size == pytest.approx(parts, abs=0.02)
    assert (time[episode == 2] / 900).mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("split", ["none", "paper"])
@pytest.mark.parametrize("method", [hm.CDT("reward"), hm.DT("reward"), hm.FOCAL()], ids=lambda method: method.name)
def test_mapped_data_is_streamed_on_a_cpu_and_never_copied(
    method: hm.methods.Method, split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(normalizing, "_BLOCK", 256)
    monkeypatch.setattr(extremes, "BLOCK", 256)
    monkeypatch.setattr(fences, "SAMPLE", 200)
    monkeypatch.setattr(fences, "RUN", 20)
    rng, steps, wide = np.random.default_rng(0), 40 * 100, 500
    arrays = {"observations": rng.normal(size=(steps, wide)), "actions": rng.normal(size=(steps, 2))}
    np.savez(tmp_path / "log.npz", **arrays, rewards=rng.normal(size=steps), lengths=np.full(40, 100))
    data = hm.load_dataset(tmp_path / "log.npz", mmap=tmp_path / "map")
    tracemalloc.start()
    try:
        plan = make_plan(
            method, lambda: as_split(data, None, split), out=tmp_path / "run", preset="cpu", context=4, device="cpu"
        )
        with plan.relabelled() as (z, _):
            sampler = make_sampler(plan.trained_on, z, plan.spec, plan.normalizers(z), CPU)
            draws = sampler.draw((0,), 0, 16)
            assert isinstance(sampler, StreamedSampler)
            for place in range(3):
                sampler.gather(draws.window[place], draws.ahead[place])
            assert all(isinstance(a, np.memmap) for a in (sampler.observations, sampler.actions, sampler.rewards))
            if z is not None:
                kept = sampler.z.blocks.base if isinstance(sampler.z, HistogramsOfRest) else sampler.z
                assert isinstance(kept, np.memmap)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(set(plan.trained_on.shifts)) > 1  # several runs of episodes: picked out, they would be a copy
    assert peak < steps * wide * 4 / 3


def test_a_flat_histogram_has_length_one() -> None:
    data = dataset([4])
    both = hm.distribution_based(data.task, hm.resolve_feature("state", data.task), bins=31).fit(data)
    z = both.relabel(data)
    assert z.shape == (4, 62)
    normalizers = Normalizers.fit(data, hm.CDT("state").z_scale(z, both, data.lengths, 50))
    flat = normalizers.z(torch.full((62,), 1 / 31)).view(2, 31)
    torch.testing.assert_close(flat.norm(dim=1), torch.ones(2))


@pytest.mark.parametrize("block", [1, 4, 1000])
def test_normalizers_of_a_selection_a_block_at_a_time(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalizing, "_BLOCK", block)
    rng = np.random.default_rng(0)
    sizes = {"observations": (24, 2), "actions": (24, 3), "rewards": (24,)}
    columns = {name: rng.normal(size=size) for name, size in sizes.items()}
    data = hm.load_dataset({**columns, "lengths": np.array([5, 7, 8, 4])})[[3, 0, 2]]
    z = rng.normal(size=(9, 2)).astype(np.float32)
    found = Normalizers.fit(data, standard(z), rewarded=True)
    assert data.rewards is not None
    for mean, std, rows in (
        (found.state_mean, found.state_std, data.observations),
        (found.z_mean, found.z_std, z),
        (None, found.reward_std, data.rewards[:, None]),
    ):
        np.testing.assert_allclose(std, rows.std(axis=0), rtol=1e-5)
        if mean is not None:
            np.testing.assert_allclose(mean, rows.mean(axis=0), atol=1e-6)
    ends = torch.tensor([[-1.0], [1.0]]).expand(2, 3)
    spanned = np.stack([data.actions.min(axis=0), data.actions.max(axis=0)])
    np.testing.assert_allclose(found.raw_actions(ends), spanned, atol=1e-6)


def test_normalizers() -> None:
    data = dataset([6, 9])
    normalizers = Normalizers.fit(data)
    states = normalizers.states(torch.tensor(data.observations))
    torch.testing.assert_close(states.mean(0), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(states.std(0, unbiased=False), torch.ones(2), atol=1e-5, rtol=0)
    free = hm.load_dataset(
        {"observations": np.zeros((4, 1)), "actions": np.array([[2.0], [4], [6], [3]]), "lengths": [4]}
    )
    unbounded = Normalizers.fit(free)
    assert unbounded.raw_actions(torch.tensor([[-1.0], [1.0]])).ravel().tolist() == [2.0, 6.0]
    assert torch.isfinite(unbounded.states(torch.zeros(1, 1))).all()
