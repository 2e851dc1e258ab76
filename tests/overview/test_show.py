"""``himatch show``: every method says what it can match, in targets that parse and that the data covers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, assert_refused
from scipy.stats import wasserstein_distance

import himatch as hm
from himatch.overview import Overview
from himatch.overview.text import blocks

TINY = {"preset": "cpu", "steps": 2, "width": 16, "layers": 1, "batch_size": 8, "quiet": True}
LEARNED = {"m": 2, "target_window": 4, "look_ahead": 3}
METHODS: dict[str, hm.methods.Method] = {
    "bc": hm.BC(),
    "dt": hm.DT(),
    "cdt": hm.CDT("x_velocity"),
    "two features": hm.CDT("x_velocity,z_velocity", bins=5),
    "moments": hm.MomentsDT("x_velocity"),
    "goal": hm.GoalDT("height"),
    "goal of states": hm.GoalDT(),
    "gcsl": hm.GCSL("height"),
    "udrl": hm.UDRL(),
    "rcp": hm.RCP(),
    "multi-task": hm.MultiTask("height"),
    "hipi": hm.HIPI("x_velocity"),
    "bdt": hm.BDT(**LEARNED),
    "meta-bc": hm.MetaBC(m=3, encoder=(16,), tasks=3, context_steps=4, pretrain_steps=2),
}


@pytest.fixture
def trained(name: str, hopper: hm.TrajectoryDataset, tmp_path: Path) -> hm.Policy:
    return hm.train(METHODS[name], hopper, out=tmp_path / "run", split="paper", seeds=2, **TINY)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_can_match(name: str, trained: hm.Policy) -> None:
    shown = trained.show()
    assert isinstance(shown, Overview)
    assert shown.targets
    for suggestion in shown.targets:
        target = trained.target(suggestion.target)
        if suggestion.outside is not None:
            found = trained.reference().support(target)
            assert suggestion.outside == found.outside
            if not suggestion.target.startswith("heldout"):
                assert found.outside < 0.4  # so few steps leave holes in the bins
    assert json.loads(json.dumps(shown.as_json(), allow_nan=False))["seeds"] == [0, 1]
    text = repr(shown)
    for said in (trained.method.name, "hopper", "next: himatch match", "observations (11)", "obs[5] x_velocity"):
        assert said in text
    assert "<table>" in trained._repr_html_()
    if name == "bc":
        assert shown.conditionings == {}
        assert "not conditioned" in text
    else:
        assert shown.sensitivity is not None
        assert len(shown.sensitivity) == 2


def test_what_the_data_covers_is_in_numbers(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    shown = hm.train(hm.CDT("x_velocity"), hopper, out=tmp_path / "run", **TINY).show()
    values = np.concatenate([episode.observations[:, 5] for episode in hopper])
    (covered,) = shown.covered
    assert (covered.low, covered.high) == (pytest.approx(values.min()), pytest.approx(values.max()))
    assert covered.quantiles["25"] == pytest.approx(np.quantile(values, 0.25), rel=1e-5)
    assert sum(covered.histogram) == pytest.approx(1.0)
    assert shown.conditionings.keys() == {"nominal", "remaining", "planned", "rehearsed"}
    assert {suggestion.what for suggestion in shown.targets} >= {"low", "high", "low, then high"}
    assert all(suggestion.mixture is not None for suggestion in shown.targets)


def test_returns_are_those_that_episodes_had(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    shown = hm.train(hm.DT(), hopper, out=tmp_path / "run", **TINY).show()
    wanted = [float(s.target.removeprefix("return(").removesuffix(")")) for s in shown.targets]
    assert wanted == sorted(wanted)
    assert wanted[-1] == pytest.approx(hopper.returns.max(), rel=0.01)
    assert all(s.outside == 0 for s in shown.targets)


def test_labels_come_with_a_target_each(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    named = [
        hm.Trajectory(e.observations, e.actions, e.rewards, e.final_observation, e.terminated, label)
        for e, label in zip(hopper, ["walk", "hop"] * 10, strict=True)
    ]
    shown = hm.train(hm.CDT("x_velocity"), hm.load_dataset(named, "hopper"), out=tmp_path / "run", **TINY).show()
    assert [(label.name, label.episodes, label.where) for label in shown.labels] == [
        ("walk", 10, "training"),
        ("hop", 10, "training"),
    ]
    for label, target in zip(("walk", "hop"), (label.target for label in shown.labels), strict=True):
        own = [e.observations[:, 5] for e in named if e.label == label]
        distances = [wasserstein_distance(one, np.concatenate(own)) for one in own]
        near = [float(f"{np.median(own[i]):.3g}") for i in np.argsort(distances)[:3]]  # bins are coarse
        assert target is not None
        assert float(target.removeprefix("normal(").split(",")[0]) in near


def level(value: float, label: str | None = None, steps: int = 50) -> hm.Trajectory:
    """An episode whose first number stays about one value."""
    rng = np.random.default_rng(int(1000 * value))
    seen = np.stack([rng.normal(value, 0.1, steps), rng.normal(size=steps)], axis=1).astype(np.float32)
    return hm.Trajectory(seen, rng.normal(size=(steps, 1)).astype(np.float32), label=label)


LEVEL = hm.Task("level", 50, features={"height": 0})


def test_the_target_of_a_label_is_not_its_first_episode(tmp_path: Path) -> None:
    """The first of each is a stray one."""
    kinds = {"calm": [9.0, *np.linspace(1.0, 1.2, 9)], "wild": [0.0, *np.linspace(5.0, 5.2, 9)]}
    episodes = [level(value, label) for label, values in kinds.items() for value in values]
    shown = hm.train(hm.CDT("height"), hm.load_dataset(episodes, LEVEL), out=tmp_path / "cdt", **TINY).show()
    found = [float((label.target or "").removeprefix("normal(").split(",")[0]) for label in shown.labels]
    assert found == pytest.approx([1.1, 5.1], abs=0.1)
    shown = hm.train(hm.GoalDT("height"), hm.load_dataset(episodes, LEVEL), out=tmp_path / "goal", **TINY).show()
    found = [float((label.target or "").removeprefix("goal(").removesuffix(")")) for label in shown.labels]
    assert found == pytest.approx([1.1, 5.1], abs=0.15)


def test_the_middle_is_that_of_the_values(tmp_path: Path) -> None:
    """Of two kinds of episodes the median one is of the commoner kind; the median of all values lies between."""
    episodes = [level(value) for value in (*np.linspace(3.9, 4.1, 9), 5.5, *np.linspace(10.9, 11.1, 12))]
    episodes += [level(value, steps=25) for value in np.linspace(3.5, 3.7, 7)]
    data = hm.load_dataset(episodes, LEVEL)
    shown = hm.train(hm.CDT("height"), data, out=tmp_path / "run", **TINY).show()
    middle = next(suggestion.target for suggestion in shown.targets if suggestion.what == "middle")
    assert float(middle.removeprefix("normal(").split(",")[0]) == pytest.approx(5.5, abs=0.1)


def test_where_nothing_lies_in_the_middle_there_is_no_such_target(tmp_path: Path) -> None:
    data = hm.load_dataset([level(value) for value in (*np.linspace(3.9, 4.1, 9), *np.linspace(10.9, 11.1, 8))], LEVEL)
    shown = hm.train(hm.CDT("height"), data, out=tmp_path / "run", **TINY).show()
    assert [suggestion.what for suggestion in shown.targets] == ["low", "high", "low, then high", "mostly low"]


def test_suggestions_do_not_take_the_names_of_labels(tmp_path: Path) -> None:
    episodes = [level(value, "high" if value < 2 else "low") for value in np.linspace(1.0, 3.0, 12)]
    shown = hm.train(hm.CDT("height"), hm.load_dataset(episodes, LEVEL), out=tmp_path / "run", **TINY).show()
    assert {label.name for label in shown.labels} == {"high", "low"}
    assert not {label.name for label in shown.labels} & {suggestion.what for suggestion in shown.targets}


def test_the_held_out_episode_of_a_group_is_a_typical_one(tmp_path: Path) -> None:
    held = [level(value, "out") for value in (9.0, 2.0, 5.0, 5.1, 5.2)]
    data = hm.load_dataset([*(level(value, "in") for value in np.linspace(1.0, 8.9, 12)), *held], LEVEL)
    shown = hm.train(hm.CDT("height"), data, split="label:out", out=tmp_path / "run", **TINY).show()
    (suggested,) = (s.target for s in shown.targets if s.what.startswith("held-out"))
    assert suggested in {"heldout(2)", "heldout(3)", "heldout(4)"}


def test_the_command_shows_a_bundled_model(run: Run) -> None:
    code, out, err = run("show", "hopper-cdt")
    assert (code, err) == (0, "")
    assert "cdt of x_velocity on hopper, seed 1, 15,000 steps" in out
    assert 'next: himatch match hopper-cdt --target "normal(' in out
    code, out, _ = run("show", "hopper-cdt", "--json")
    assert json.loads(out)["data"]["episodes"] == 1990
    assert_refused(run("show", "nowhere"), "nowhere is not a run folder")


def test_a_policy_is_one_line(run: Run) -> None:
    assert repr(hm.load("hopper-cdt")).startswith("Policy(cdt of x_velocity on hopper, 1 seed, ")


def test_a_histogram_in_blocks() -> None:
    assert blocks([0.0, 0.5, 1.0]) == " ▅█"
