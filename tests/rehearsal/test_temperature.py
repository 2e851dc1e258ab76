"""The temperature of a stochastic policy is a part of its training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_episodes import episode

import himatch as hm
from himatch import api
from himatch.rehearsal import temperature

TINY: dict[str, Any] = {"context": 3, "layers": 1, "width": 16, "batch_size": 8, "steps": 12, "preset": "cpu"}
GAUSSIAN: dict[str, Any] = {**TINY, "head": "gaussian", "quiet": True}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("GROUP", 1), ("ROLLOUTS", 1), ("TEMPERATURES", (0.0, 0.5, 1.0))):
        monkeypatch.setattr(temperature, name, value)


def stored(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "scores.json").read_text())["temperature"]
    return found


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("method", [hm.CDT("x_velocity"), hm.BDT(m=2, target_window=4, look_ahead=3)])
def test_training_selects_the_one_that_matches_best(
    method: hm.methods.Method, hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    policy = hm.train(method, hopper, out=tmp_path / "run", split="paper", seeds=2, **GAUSSIAN)
    found = stored(tmp_path / "run")
    assert sorted(found["tried"]) == ["0", "0.5", "1"]
    assert found["tried"][f"{found['value']:g}"] == min(found["tried"].values())
    assert found["rule"] == "x_velocity, mean charged W1 to 3 training episodes, 1 rollouts each"
    assert policy.temperature == hm.load(tmp_path / "run").temperature == found["value"]
    said = f"acts         by sampling at temperature {found['value']:g} (selected on training episodes)"
    assert said in str(policy.show())


def test_it_is_selected_once_for_the_same_weights(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selected: list[int] = []

    def scores(policy: hm.Policy, targets: list[Any], **_: Any) -> dict[float, list[float]]:
        selected.append(len(targets))
        return {0.7: [1.0], 0.5: [3.0]}

    monkeypatch.setattr(temperature, "training_scores", scores)
    for resume in (False, True, True):
        assert hm.train(hm.DT(), hopper, out=tmp_path / "run", resume=resume, **GAUSSIAN).temperature == 0.7
    assert len(selected) == 1
    given = hm.train(hm.DT(), hopper, out=tmp_path / "run", resume=True, temperature=0.25, **GAUSSIAN)
    assert given.temperature == hm.load(tmp_path / "run").temperature == 0.25
    assert len(selected) == 1


def test_ctrl_c_says_what_is_kept(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> dict[str, Any]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(api, "select_temperature", interrupted)
        with pytest.raises(KeyboardInterrupt, match="run is trained; --resume selects the temperature"):
            hm.train(hm.DT(), hopper, out=tmp_path / "run", **GAUSSIAN)
    monkeypatch.setattr(api, "select_temperature", lambda *_, **__: {"value": 0.5, "tried": {}, "rule": "a rule"})
    assert hm.train(hm.DT(), hopper, out=tmp_path / "run", resume=True, **GAUSSIAN).temperature == 0.5


def test_a_given_one_needs_no_rollouts(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(api, "select_temperature")
    policy = hm.train(hm.DT(), hopper, out=tmp_path / "run", temperature=0.3, **GAUSSIAN)
    assert policy.temperature == hm.load(tmp_path / "run").temperature == 0.3
    assert policy.run.scores["action_error"]  # type: ignore[index]


@pytest.mark.parametrize("wrong", [-0.1, float("nan")])
def test_impossible_ones_are_refused_before_training(
    wrong: float, hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    with pytest.raises(hm.HimatchError, match="temperature"):
        hm.train(hm.DT(), hopper, out=tmp_path / "run", temperature=wrong, **GAUSSIAN)
    assert not (tmp_path / "run").exists()


def test_a_deterministic_policy_has_none(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    with pytest.raises(hm.HimatchError, match="deterministic policy has no temperature"):
        hm.train(hm.DT(), hopper, out=tmp_path / "run", quiet=True, temperature=0.5, **TINY)
    policy = hm.train(hm.DT(), hopper, out=tmp_path / "run", quiet=True, members=2, **TINY)
    assert "acts         deterministically, 2 networks as one" in str(policy.show())
    assert "temperature" not in json.loads((tmp_path / "run" / "scores.json").read_text())


def test_without_an_environment_it_stays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    task = hm.Task("arm", horizon=40, features={"height": 0})
    data = hm.load_dataset([episode(rng, 20, level=i / 5) for i in range(20)], task)
    with pytest.warns(hm.HimatchWarning, match=r"temperature of sampled actions stays 0\.85, nothing was simulated"):
        policy = hm.train(hm.CDT("height"), data, out=tmp_path / "run", **GAUSSIAN)
    assert policy.temperature == 0.85
