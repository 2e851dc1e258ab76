"""What a run folder says of itself, whatever has changed around it since."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Run, assert_refused
from untrained import fallen_hoppers

import himatch as hm
from himatch.data import named_split
from himatch.errors import DataError, HimatchError, HimatchWarning
from himatch.interchange.bundle import bundle
from himatch.interchange.card import command
from himatch.runs.folder import RunFolder
from himatch.simulation import make_simulator, record
from himatch.tasks import registry
from himatch.training import Interrupted, make_plan, train
from himatch.training.plan import Plan
from himatch.training.update import Update

SMALL: dict[str, Any] = {"preset": "cpu", "steps": 2, "width": 16, "layers": 1, "quiet": True}


@pytest.fixture
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset(fallen_hoppers(range(24)), "hopper")


def test_a_run_keeps_its_own_task(data: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def register(**features: Any) -> None:
        monkeypatch.setattr(registry, "_registry", {n: t for n, t in registry._registry.items() if n != "arm"})
        hm.register_task("arm", horizon=1000, observation_width=11, action_width=3, features=features)

    def effort(observations: Any, actions: Any, rewards: Any) -> Any:
        return actions[:, 0] ** 2

    register(speed=5, effort=effort)
    arms = hm.load_dataset([hm.Trajectory(e.observations, e.actions, e.rewards) for e in data], "arm")
    before = hm.train(hm.CDT("speed"), arms, out=tmp_path / "run", **SMALL).action_error(arms)
    register(speed=2, more=7, effort=effort)
    with pytest.warns(HimatchWarning, match=r"^task arm .* differs in speed from the one that this run was trained on"):
        loaded = hm.load(tmp_path / "run")
    assert loaded.task.features["speed"] == 5
    assert "more" in loaded.task.features
    np.testing.assert_array_equal(loaded.action_error(arms), before)
    register(speed=5)
    with pytest.raises(HimatchError, match="registered without 'effort', and its feature 'effort' is a function"):
        hm.load(tmp_path / "run")


def test_an_environment_that_is_registered_after_training_is_found(
    data: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs of a robot come first, a simulator of it later."""

    def register(**more: Any) -> None:
        monkeypatch.setattr(registry, "_registry", {n: t for n, t in registry._registry.items() if n != "arm"})
        widths = {"observation_width": 11, "action_width": 3, "action_low": -1.0, "action_high": 1.0}
        hm.register_task("arm", horizon=1000, features={"speed": 5}, **widths, **more)

    register()
    arms = hm.load_dataset([hm.Trajectory(e.observations, e.actions) for e in data], "arm")
    hm.train(hm.CDT("speed"), arms, out=tmp_path / "run", **SMALL)
    register(env_id="Hopper-v5")
    assert hm.load(tmp_path / "run").match(arms[0], episodes=1).lengths.min() > 0


def test_a_policy_without_rewards_is_scored_on_what_there_is(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    task = hm.Task("logs", 1000, 11, 3, -1.0, 1.0, features={"speed": 5, "height": 0}, env_id="Hopper-v5")
    logs = hm.load_dataset([hm.Trajectory(e.observations, e.actions) for e in data], task)
    policy = hm.train(hm.BDT(m=2, target_window=5), logs, out=tmp_path / "run", context=5, **SMALL)
    assert policy.feature == "speed"  # the first that the task names
    assert policy.match(logs[0], episodes=1).frame.feature.name == "speed"


@pytest.mark.parametrize(
    ("split", "name"),
    [
        (hm.paper_split, "paper"),
        (hm.random_split, "random"),
        (lambda data: hm.random_split(data, seed=1), "SPLIT"),
        (lambda data: hm.paper_split(data, per_group=2), "SPLIT"),
        (lambda data: data, "none"),
    ],
)
def test_its_command_names_the_split(data: hm.TrajectoryDataset, split: Any, name: str, tmp_path: Path) -> None:
    policy = hm.train(hm.BC(), split(data), out=tmp_path / "run", **SMALL)
    assert f" --split {name} " in command(policy.description)


def test_a_split_by_labels_is_named_by_them(data: hm.TrajectoryDataset) -> None:
    labelled = hm.load_dataset([hm.Trajectory(e.observations, e.actions, label=str(i % 3)) for i, e in enumerate(data)])
    assert hm.label_split(labelled, ["0", "2"]).name == "label:0,2"
    assert hm.label_split(labelled, ["0"], per_label=1).name is None


def test_an_evaluation_says_where_and_with_what(data: hm.TrajectoryDataset, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "run"
    hm.train(hm.CDT("x_velocity"), hm.random_split(data), out=out, head="gaussian", temperature=0.85, **SMALL)
    for options in ((), ("--env", "Hopper-v4", "--weights", "best"), ("--temperature", 0)):
        code, printed, err = run("evaluate", out, "--episodes", 1, *options)
        assert code == 0, err
        assert "total" not in printed  # the same as that of the only group
    names = ("evaluation", "evaluation-best-Hopper-v4", "evaluation-temperature-0")
    found = [json.loads((out / f"{name}-episodes-1.json").read_text()) for name in names]
    facts = [[content["provenance"][key] for key in ("env_id", "weights", "temperature")] for content in found]
    assert facts == [["Hopper-v5", "last", 0.85], ["Hopper-v4", "best", 0.85], ["Hopper-v5", "last", 0.0]]
    assert [content["summary"]["total"] == content["summary"]["random"] for content in found] == [True] * 3


@pytest.mark.filterwarnings("ignore:.*lies where no training episode goes")
def test_errors_of_other_kinds_are_not_summed_up(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = hm.train(hm.DT(), data, out=tmp_path / "run", **SMALL)
    (tmp_path / "targets").write_text("a | return(20)\nb | normal(1,0.2)\n")
    named = policy.named_targets(str(tmp_path / "targets"))
    for found in (policy.evaluate(named, episodes=1), hm.evaluate(policy, str(tmp_path / "targets"), episodes=1)):
        assert set(found.as_json()["summary"]) == {"a", "b"}


def test_an_ant_in_another_version(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).uniform(-1, 1, (3, 1000, 8))
    ants = record(make_simulator("ant", 3), lambda _, number, step: noise[number, step], range(3))
    policy = hm.train(hm.CDT("x_velocity"), hm.load_dataset(ants, "ant"), out=tmp_path / "run", **SMALL)
    for env in ("Ant-v4", "Ant-v5"):
        assert policy.match(ants[0], episodes=1, env=env).lengths.shape == (1, 1)


@pytest.mark.usefixtures("whole_ends")
def test_sensitivity_does_not_depend_on_the_order_of_the_list(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = hm.train(hm.CDT("x_velocity"), data, out=tmp_path / "run", **SMALL)
    episodes = [data[i] for i in range(6)]
    others = [policy.action_error(episodes, episodes[k:] + episodes[:k]) for k in range(1, 6)]
    expected = np.mean(others, axis=0) / policy.action_error(episodes)
    for order in (range(6), (0, 2, 4, 1, 3, 5)):
        found = policy.score([episodes[i] for i in order])["sensitivity"]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.isnan(policy.score(episodes[:1])["sensitivity"]).all()
    for nothing in (None, [], data[0]):
        with pytest.raises(HimatchError, match="list of episodes"):
            policy.score(nothing)  # type: ignore[arg-type]


def test_names_of_targets_keep_their_digits() -> None:
    for text in ("return(1234567.5)", "goal(0.12345678)", "shift(normal(1,0.1), 0.1234567)"):
        assert hm.parse_target(hm.parse_target(text).name).name == hm.parse_target(text).name == text


def test_a_policy_that_keeps_one_set_of_weights_says_so() -> None:
    with pytest.raises(DataError, match="hopper-cdt holds only the last weights"):
        hm.load("hopper-cdt", weights="best")


@pytest.mark.parametrize("method", [hm.BDT(m=2), hm.DTE2E(m=2)], ids=lambda method: method.name)
def test_runs_from_before_codes_had_names(
    method: hm.methods.Method, data: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """They looked ahead, unless their codes were literal."""
    now = hm.train(method, data, out=tmp_path / "now", split="none", **SMALL)
    named = ("codes", "public_mask", "public_start")
    earlier = {key: value for key, value in now.description["method"].items() if key not in named}

    def written(literal: bool) -> Path:
        describe, folder, stored = Plan.describe, tmp_path / f"literal {literal}", {**earlier, "literal": literal}
        settings = {key: value for key, value in SMALL.items() if key != "quiet"}
        plan = make_plan(method, lambda: named_split(data, "none"), out=folder, **settings)
        with monkeypatch.context() as patched:
            patched.setattr(Plan, "describe", lambda self: {**describe(self), "method": stored})
            train(plan, quiet=True)
        assert RunFolder(folder).description()["method"] == stored
        return folder

    looked_ahead = written(False)
    loaded = hm.load(looked_ahead)
    assert loaded.method == method
    assert loaded.description["method"] == now.description["method"]
    np.testing.assert_array_equal(loaded.actions(data[0]), now.actions(data[0]))
    assert hm.train(method, data, out=looked_ahead, split="none", resume=True, **SMALL).method == method
    assert hm.train(method, data, out=tmp_path / "more", start=looked_ahead, **SMALL).seeds == (0,)
    literal = written(True)
    said = f"{literal}: its {method.name} has literal codes (at t they saw the states t, t + 1, ...)"
    assert_refused(run("show", literal), said)
    with pytest.raises(DataError, match=f"^{re.escape(said)}.*; train it again with codes"):
        hm.train(method, data, out=literal, split="none", resume=True, **SMALL)


def test_the_bundled_imitator_looks_ahead() -> None:
    assert hm.load("halfcheetah-bdt").method == hm.BDT(m=16, target_window=20, look_ahead=100, codes="look-ahead")


def written_with(members: int, data: hm.TrajectoryDataset, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that stopped half-way, by the version that wrote how many networks make up a policy."""
    step, describe = Update._one_step, Plan.describe

    def stopped(self: Update) -> None:
        step(self)
        signal.raise_signal(signal.SIGTERM)

    def described(self: Plan) -> dict[str, Any]:
        found = describe(self)
        return {**found, "model": {**found["model"], "members": members}}

    with monkeypatch.context() as patched:
        patched.setattr(Update, "_one_step", stopped)
        patched.setattr(Plan, "describe", described)
        with pytest.raises(Interrupted):
            hm.train(hm.DT(), hm.paper_split(data), out=run, **SMALL)
    assert RunFolder(run).description()["model"]["members"] == members


def test_a_policy_that_says_it_is_one_network_is_like_any_other(
    data: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written_with(1, data, tmp_path / "run", monkeypatch)
    resumed = hm.train(hm.DT(), hm.paper_split(data), out=tmp_path / "run", resume=True, **SMALL)
    whole = hm.train(hm.DT(), hm.paper_split(data), out=tmp_path / "whole", **SMALL)
    np.testing.assert_array_equal(resumed.actions(data[0]), whole.actions(data[0]))
    assert hm.load(tmp_path / "run").description["model"] == whole.description["model"]
    assert command(resumed.description) == command(whole.description)
    assert bundle(tmp_path / "run", tmp_path / "bundled", seed=0, episodes=1).agent.config == whole.agent.config
    assert hm.train(hm.DT(), data, start=tmp_path / "run", out=tmp_path / "more", **SMALL).seeds == (0,)


def test_a_policy_of_several_networks_is_refused(
    data: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    written_with(4, data, tmp_path / "run", monkeypatch)
    said = f"{tmp_path / 'run'}: its policy is 4 networks as one, which himatch no longer has; train it again"
    assert_refused(run("show", tmp_path / "run"), said)
    for more in ({"out": tmp_path / "run", "resume": True}, {"out": tmp_path / "more", "start": tmp_path / "run"}):
        with pytest.raises(DataError, match=f"^{re.escape(said)}$"):
            hm.train(hm.DT(), hm.paper_split(data), **more, **SMALL)
