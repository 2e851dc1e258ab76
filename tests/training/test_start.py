"""A warm start: the other run's weights are the first ones, with everything they need to mean the same."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Run, assert_refused
from random_episodes import episode
from run_files import describe_anew

import himatch as hm
from himatch.data import named_split
from himatch.errors import DataError, HimatchError, HimatchWarning
from himatch.methods import METHODS
from himatch.training import Interrupted, check_same, configure
from himatch.training.checkpoint import Checkpoint

MODEL: dict[str, Any] = {"context": 3, "layers": 1, "width": 16}
TINY: dict[str, Any] = {"preset": "cpu", "batch_size": 8, "steps": 12, "quiet": True}
STILL: dict[str, Any] = {**TINY, "steps": 1, "learning_rate": 1e-12}
LEARNED = {"m": 2, "target_window": 4, "look_ahead": 3}
TASKS = {"m": 3, "encoder": (16, 16), "tasks": 3, "context_steps": 4, "pretrain_steps": 6}
SMALL: dict[str, hm.methods.Method] = {
    **{name: hm.make_method(name) for name in ("bc", "dt", "cdt", "moments", "goal", "gcsl", "udrl")},
    "rcp": hm.RCP(given="advantage", value_steps=6),
    **{name: hm.make_method(name, feature="x_velocity") for name in ("multi-task", "hipi", "gh")},
    **{name: hm.make_method(name, **LEARNED) for name in ("bdt", "dt-e2e", "dt-cpc")},
    "dt-ae": hm.DTAE(mode="frozen", pretrain_steps=6, **LEARNED),
    **{name: hm.make_method(name, **TASKS) for name in ("meta-bc", "focal")},
}


@pytest.fixture
def other() -> hm.TrajectoryDataset:
    """New logs, of other levels."""
    rng = np.random.default_rng(1)
    return hm.load_dataset([episode(rng, 20 + i, level=i / 6) for i in range(16)], "hopper")


def start(method: hm.methods.Method, data: hm.TrajectoryDataset, out: Path, **more: Any) -> hm.Policy:
    return hm.train(method, data, out=out, **{**TINY, **MODEL, **more})


def test_every_method_is_here() -> None:
    assert {method.name for method in SMALL.values()} == set(METHODS)


@pytest.mark.parametrize("name", SMALL)
def test_a_warm_start_acts_as_the_run_it_starts_from(
    name: str, hopper: hm.TrajectoryDataset, other: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    first = start(SMALL[name], hopper, tmp_path / "first", seeds=2)
    again = hm.train(SMALL[name], hopper, out=tmp_path / "again", seeds=2, start=tmp_path / "first", **STILL)
    new = hm.train(SMALL[name], other, out=tmp_path / "new", seeds=2, start=tmp_path / "first", **STILL)
    for policy in (again, new):
        assert policy.run.description["model"] == first.run.description["model"]
        for mine, theirs in zip(policy.agent.state_dict().values(), first.agent.state_dict().values(), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=2e-3)  # slow copies follow at any rate
    logged = hopper[4]
    np.testing.assert_allclose(again.actions(logged), first.actions(logged), atol=1e-5)
    record = new.description["start"]
    assert record["run"] == "first"
    assert record["data"]["hash"] == hopper.content_hash != new.description["data"]["hash"] == other.content_hash
    assert record["normalizers"] == "keep"
    assert len(record["digest"]) == 64


def test_learning_goes_on_from_a_lower_loss(
    hopper: hm.TrajectoryDataset, other: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    start(hm.CDT("x_velocity"), hopper, tmp_path / "first", steps=300, learning_rate=3e-3)
    more = {**TINY, "steps": 10, "learning_rate": 1e-4, "quiet": True}
    hm.train(hm.CDT("x_velocity"), hopper, out=tmp_path / "warm", start=tmp_path / "first", **more)
    hm.train(hm.CDT("x_velocity"), hopper, out=tmp_path / "cold", **more, **MODEL)
    warm, cold = (
        json.loads((tmp_path / run / "seed-0" / "metrics.jsonl").read_text().splitlines()[0])["loss"]
        for run in ("warm", "cold")
    )
    assert warm < 0.8 * cold


def test_one_seed_becomes_many_and_several_stay_themselves(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    method = hm.CDT("x_velocity")
    one, two = (start(method, hopper, tmp_path / name, seeds=n) for name, n in (("one", 1), ("two", 2)))
    many = hm.train(method, hopper, out=tmp_path / "many", seeds=3, start=tmp_path / "one", **STILL)
    for k in range(3):
        np.testing.assert_allclose(many.actions(hopper[0])[k], one.actions(hopper[0])[0], atol=1e-5)
    second = hm.train(method, hopper, out=tmp_path / "second", seed=1, start=tmp_path / "two", **STILL)
    np.testing.assert_allclose(second.actions(hopper[0])[0], two.actions(hopper[0])[1], atol=1e-5)
    with pytest.raises(HimatchError, match=r"has the seeds 0, 1 and not 2; start from those"):
        hm.train(method, hopper, out=tmp_path / "three", seeds=3, start=tmp_path / "two", **STILL)


def test_normalizers_and_bins_are_kept_or_fitted_anew(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    method = hm.CDT("x_velocity")
    first = start(method, hopper, tmp_path / "first")
    rng = np.random.default_rng(2)
    fast = hm.load_dataset([episode(rng, 30, level=2 * i) for i in range(8)], "hopper")
    with pytest.warns(HimatchWarning, match=r"of the new data lies outside the bins of .*first \(x_velocity from"):
        kept = hm.train(method, fast, out=tmp_path / "kept", start=tmp_path / "first", **STILL)
    assert kept.statistic.bins == first.statistic.bins
    np.testing.assert_array_equal(kept.normalizers.state_mean, first.normalizers.state_mean)
    fitted = hm.train(method, fast, out=tmp_path / "new", start=tmp_path / "first", normalizers="refit", **STILL)
    assert fitted.statistic.bins is not None
    assert fitted.statistic.bins != first.statistic.bins
    assert fitted.normalizers.state_mean[5] > first.normalizers.state_mean[5] + 0.5
    with pytest.raises(HimatchError, match="name that run"):
        hm.train(method, fast, out=tmp_path / "no", normalizers="refit", **STILL)


def test_a_warm_start_resumes_in_the_same_bits_without_the_other_run(
    hopper: hm.TrajectoryDataset, other: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = hm.DTAE(mode="frozen", pretrain_steps=6, **LEARNED)
    start(method, hopper, tmp_path / "first")
    settings = {**TINY, "steps": 8}
    hm.train(method, other, out=tmp_path / "whole", start=tmp_path / "first", **settings)

    log = Checkpoint.log

    def stop(self: Checkpoint, *arguments: Any) -> None:
        log(self, *arguments)
        if self.update.step >= 4:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Checkpoint, "log", stop)
    with pytest.raises(Interrupted):
        hm.train(method, other, out=tmp_path / "parts", start=tmp_path / "first", **settings)
    monkeypatch.setattr(Checkpoint, "log", log)
    (tmp_path / "first").rename(tmp_path / "gone")
    parts = hm.train(method, other, out=tmp_path / "parts", resume=True, **settings)
    whole = hm.load(tmp_path / "whole")
    for mine, theirs in zip(parts.agent.state_dict().values(), whole.agent.state_dict().values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert parts.description["start"] == whole.description["start"]


def test_what_does_not_fit_is_one_line(hopper: hm.TrajectoryDataset, tmp_path: Path, run: Run) -> None:
    start(hm.CDT("x_velocity"), hopper, tmp_path / "first")
    source = hm.write_minari(hopper, tmp_path / "hopper-v0")
    usual = [
        "--data",
        source,
        "--out",
        tmp_path / "new",
        "--start",
        tmp_path / "first",
        "--split",
        "none",
        "--steps",
        2,
    ]
    cdt = ["train", "cdt", "--feature", "x_velocity", *usual]
    assert_refused(run("train", "cdt", *usual), "it has feature x_velocity, here reward; give its settings")
    assert_refused(run("train", "dt", *usual), "was trained with cdt, and a dt cannot start from it: only the")
    assert_refused(run(*cdt, "--width", 32), "it has width 16, here 32")
    assert_refused(run(*cdt[:-4], "--split", "none", "--start", tmp_path / "nowhere"), "nowhere is not a run folder")
    code, out, _ = run(*cdt)
    assert code == 0
    assert "himatch show" in out


def test_columns_must_have_the_same_names_and_order(tmp_path: Path) -> None:
    task = hm.Task(name="arm", horizon=12, action_low=-1.0, action_high=1.0, features={"speed": 1})
    rng = np.random.default_rng(0)

    def table(names: tuple[str, str]) -> Path:
        path = tmp_path / f"{'-'.join(names)}.csv"
        rows = [f"episode,obs_{names[0]},obs_{names[1]},act_u"]
        rows += [f"{e},{rng.normal()},{rng.normal()},{rng.uniform(-1, 1)}" for e in range(4) for _ in range(12)]
        path.write_text("\n".join(rows))
        return path

    method = hm.CDT("speed")
    hm.train(method, table(("q", "dq")), task=task, out=tmp_path / "first", **TINY, **MODEL)
    with pytest.raises(DataError, match=r"reads observation 0 as '.*q', .* has '.*dq' there"):
        hm.train(method, table(("dq", "q")), task=task, out=tmp_path / "new", start=tmp_path / "first", **TINY)


def test_units_must_be_the_same_and_another_rate_is_noted(tmp_path: Path) -> None:
    task = hm.Task(name="arm", horizon=12, action_low=-1.0, action_high=1.0, features={"speed": 1})
    rng = np.random.default_rng(0)
    rows = [f"{e},{rng.normal()},{rng.normal()},{rng.uniform(-1, 1)}" for e in range(4) for _ in range(12)]

    def table(unit: str, rate: float) -> hm.TrajectoryDataset:
        path = tmp_path / f"{unit}-{rate:g}.csv"
        path.write_text("\n".join([f"episode,obs_q [{unit}],obs_dq,act_u", *rows]))
        return hm.load_dataset(path, task, columns={"rate": rate})

    hm.train(hm.CDT("speed"), table("rad", 50.0), out=tmp_path / "first", **TINY, **MODEL)
    again = {"start": tmp_path / "first", **TINY}
    with pytest.raises(DataError, match=r"deg-50.csv measures obs_q in deg, not rad as .*first does; convert it"):
        hm.train(hm.CDT("speed"), table("deg", 50.0), out=tmp_path / "new", **again)
    with pytest.warns(HimatchWarning, match=r"rad-25.csv was recorded at 25 Hz, the data of .*first at 50 Hz"):
        hm.train(hm.CDT("speed"), table("rad", 25.0), out=tmp_path / "new", **again)


def test_staged_methods_keep_their_normalizers(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    start(SMALL["meta-bc"], hopper, tmp_path / "first", context=1)
    with pytest.raises(HimatchError, match="cannot be refitted for meta-bc"):
        hm.train(SMALL["meta-bc"], hopper, out=tmp_path / "new", start=tmp_path / "first", normalizers="refit", **STILL)


def test_runs_of_earlier_versions_go_on(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """Settings that they did not know of have their defaults, not a preset's of today."""
    first = tmp_path / "first"
    model = {"context": 3, "layers": 1, "width": 16, "heads": 1, "dropout": 0.0, "tokens": "pairs", "head": "tanh"}
    settings: dict[str, Any] = {**model, "batch_size": 8, "steps": 4, "activation": "relu"}
    hm.train(hm.DT(), hopper, out=first, preset="fast", quiet=True, **settings)
    described = json.loads((first / "run.json").read_text())["model"]
    folder = describe_anew(first, model={key: described[key] for key in model})
    more = hm.train(hm.DT(), hopper, out=tmp_path / "more", start=first, preset="fast", steps=2, quiet=True)
    assert more.agent.config == hm.load(first).agent.config
    check_same(folder, hm.DT(), named_split(hopper, "none"), *configure("fast", hm.DT(), **settings), (0,))
