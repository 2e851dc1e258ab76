"""Relabelling in the sampler: z of a window is that of the stretch to a later step, drawn anew and never stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import himatch as hm
from himatch.errors import HimatchError
from himatch.methods import Method
from himatch.methods.hindsight import Hindsight, Relabelling
from himatch.methods.normalizers import Normalizers
from himatch.statistics.aggregators import FinalValue, TimedSum, TimedValue
from himatch.statistics.information import InformationStatistic
from himatch.tasks import Task
from himatch.training.draws import CHUNK
from himatch.training.sampler import DeviceSampler, Sampler, StreamedSampler, make_sampler

CPU = torch.device("cpu")
TASK = Task("toy", 50, action_low=-1.0, action_high=1.0, features={"x": 0})
HOW: tuple[Relabelling, ...] = ("uniform", "geometric", "random")


def dataset(lengths: list[int]) -> hm.TrajectoryDataset:
    """Observations are the number of the row, so that z tells which one it is of."""
    steps = sum(lengths)
    rewards = np.random.default_rng(0).normal(3.0, 1.0, steps)
    arrays = {"observations": np.arange(steps)[:, None], "actions": np.zeros((steps, 1)), "rewards": rewards}
    return hm.load_dataset({**arrays, "lengths": np.array(lengths)}, TASK)


def sampler_of(data: hm.TrajectoryDataset, method: Method, context: int, stream: bool) -> tuple[Sampler, np.ndarray]:
    statistic = method.statistic(data.task)
    assert isinstance(statistic, InformationStatistic)
    z = statistic.relabel(data, hindsight=True)
    spec = method.batch_spec(context, 1)
    normalizers = Normalizers.fit(data, method.z_scale(z, statistic, data.lengths, 50))
    return make_sampler(data, z, spec, normalizers, CPU, stream=stream), z


def methods(how: Relabelling) -> list[Method]:
    found: list[Method] = [hm.GCSL("x", how), hm.GCSL("x", how, steps_left=False), hm.GoalDT("x", how, steps_left=True)]
    return found if how == "random" else [*found, hm.UDRL("reward", how)]


@pytest.mark.parametrize("method", [m for how in HOW for m in methods(how)], ids=lambda m: f"{m.name} {m.relabel}")
def test_both_samplers_relabel_with_the_stretch_to_a_later_step(method: Any) -> None:
    lengths = [6, 3, 9, 5, 1, 9]
    data = dataset(lengths)[[4, 0, 1, 2, 3]]
    context = 4 if method.name == "goal" else 1
    pair = [sampler_of(data, method, context, stream)[0] for stream in (False, True)]
    draws = pair[0].draw((3, 5), 0, 16)
    assert draws.ahead.min() >= 0
    statistic = method.statistic(data.task)
    for sampler in pair:
        sampler.begin(draws, 0)
    for place in range(8):
        batches = []
        for sampler in pair:
            sampler.fetch(place)
            batches.append(sampler.batch(torch.tensor([place])))
        for one, other in zip(*batches, strict=True):
            assert (one is None and other is None) or torch.equal(one, other)
        check(pair[0], batches[0], statistic, draws.window[place], data, method)


def check(sampler: Sampler, batch: Any, statistic: Any, window: np.ndarray, data: Any, method: Any) -> None:
    """Every z is that of some stretch of the episode that begins at its step and ends no earlier than the window."""
    n = sampler.normalizers
    z = (batch.z * n.z_std + n.z_mean).numpy()
    for k, b in np.ndindex(window.shape):
        episode, _ = (int(x) for x in sampler.index.locate(window[k, b]))
        phi = statistic.feature(data[episode])
        times = batch.times[k, b].numpy()
        now = min(int(times[-1]), len(phi) - 1)
        nearest = now if statistic.kind == "timed_sum" or now == len(phi) - 1 else now + 1
        inside = times[times < len(phi)]
        ends = range(nearest, len(phi))
        found = z[k, b, : len(inside)]
        stretches = [[statistic.aggregator(phi[t : f + 1])[0] for t in inside] for f in ends]
        if method.relabel == "random":
            assert found[0, 0].round() in data.observations[:, 0]
            if not method.steps_left:
                continue
            stretches = [[row[1:] for row in rows] for rows in stretches]
            found = found[:, 1:]
        assert min(np.abs(np.array(rows) - found).max() for rows in stretches) < 1e-3


@pytest.mark.parametrize("stream", [False, True])
def test_later_steps_are_drawn_evenly_or_geometrically(stream: bool) -> None:
    data = dataset([41])
    for how in HOW:
        sampler, _ = sampler_of(data, hm.GCSL("x", how, 0.8), 1, stream)
        ahead = sampler.draw((0,), 0, 64).ahead.reshape(1, -1)
        window = np.full_like(ahead, 20)
        if isinstance(sampler, DeviceSampler):
            batch = sampler.gather(torch.from_numpy(window), torch.from_numpy(ahead))
        else:
            assert isinstance(sampler, StreamedSampler)
            batch = sampler.normalizers(sampler.gather(window, ahead))
        assert batch.z is not None
        n = sampler.normalizers
        goal, left = (batch.z * n.z_std + n.z_mean)[0, :, 0].numpy().T
        left = (left * TASK.horizon).round()
        if how == "geometric":
            np.testing.assert_allclose(np.bincount(left.astype(int))[1:4] / left.size, [0.2, 0.16, 0.128], atol=0.01)
            assert left.max() == 20  # no later than the end
        else:
            np.testing.assert_allclose(np.bincount(left.astype(int))[1:] / left.size, 1 / 20, atol=0.01)
        if how == "random":
            np.testing.assert_allclose(np.bincount(goal.round().astype(int)) / goal.size, 1 / 41, atol=0.01)
            assert abs(np.corrcoef(goal, left)[0, 1]) < 0.02
        else:
            np.testing.assert_allclose(goal - left, 20.0, atol=1e-3)


@given(st.data(), st.integers(1, 30))
def test_one_rule_for_arrays_and_tensors(data: st.DataObject, length: int) -> None:
    """Windows at an episode's last step have no later one: their goal is their own step, their stretch that alone."""
    now = data.draw(st.integers(0, length - 1))
    ahead = data.draw(st.integers(0, 2**62 - 1))
    start = data.draw(st.integers(0, 100))
    for how in HOW:
        for of in (FinalValue, TimedValue, TimedSum):
            rule = Hindsight(how, of, 0.9)
            arrays = [np.array([x]) for x in (now, length - 1, start, ahead)]
            found = rule.later(*arrays, 200)  # type: ignore[misc]
            tensors = rule.later(*map(torch.from_numpy, arrays), 200)  # type: ignore[misc]
            for one, other in zip(found, tensors, strict=True):
                np.testing.assert_array_equal(one, other.numpy())
            assert start + min(now + 1, length - 1) <= found.time[0] <= start + length - 1
            assert found.inside[0] or of is TimedSum
            assert 0 <= found.value[0] < 200


def test_draws_depend_on_seed_and_chunk_alone() -> None:
    sampler, _ = sampler_of(dataset([30, 22]), hm.UDRL(), 1, stream=False)
    stacked, single = sampler.draw((4, 9), 2, 8), sampler.draw((9,), 2, 8)
    np.testing.assert_array_equal(stacked.ahead[:, 1], single.ahead[:, 0])
    assert single.ahead.shape == (CHUNK, 1, 8)
    assert not np.array_equal(single.ahead, sampler.draw((9,), 3, 8).ahead)


def test_sums_of_short_stretches_of_long_logs_are_exact() -> None:
    """Sums are each episode's own: what lies before an episode in the packed data costs no precision."""
    rng = np.random.default_rng(0)
    count, length = 200, 1000
    rewards = rng.normal(5.0, 1.0, count * length).astype(np.float32)
    arrays = {"observations": np.zeros((count * length, 1)), "actions": np.zeros((count * length, 1))}
    task = Task("long", length, action_low=-1.0, action_high=1.0)
    data = hm.load_dataset({**arrays, "rewards": rewards, "lengths": np.full(count, length)}, task)
    statistic = hm.command_based(task)
    kept = statistic.relabel(data, hindsight=True)
    a, b = TimedSum.signs(2)
    first = rng.integers(0, count * length - 1, 2000)
    first = first[first % length < length - 60]
    steps = rng.integers(1, 50, len(first))
    found = (a * kept[first] + b * kept[first + steps])[:, 0] * length
    exact = [rewards[i : i + n].sum(dtype=np.float64) for i, n in zip(first, steps, strict=True)]
    np.testing.assert_allclose(found, exact, atol=2e-3)  # of totals of 5000, in single precision
    assert kept.dtype == np.float32


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hm.GCSL(relabel="later"), "relabel is final, uniform, geometric or random, got 'later'"),  # type: ignore[arg-type]
        (
            lambda: hm.GoalDT(relabel_gamma=1.0),
            "geometric relabelling must be at least 0 and below 1, got 1.0",
        ),
        (lambda: hm.UDRL(relabel="random"), "what was earned elsewhere is no command"),  # type: ignore[arg-type]
        (lambda: hm.RCP(given="reward"), "given is return or advantage, got 'reward'"),  # type: ignore[arg-type]
        (lambda: hm.RCP(beta=0.0), "beta must be above 0"),
        (lambda: hm.RCP(value_steps=0), "at least one step"),
    ],
)
def test_settings_that_cannot_be(make: Any, message: str) -> None:
    with pytest.raises(HimatchError, match=message):
        make()
