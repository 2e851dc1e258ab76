"""Every method takes discrete actions through the one contract, or refuses them in one line."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from grid_world import ACTIONS, STEPS, Grid, grid, task, walks

import himatch as hm
from himatch.errors import DataError, HimatchError
from himatch.methods import METHODS

__all__ = ["grid"]

TINY: dict[str, Any] = {"context": 3, "layers": 1, "width": 16, "batch_size": 8, "steps": 6, "preset": "cpu"}
SMALL: dict[str, dict[str, Any]] = {
    "feature": {"feature": "x"},
    "look_ahead": {"m": 2, "target_window": 4, "look_ahead": 3},
    "context_steps": {"m": 3, "encoder": (16,), "tasks": 3, "context_steps": 4},
    "pretrain_steps": {"pretrain_steps": 3},
}
"""Small settings by a setting that methods have which have these."""


def small(name: str) -> hm.methods.Method:
    """A small variant of any registered method, by the settings it has."""
    known = {field.name for field in dataclasses.fields(METHODS[name])}
    return hm.make_method(name, **{k: v for key, more in SMALL.items() if key in known for k, v in more.items()})


def readable(name: str, data: hm.TrajectoryDataset) -> hm.TrajectoryDataset:
    """The walks, for multi-task without their labels, which are places and no numbers."""
    if name != "multi-task":
        return data
    return hm.load_dataset([dataclasses.replace(episode, label=None) for episode in data], data.task)


CHOOSING = [name for name, method in METHODS.items() if method.chooses]


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset(walks(30), task())


def test_every_clone_chooses() -> None:
    assert set(METHODS) - set(CHOOSING) == {"focal"}


@pytest.mark.parametrize("name", CHOOSING)
def test_train_save_load_act(name: str, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    hm.train(small(name), readable(name, data), out=tmp_path / "run", seeds=2, split="random", quiet=True, **TINY)
    policy = hm.load(tmp_path / "run")
    assert policy.description["model"]["head"] == policy.agent.policy.head == "categorical"
    assert (policy.task.discrete, policy.temperature) == (ACTIONS, 1.0)
    assert policy.held_out is not None
    episode = policy.held_out[0]
    actions = policy.actions(episode)
    assert actions.shape == (2, STEPS)
    assert actions.dtype == np.int64
    assert ACTIONS.known(actions).all()
    error = policy.score(policy.held_out)["action_error"]
    assert ((error > 0) & (error < 1)).all()

    result = policy.match(hm.demo(episode), episodes=2, feature="x")
    assert result.lengths.shape == (2, 2)
    env = Grid()
    seen, _ = env.reset(seed=0)
    controller = policy.controller(episode, seed=1)
    for _ in range(STEPS):
        action = controller.act(seen)
        assert isinstance(action, int)
        seen, *_ = env.step(action)
    assert "one of 1 to 5: act[0]" in " ".join(str(policy.show()).split())
    assert "by sampling at temperature 1" in str(policy.show())


@pytest.mark.parametrize("name", CHOOSING)
def test_without_noise_a_loop_does_what_logs_say(name: str, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """The controller computes the last token alone, from a context that it keeps itself."""
    trained = hm.train(small(name), readable(name, data), out=tmp_path, quiet=True, temperature=0.0, **TINY)
    assert trained.temperature == 0.0
    controller, env = trained.controller(data[3]), Grid()
    seen, _ = env.reset(seed=1)
    states, taken = [], []
    for _ in range(STEPS):
        states.append(seen)
        taken.append(controller.act(seen))
        seen, *_ = env.step(taken[-1])
    logged = hm.Trajectory(np.array(states), ACTIONS.rows(taken), np.zeros(STEPS))
    assert trained.actions(logged, data[3])[0].tolist() == taken


@pytest.mark.parametrize("name", ["dt", "dt-ae"])
def test_an_interrupted_run_ends_in_the_same_bits(
    name: str, data: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import signal

    from himatch.training import Interrupted
    from himatch.training.update import Update

    whole = hm.train(small(name), data, out=tmp_path / "whole", quiet=True, **TINY)
    step = Update._one_step

    def signalled(self: Update) -> None:
        step(self)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Update, "_one_step", signalled)
    with pytest.raises(Interrupted):
        hm.train(small(name), data, out=tmp_path / "parts", quiet=True, **TINY)
    monkeypatch.undo()
    again = hm.train(small(name), data, out=tmp_path / "parts", quiet=True, resume=True, **TINY)
    state = again.agent.state_dict()
    assert all(torch.equal(tensor, state[key]) for key, tensor in whole.agent.state_dict().items())
    more = hm.train(small(name), data, out=tmp_path / "more", start=tmp_path / "whole", quiet=True, steps=2)
    assert more.agent.policy.head == "categorical"


@pytest.mark.parametrize(
    ("method", "settings", "said"),
    [
        (hm.DT(), {"head": "gaussian"}, "for which a gaussian head makes no sense; leave --head out"),
        (hm.BC(), {"head": "tanh"}, "for which a tanh head makes no sense"),
        (hm.FOCAL(), {}, "focal is for continuous actions, and those of .* are 5 discrete ones"),
    ],
)
def test_what_makes_no_sense_is_refused(
    method: hm.methods.Method, settings: dict[str, Any], said: str, data: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    with pytest.raises(HimatchError, match=said) as caught:
        hm.train(method, data, out=tmp_path / "run", quiet=True, **{**TINY, **settings})
    assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_categorical_head_needs_discrete_actions(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    with pytest.raises(HimatchError, match="a categorical head chooses among discrete actions, and those of"):
        hm.train(hm.DT(), hopper, out=tmp_path / "run", quiet=True, head="categorical", **TINY)


def test_a_start_has_the_same_actions(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    hm.train(hm.DT(), data, out=tmp_path / "run", quiet=True, **TINY)
    other = hm.load_dataset(
        [{**walk, "actions": walk["actions"] - 1} for walk in walks(30)],
        hm.Task("grid", STEPS, 2, discrete=hm.Discrete(5)),
    )
    with pytest.raises(DataError, match=r"are 5 discrete ones \(1 to 5\), those of .* 5 discrete ones \(0 to 4\)"):
        hm.train(hm.DT(), other, out=tmp_path / "more", start=tmp_path / "run", quiet=True)
