"""What training on mapped data keeps in memory does not grow with its steps."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import himatch as hm
from himatch.api import as_split
from himatch.methods import normalizers, support
from himatch.statistics import fences
from himatch.training import make_plan, plan
from himatch.training.sampler import StreamedSampler, make_sampler

EPISODE = 200  # steps: both datasets have twenty validation episodes
ALLOWED = 4.0  # bytes a step: less than one more number
TASK = hm.Task("toy", EPISODE, 4, 1, -1.0, 1.0)


def peak(steps: int, method: hm.methods.Method, folder: Path) -> int:
    """Bytes that everything up to the first batch allocates at most; mapped files are not among them."""
    rng = np.random.default_rng(0)
    observations = rng.standard_normal((steps, 4), dtype=np.float32)
    arrays = {"observations": observations, "actions": np.tanh(observations[:, :1]), "rewards": observations[:, 1]}
    np.savez(folder / "log.npz", **arrays, lengths=np.full(steps // EPISODE, EPISODE))
    del observations, arrays
    tracemalloc.start()
    try:
        data = hm.load_dataset(folder / "log.npz", TASK, mmap=folder / "map")
        planned = make_plan(
            method, lambda: as_split(data, None, "paper"), out=folder / "run", preset="cpu", device="cpu"
        )
        with planned.relabelled() as (z, _):
            normalised_by = planned.normalizers(z)
            planned.write(normalised_by)
            sampler = make_sampler(planned.trained_on, z, planned.spec, normalised_by, planned.device)
            assert isinstance(sampler, StreamedSampler)
            draws = sampler.draw((0,), 0, 64)
            sampler.gather(draws.window[0], draws.ahead[0])
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", [hm.CDT("obs[0]"), hm.DT("reward")], ids=lambda method: method.name)
def test_memory_does_not_grow_with_the_steps(
    method: hm.methods.Method, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is taken at a time, or at most, is more than all of the little data that a test has time for.
    monkeypatch.setattr(normalizers, "_BLOCK", 10_000)
    monkeypatch.setattr(support, "MOST", 50_000)
    monkeypatch.setattr(fences, "SAMPLE", 20_000)
    monkeypatch.setattr(plan, "REFERENCE_STEPS", 50_000)
    few, many, peaks = 100_000, 500_000, []
    for steps in (20_000, few, many):  # the first imports what is imported on demand
        (tmp_path / str(steps)).mkdir()
        peaks.append(peak(steps, method, tmp_path / str(steps)))
    assert (peaks[2] - peaks[1]) / (many - few) < ALLOWED


@pytest.mark.parametrize("method", [hm.CDT("obs[0]"), hm.DT("obs[0]")], ids=lambda method: method.name)
def test_of_very_many_steps_some_episodes_are_kept_for_targets(
    method: hm.methods.Method, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observations = np.random.default_rng(0).standard_normal((2000, 4))
    arrays = {"observations": observations, "actions": np.zeros((2000, 1)), "lengths": np.full(10, EPISODE)}
    data = hm.load_dataset(arrays, TASK)
    monkeypatch.setattr(plan, "REFERENCE_STEPS", 900)
    planned = make_plan(method, lambda: as_split(data, None, "none"), out=tmp_path / "run", preset="cpu", device="cpu")
    reference = planned._reference(hm.resolve_feature("obs[0]", TASK))
    assert len(reference.lengths) == 4
    np.testing.assert_allclose(reference.finals[1], observations[4 * EPISODE - 1, 0], rtol=1e-6)
    # The range is that of all episodes.
    assert reference.frame.bins.low[0] == pytest.approx(observations[:, 0].min())
    assert reference.frame.bins.high[0] == pytest.approx(observations[:, 0].max())
