"""Online training: rollouts enter training, a control arm sees none of them, and interruptions change nothing."""

from __future__ import annotations

import importlib
import json
import os
import signal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Run
from random_episodes import episode
from short_tasks import short_tasks  # noqa: F401  (a fixture of the module)

import himatch as hm
from himatch.data import write_minari
from himatch.errors import DataError, HimatchError, HimatchWarning
from himatch.methods import METHODS, Method
from himatch.rounds import loop
from himatch.rounds.folder import OnlineFolder
from himatch.rounds.logs import with_rollouts
from himatch.training.checkpoint import Checkpoint
from himatch.training.sampler import Sampler

TINY: dict[str, Any] = {"preset": "cpu", "batch_size": 8, "steps": 4, "width": 16, "quiet": True}
HOW: dict[str, Any] = {"rounds": 2, "episodes": 3, "steps": 6, "seed": 1, "quiet": True}
LEARNED: dict[str, Any] = {"m": 2, "target_window": 4, "look_ahead": 3}
TASKS: dict[str, Any] = {"m": 3, "encoder": (16, 16), "tasks": 3, "context_steps": 4, "pretrain_steps": 4}
METHOD = hm.CDT("x_velocity", bins=7)
SMALL: dict[str, Method] = {
    **{name: hm.make_method(name) for name in ("dt", "cdt", "moments", "goal", "gcsl", "udrl")},
    "rcp": hm.RCP(given="advantage", value_steps=4),
    **{name: hm.make_method(name, feature="x_velocity") for name in ("multi-task", "hipi", "gh")},
    **{name: hm.make_method(name, **LEARNED) for name in ("bdt", "dt-e2e", "dt-cpc")},
    "dt-ae": hm.DTAE(mode="frozen", pretrain_steps=4, **LEARNED),
    **{name: hm.make_method(name, **TASKS) for name in ("meta-bc", "focal")},
}


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Any:
    """Such policies fall at once and ignore what they are conditioned on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)
        yield


@pytest.fixture(scope="module")
def logs() -> hm.TrajectoryDataset:
    rng = np.random.default_rng(0)
    return hm.load_dataset([episode(rng, 12 + i, level=i / 6) for i in range(24)], "hopper")


def begin(method: Method, logs: hm.TrajectoryDataset, out: Path, **more: Any) -> hm.Policy:
    temperature = (
        0.5 if {**METHODS[method.name].presets["cpu"], **more}.get("head") in ("gaussian", "squashed") else None
    )
    return hm.train(method, hm.paper_split(logs), out=out, temperature=temperature, **{**TINY, **more})


@pytest.fixture(scope="module")
def run_of_two(logs: hm.TrajectoryDataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(METHOD, logs, tmp_path_factory.mktemp("online") / "first", seeds=2).folder


@pytest.fixture(scope="module")
def whole(run_of_two: Path, logs: hm.TrajectoryDataset, tmp_path_factory: pytest.TempPathFactory) -> hm.Policy:
    """Two rounds without any interruption."""
    out = tmp_path_factory.mktemp("whole") / "out"
    return hm.online(run_of_two, out=out, data=logs, **HOW)


def folder_of(policy: hm.Policy) -> Path:
    return policy.folder.parent.parent


def test_rollouts_enter_training(whole: hm.Policy, run_of_two: Path, logs: hm.TrajectoryDataset) -> None:
    out, before = folder_of(whole), hm.load(run_of_two)
    split = hm.paper_split(logs)
    rollouts = [hm.load_dataset(out / f"round-{n}" / "rollouts") for n in (1, 2)]
    expected = with_rollouts(split, rollouts, len(split.train))
    assert whole.description["data"]["hash"] == expected.train.content_hash != split.train.content_hash
    assert whole.description["data"]["episodes"] == len(split.train) + 6
    # Windows are drawn from all of them but for those that validate; the reference has them all.
    known = whole.reference()
    values = np.concatenate([known.frame.feature(one) for part in rollouts for one in part])
    np.testing.assert_allclose(known.values[-len(values) :], values, atol=1e-6)
    assert whole.held_out is not None
    assert len(whole.held_out) == len(split.held_out)
    assert [row["trained_on"] for row in OnlineFolder(out).rows] == [
        {"logged": len(split.train), "rollouts": 3},
        {"logged": len(split.train), "rollouts": 6},
    ]
    assert whole.statistic.bins == before.statistic.bins
    np.testing.assert_array_equal(whole.normalizers.state_mean, before.normalizers.state_mean)


def test_rollouts_change_the_windows_that_are_trained_on(
    whole: hm.Policy, run_of_two: Path, logs: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sampler of the last round holds the states of the rollouts."""
    seen: list[np.ndarray] = []
    training = importlib.import_module("himatch.training.train")  # the function has the same name
    make = training.make_sampler

    def kept(data: hm.TrajectoryDataset, *rest: Any, **more: Any) -> Any:
        seen.append(np.array(data.observations))
        return make(data, *rest, **more)

    monkeypatch.setattr(training, "make_sampler", kept)
    again = hm.online(run_of_two, out=tmp_path / "again", data=logs, **HOW)
    assert again.agent.digests() == whole.agent.digests()
    new = hm.load_dataset(tmp_path / "again" / "round-2" / "rollouts").observations
    held = {row.tobytes() for row in np.asarray(seen[-1], np.float32)}
    assert sum(row.tobytes() in held for row in new) > len(new) / 2  # some episodes may validate


def test_a_control_arm_has_no_new_episodes(
    whole: hm.Policy, run_of_two: Path, logs: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    control = hm.online(run_of_two, out=tmp_path / "control", data=logs, control=True, **HOW)
    assert not list((tmp_path / "control").glob("round-*/rollouts"))
    assert control.description["data"]["hash"] == hm.paper_split(logs).train.content_hash
    assert control.run.folder.weights_step(0, "last") == whole.run.folder.weights_step(0, "last") == HOW["steps"]
    assert set(control.agent.digests().values()).isdisjoint(whole.agent.digests().values())
    for row in OnlineFolder(tmp_path / "control").rows:
        assert (row["episodes"], row["commands"], row["error"], row["steps"]) == (0, [], None, HOW["steps"])


def test_rounds_see_windows_of_their_own(
    run_of_two: Path, logs: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the same data a round that drew the windows of the round before would be no further training."""
    drawn: list[int] = []
    draw = Sampler.draw

    def kept(self: Sampler, seeds: tuple[int, ...], chunk: int, *rest: Any, **more: Any) -> Any:
        drawn.append(chunk)
        return draw(self, seeds, chunk, *rest, **more)

    monkeypatch.setattr(Sampler, "draw", kept)
    hm.online(run_of_two, out=tmp_path / "control", data=logs, control=True, **HOW)
    assert drawn == [1, 2]
    starts = [hm.load(tmp_path / "control" / f"round-{n}" / "run").description["start"] for n in (1, 2)]
    assert [start["draws"] for start in starts] == [1, 2]


def test_what_is_written_of_a_round(whole: hm.Policy) -> None:
    out = folder_of(whole)
    rows = json.loads((out / "rounds.json").read_text())["rounds"]
    assert [row["round"] for row in rows] == [1, 2]
    for number, row in enumerate(rows, start=1):
        facts = json.loads((out / f"round-{number}" / "rollouts" / "data" / "metadata.json").read_text())["himatch"]
        assert facts["rollouts"]["targets"] == row["commands"]
        assert sum(command["episodes"] for command in row["commands"]) == row["episodes"] == 3
        assert row["error"] == pytest.approx(np.mean([command["error"] for command in row["commands"]]))
        assert 0 < row["played"] <= 1
        assert set(row["seconds"]) == {"rollouts", "training"}
    first, second = ([command["name"] for command in row["commands"]] for row in rows)
    assert first != second


@pytest.mark.parametrize("where", ["rollouts", "after rollouts", "training", "before the row"])
def test_an_interruption_changes_nothing(
    where: str,
    whole: hm.Policy,
    run_of_two: Path,
    logs: hm.TrajectoryDataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        if where == "training":
            # A signal in the middle of the second round's steps, as Ctrl-C sends it.
            saved, taken = Checkpoint.require, [0]

            def require(self: Checkpoint, *given: Any) -> None:
                taken[0] += 1
                if taken[0] == HOW["steps"] + 3:
                    os.kill(os.getpid(), signal.SIGINT)
                saved(self, *given)

            patch.setattr(Checkpoint, "require", require)
        else:
            name = {"rollouts": "save_rollouts", "after rollouts": "train", "before the row": "_mean"}[where]
            own, calls = getattr(loop, name), [0]
            least = {"rollouts": 1, "after rollouts": 1, "before the row": 3}[where]

            def stops(*given: Any, **more: Any) -> Any:
                calls[0] += 1
                if calls[0] > least:
                    raise KeyboardInterrupt
                return own(*given, **more)

            patch.setattr(loop, name, stops)
        with pytest.raises(KeyboardInterrupt, match=r"continue with --resume"):
            hm.online(run_of_two, out=out, data=logs, **HOW)
    assert len(OnlineFolder(out).rows) == 1
    with pytest.raises(DataError, match="pass --resume to continue it"):
        hm.online(run_of_two, out=out, data=logs, **HOW)
    resumed = hm.online(run_of_two, out=out, data=logs, resume=True, **HOW)
    assert resumed.agent.digests() == whole.agent.digests()
    rows, others = OnlineFolder(out).rows, OnlineFolder(folder_of(whole)).rows
    for row in (*rows, *others):
        del row["seconds"]
    assert rows == others


def test_more_rounds_go_on_from_the_last(
    whole: hm.Policy, run_of_two: Path, logs: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    hm.online(run_of_two, out=tmp_path / "out", data=logs, **{**HOW, "rounds": 1})
    more = hm.online(run_of_two, out=tmp_path / "out", data=logs, resume=True, **HOW)
    assert more.agent.digests() == whole.agent.digests()
    with pytest.raises(DataError, match=r"begun with other settings \(steps 6, now 7\)"):
        hm.online(run_of_two, out=tmp_path / "out", data=logs, resume=True, **{**HOW, "steps": 7})


def test_the_newest_rollouts_are_kept_and_all_logs(logs: hm.TrajectoryDataset) -> None:
    split = hm.paper_split(logs)
    parts = [logs[:3], logs[3:5]]
    joined = with_rollouts(split, parts, 4).train
    assert len(joined) == len(split.train) + 4
    for found, wanted in zip(joined[-4:], [*logs[1:3], *logs[3:5]], strict=True):
        np.testing.assert_array_equal(found.observations, wanted.observations)
    assert with_rollouts(split, parts, 0) is split
    assert with_rollouts(split, [], 9) is split


@pytest.mark.parametrize("name", SMALL)
def test_every_method_of_commands(name: str, logs: hm.TrajectoryDataset, tmp_path: Path) -> None:
    begin(
        SMALL[name],
        logs,
        tmp_path / "first",
        **({} if METHODS[name].fixed or name in ("meta-bc", "focal") else {"layers": 1}),
    )
    after = hm.online(tmp_path / "first", out=tmp_path / "out", data=logs, **{**HOW, "rounds": 1, "steps": 2})
    (row,) = OnlineFolder(tmp_path / "out").rows
    assert row["trained_on"]["rollouts"] == row["episodes"] == 3
    matches = {command["matches"] for command in row["commands"]}
    assert matches == {"distribution" if after.method.imitates else after.method.matches}


def test_every_method_is_here() -> None:
    assert {*SMALL, "bc"} == set(METHODS)


def test_commands_lie_slightly_beyond(whole: hm.Policy) -> None:
    from himatch.rounds.commands import _distributions, _goals, _returns

    reference, rng = whole.reference(), np.random.default_rng(0)
    best, width = float(reference.totals.max()), float(np.ptp(reference.totals))
    totals = [float(target.values(reference.frame).sum()) for target in _returns(reference, rng, 0.1, 20)]
    assert min(totals) < best < max(totals) <= best + 0.1 * width + 0.01 * abs(best)
    goals = [float(target.values(reference.frame)[-1, 0]) for target in _goals(reference, rng, 0.1, 40)]
    finals = reference.finals[:, 0]
    assert np.ptp(goals) <= 1.21 * np.ptp(finals)
    kinds = {target.name.split()[0] + target.name.split()[2] for target in _distributions(reference, rng, 0.1, 9)}
    assert kinds == {"episodemoved", "episodestretched"} | {kind for kind in kinds if kind.endswith("episode")}
    assert len(kinds) >= 3 - (len(reference.lengths) < 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"episodes": 0}, "episodes must be at least 1"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"beyond": -1}, "beyond must be a number from 0 up"),
        ({"keep": 0}, "keep must be at least 1"),
        ({"conditioning": "rehearsed"}, "are not rehearsed: choose nominal"),
        ({"env": "Nowhere-v0"}, "Nowhere-v0"),
        ({"env": "CartPole-v1"}, "."),
        ({"data": "nowhere.hdf5"}, "nowhere.hdf5"),
    ],
)
def test_what_cannot_be_is_refused(
    run_of_two: Path, logs: hm.TrajectoryDataset, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(HimatchError, match=message):
        hm.online(run_of_two, out=tmp_path / "out", **{"data": logs, **HOW, **settings})
    assert not (tmp_path / "out").exists()


def test_other_logs_are_refused(run_of_two: Path, logs: hm.TrajectoryDataset, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"was trained on more; give the same source"):
        hm.online(run_of_two, out=tmp_path / "out", data=logs[:20], **HOW)
    with pytest.raises(DataError, match=r"say where they are \(--data SOURCE\)"):
        hm.online(run_of_two, out=tmp_path / "out", **HOW)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(DataError, match="holds no online training"):
        hm.online(run_of_two, out=tmp_path / "mine", data=logs, **HOW)


def test_the_logs_are_found_where_they_lay(
    logs: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in another folder of the same name."""
    for day, episodes in (("monday", logs), ("tuesday", logs[::-1])):
        (tmp_path / day).mkdir()
        write_minari(episodes, tmp_path / day / "mine-v0")
    monkeypatch.chdir(tmp_path)
    begin(METHOD, hm.load_dataset("monday/mine-v0", logs.task), Path("run"))
    assert "monday/mine-v0, 14 episodes" in str(hm.load("run").show())
    monkeypatch.chdir(tmp_path / "tuesday")
    with pytest.raises(DataError, match=r"say where they are \(--data SOURCE\)"):
        hm.online("../run", out="out", **HOW)
    monkeypatch.chdir(tmp_path)
    assert hm.online("run", out="out", **HOW).folder.name == "run"


def test_a_policy_without_conditioning_or_environment_is_refused(logs: hm.TrajectoryDataset, tmp_path: Path) -> None:
    begin(hm.BC(), logs, tmp_path / "bc", layers=1)
    with pytest.raises(HimatchError, match="bc is conditioned on nothing"):
        hm.online(tmp_path / "bc", out=tmp_path / "out", data=logs, **HOW)
    rng = np.random.default_rng(0)
    rig = hm.load_dataset(
        [episode(rng, 15, level=i / 6) for i in range(24)], hm.Task("rig", 60, 11, 3, features={"x": 5})
    )
    hm.train(hm.CDT("x", bins=5), rig, out=tmp_path / "rig", **{**TINY, "temperature": 0.0})
    with pytest.raises(HimatchError, match=r"task rig has no environment to roll out in; name one \(--env ID\)"):
        hm.online(tmp_path / "rig", out=tmp_path / "out", data=rig, **HOW)
    assert not (tmp_path / "out").exists()
    hm.online(tmp_path / "rig", out=tmp_path / "out", data=rig, control=True, **HOW)  # which needs none


def test_the_command(run_of_two: Path, logs: hm.TrajectoryDataset, run: Run, tmp_path: Path) -> None:
    hm.write_minari(logs, tmp_path / "logs-v0")
    how = ("--rounds", 1, "--episodes", 2, "--steps", 2, "--data", tmp_path / "logs-v0", "--out", tmp_path / "out")
    code, out, _ = run("online", run_of_two, *how)
    assert code == 0
    assert "14+2" in out
    assert "himatch show " in out
    code, _, said = run("online", run_of_two, *how)
    assert (code, said.count("\n")) == (2, 1)
    assert run("online", run_of_two, *how, "--resume")[0] == 0
