"""The folder of docs/tutorials/new-method.md keeps the contract of a method, and nothing else has to know of it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from document_blocks import ROOT, as_a_process, blocks
from safetensors.torch import load_file

import himatch as hm
from himatch.methods import METHODS
from himatch.training import Interrupted

PAGE = "docs/tutorials/new-method.md"
SMALL: dict[str, Any] = {"preset": "cpu", "steps": 12, "width": 16, "batch_size": 8, "split": "paper", "quiet": True}


@pytest.fixture
def method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The tutorial's method, from its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for block in blocks(PAGE):
        if "file" in block.notes:
            file = Path(block.notes["file"])
            file.parent.mkdir(exist_ok=True)
            file.write_text(block.code)
    with as_a_process():
        import hindsight_mlp  # type: ignore[import-not-found]

        yield hindsight_mlp.HindsightMLP("x_velocity")
    for name in [name for name in sys.modules if name.startswith("hindsight_mlp")]:
        del sys.modules[name]


def weights(run: str, seed: int) -> dict[str, Any]:
    return load_file(Path(run) / f"seed-{seed}" / "last.safetensors")


def test_it_trains_loads_and_predicts(method: Any, hopper: hm.TrajectoryDataset) -> None:
    assert METHODS["hindsight-mlp"] is type(method)
    trained = hm.train(method, hopper, out="run", seed=3, seeds=2, **SMALL)
    policy = hm.load("run")
    assert policy.method == method
    assert policy.held_out is not None
    actions = policy.actions(policy.held_out[0])
    assert actions.shape == (2, len(policy.held_out[0]), 3)
    np.testing.assert_array_equal(actions, trained.actions(policy.held_out[0]))


def test_a_stacked_seed_is_its_single_run(method: Any, hopper: hm.TrajectoryDataset) -> None:
    hm.train(method, hopper, out="two", seeds=2, **SMALL)
    hm.train(method, hopper, out="one", seed=1, **SMALL)
    for name, tensor in weights("one", 1).items():
        np.testing.assert_allclose(tensor, weights("two", 1)[name], rtol=1e-4, atol=1e-5)


def test_an_interrupted_run_ends_in_the_same_bits(
    method: Any, hopper: hm.TrajectoryDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    hm.train(method, hopper, out="whole", **SMALL)
    agent, done = sys.modules["hindsight_mlp.method"].WindowAgent, 0

    def stop(self: object) -> None:
        nonlocal done
        done += 1
        if done == 5:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(agent, "after_step", stop)
    with pytest.raises(Interrupted, match="--resume"):
        hm.train(method, hopper, out="parts", **SMALL)
    hm.train(method, hopper, out="parts", resume=True, **SMALL)
    for name, tensor in weights("whole", 0).items():
        np.testing.assert_array_equal(tensor, weights("parts", 0)[name])


def test_an_action_depends_on_the_past_and_z_alone(method: Any, hopper: hm.TrajectoryDataset) -> None:
    """Row t of the network may not depend on later rows, nor on any action."""
    policy = hm.train(method, hopper, out="run", **SMALL)
    episode = hopper[3]
    other = hm.load_dataset([hopper[3]], "hopper")[0].observations.copy()
    other[10:] += 1.0
    changed = hm.Trajectory(other, -episode.actions, episode.rewards)
    own, moved = policy.actions(episode, "normal(1,0.2)"), policy.actions(changed, "normal(1,0.2)")
    np.testing.assert_array_equal(own[:, :10], moved[:, :10])
    assert not np.array_equal(own[:, 10:], moved[:, 10:])


def test_himatch_does_not_know_it() -> None:
    for file in (ROOT / "src").rglob("*.py"):
        assert "hindsight_mlp" not in file.read_text(), file
