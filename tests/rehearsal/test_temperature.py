"""The temperature of a stochastic policy is a part of its training."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_episodes import episode

import himatch as hm
from himatch import api
from himatch.cli.train import show_temperature
from himatch.interchange import choice
from himatch.interchange.choice import choose_seed
from himatch.methods import Agent
from himatch.rehearsal import temperature
from himatch.rehearsal.temperature import lowest_noise
from himatch.runs.run import Run
from himatch.targets import EpisodeReference

TINY: dict[str, Any] = {"context": 3, "layers": 1, "width": 16, "batch_size": 8, "steps": 12, "preset": "cpu"}
GAUSSIAN: dict[str, Any] = {**TINY, "head": "gaussian", "quiet": True}


pytestmark = pytest.mark.usefixtures("selecting")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EPISODES", 3), ("FEWEST", 1), ("TEMPERATURES", (0.0, 0.5, 1.0))):
        monkeypatch.setattr(temperature, name, value)
    for name in ("ROLLOUTS", "FINAL_ROLLOUTS"):
        monkeypatch.setattr(temperature, name, 1)


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
    assert found["value"] in (0.0, 0.5, 1.0)
    assert found["rule"].startswith("x_velocity, mean charged W1 to 3 training episodes, 1 rollouts each")
    assert found["rule"].endswith(" of every seed")
    assert policy.temperature == hm.load(tmp_path / "run").temperature == found["value"]
    how = f"by sampling at temperature {found['value']:g}" if found["value"] else "by its mean action, temperature 0"
    assert f"acts         {how} (selected on training episodes)" in str(policy.show())


@pytest.mark.parametrize(
    ("seeds", "rollouts", "final"), [(1, 5, 20), (2, 3, 10), (3, 2, 7), (4, 2, 5), (8, 2, 3), (16, 2, 2)]
)
def test_seeds_share_the_rollouts(
    seeds: int,
    rollouts: int,
    final: int,
    hopper: hm.TrajectoryDataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One temperature for all seeds takes about as many rollouts however many there are."""
    asked: list[tuple[tuple[float, ...], int]] = []

    def scores(
        run: Run, agent: Agent, targets: list[Any], temperatures: tuple[float, ...], rollouts: int, **_: Any
    ) -> temperature.Scores:
        asked.append((tuple(temperatures), rollouts))
        return {x: np.full((len(targets), len(agent.seeds)), abs(x - 0.7)) for x in temperatures}

    monkeypatch.setattr(temperature, "training_scores", scores)
    hm.train(hm.CDT("x_velocity"), hopper, out=tmp_path / "run", seeds=seeds, **{**GAUSSIAN, "steps": 1})
    found = stored(tmp_path / "run")
    assert asked == [(temperature.TEMPERATURES, rollouts), ((0.5, 0.7), final)]
    how = f"{rollouts} rollouts each, {final} of the best and the next lower{' of every seed' if seeds > 1 else ''}"
    assert (found["value"], found["rule"].split("training episodes, ")[1]) == (0.7, how)


def test_without_noise_there_is_no_second_round(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def scores(run: Run, agent: Agent, targets: list[Any], temperatures: Any, *_: Any, **__: Any) -> temperature.Scores:
        asked.append(temperatures)
        return {x: np.full((len(targets), 1), 1.0 + x) for x in temperatures}

    monkeypatch.setattr(temperature, "training_scores", scores)
    assert hm.train(hm.CDT("x_velocity"), hopper, out=tmp_path / "run", **GAUSSIAN).temperature == 0.0
    assert asked == [temperature.TEMPERATURES]


@pytest.mark.usefixtures("few")
def test_no_episode_mixture_is_looked_for(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of joint features it takes seconds a target, and no score needs it."""

    def refused(*_: object) -> None:
        raise AssertionError("a mixture")

    monkeypatch.setattr(EpisodeReference, "mixture", refused)
    hm.train(hm.GCSL("x_velocity, z_velocity"), hopper, out=tmp_path / "run", **GAUSSIAN)
    assert stored(tmp_path / "run")["tried"]


def test_less_noise_is_preferred_unless_it_is_clearly_worse() -> None:
    """One fall among many rollouts does not tell two temperatures apart; a difference at every target does."""
    calm = np.full((15, 4), 0.10)
    bolder = calm - 0.02
    assert lowest_noise({0.7: calm, 0.85: bolder}) == 0.85
    fallen = bolder.copy()
    fallen[3, 2] += 1.1  # the means are 0.100 and 0.098
    assert lowest_noise({0.7: calm, 0.85: fallen}) == 0.7
    fallen[4, 1] += 4.0
    assert lowest_noise({0.7: calm, 0.85: fallen}) == 0.7
    assert lowest_noise({0.7: calm}) == 0.7


def test_the_seed_that_is_bundled_is_judged_at_the_temperature_of_its_run(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scores(
        run: Run, agent: Agent, targets: list[Any], temperatures: Any, rollouts: int, **_: Any
    ) -> temperature.Scores:
        assert (temperatures, rollouts) == ((0.3,), 5)
        return {0.3: np.array([[2.0, 1.0]] * len(targets))}

    policy = hm.train(hm.CDT("x_velocity"), hopper, out=tmp_path / "run", seeds=2, temperature=0.3, **GAUSSIAN)
    monkeypatch.setattr(choice, "training_scores", scores)
    chosen = choose_seed(policy)
    assert (chosen.seed, chosen.scores) == (1, {0: 2.0, 1: 1.0})
    assert chosen.rule.endswith("training episodes, 5 rollouts each")


def test_it_is_selected_once_for_the_same_weights(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selected: list[int] = []

    def scores(run: Run, agent: Agent, targets: list[Any], temperatures: Any, *_: Any, **__: Any) -> temperature.Scores:
        selected.append(len(targets))
        return {x: np.full((len(targets), 1), abs(x - 0.7)) for x in temperatures}

    monkeypatch.setattr(temperature, "training_scores", scores)
    for resume in (False, True, True):
        assert hm.train(hm.DT(), hopper, out=tmp_path / "run", resume=resume, **GAUSSIAN).temperature == 0.7
    assert len(selected) == 2  # two rounds
    given = hm.train(hm.DT(), hopper, out=tmp_path / "run", resume=True, temperature=0.25, **GAUSSIAN)
    assert given.temperature == hm.load(tmp_path / "run").temperature == 0.25
    assert len(selected) == 2


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
        hm.train(hm.DT(), hopper, out=tmp_path / "run", temperature=0.5, **{**GAUSSIAN, "head": "tanh"})
    policy = hm.train(hm.DT(), hopper, out=tmp_path / "run", **{**GAUSSIAN, "head": "tanh"})
    assert "acts         deterministically\n" in str(policy.show())
    assert "temperature" not in json.loads((tmp_path / "run" / "scores.json").read_text())


def test_without_an_environment_nothing_is_selected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    task = hm.Task("arm", horizon=40, features={"height": 0})
    data = hm.load_dataset([episode(rng, 20, level=i / 5) for i in range(20)], task)
    policy = hm.train(hm.CDT("height"), data, out=tmp_path / "one", **GAUSSIAN)
    assert policy.temperature == hm.load(tmp_path / "one").temperature == 0.0
    assert "acts         by its mean action, temperature 0\n" in str(policy.show())
    assert "temperature" not in json.loads((tmp_path / "one" / "scores.json").read_text())
    capsys.readouterr()
    show_temperature(policy)
    said = "temperature of sampled actions: 0 (nothing was simulated to select another)\n"
    assert capsys.readouterr().out == said


def test_an_environment_of_another_shape_is_noted(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = hm.load_dataset(
        [episode(rng, 20, level=i / 5) for i in range(20)],
        replace(hm.get_task("hopper"), name="hop", env_id="HalfCheetah-v5"),
    )
    with pytest.warns(
        hm.HimatchWarning, match="temperature of sampled actions stays 0, nothing was simulated: the env"
    ):
        policy = hm.train(hm.CDT("x_velocity"), data, out=tmp_path / "run", **GAUSSIAN)
    assert policy.temperature == 0.0
