"""``himatch experts train``: resuming, stopping, starting from another run, and what goes wrong."""

from __future__ import annotations

import itertools
import json
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from command_line import Run, assert_refused
from safetensors.torch import load_file, save_file

from himatch.experts import trainer
from himatch.experts.collector import Collector
from himatch.experts.run import AgentSpec
from himatch.experts.sac import SAC, SACConfig, chosen_agents
from himatch.experts.trainer import train_experts

Steps = list[tuple[bool, int]]

TINY = SACConfig(hidden=(8, 8), copies=4, updates=2, batch_size=8, memory=400, first=20)
FLAGS = ("--hidden", 8, 8, "--copies", 4, "--updates", 2, "--batch-size", 8, "--memory", 400, "--first", 20)
MIXED = [AgentSpec("point", 0), AgentSpec("point", 1), AgentSpec("plane", 0)]


def train(out: Path, steps: int = 60, agents: list[AgentSpec] = MIXED, **settings: Any) -> dict[str, torch.Tensor]:
    given = {"config": TINY, "snapshots": 10, "device": "cpu", "threads": 1, "quiet": True, **settings}
    return load_file(train_experts(agents, out, steps=steps, **given) / "training.safetensors")


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """What every step of a collector was: at random or not, and its updates."""
    seen: Steps = []
    step = Collector.step

    def noted(self: Collector, *, at_random: bool, updates: int) -> None:
        seen.append((at_random, updates))
        step(self, at_random=at_random, updates=updates)

    monkeypatch.setattr(Collector, "step", noted)
    return seen


def signal_after(count: int, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send SIGINT to this process after some calls."""
    owner = SAC if method == "update" else Collector
    real, done = getattr(owner, method), 0

    def signalled(self: Any, **settings: Any) -> None:
        nonlocal done
        real(self, **settings)
        done += 1
        if done == count:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(owner, method, signalled)


# -- a run, in one piece and in several -----------------------------------------------------------------------------


def test_the_run_folder(point_mass: Path, tmp_path: Path, stepped: Steps) -> None:
    before = torch.random.get_rng_state()
    state = train(tmp_path / "run")
    assert torch.equal(torch.random.get_rng_state(), before)  # the caller's random numbers go on as they would have
    assert stepped == [(True, 0)] * 5 + [(False, 2)] * 10  # 20 random transitions, then 40 to learn from
    assert (int(state["step"]), int(state["updates"])) == (60, 20)
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert [agent["task"] for agent in facts["agents"]] == ["point", "point", "plane"]
    assert facts["widths"] == {"observation": 4, "action": 2, "hidden": [8, 8]}
    assert {"himatch", "torch", "python", "numpy"} <= facts["versions"].keys()
    found = rows(tmp_path / "run")
    assert [row["step"] for row in found] == [24, 32, 36, 44, 48, 56, 60]  # the first after every sixth
    assert all(len(found[-1][key]) == 3 for key in ("returns", "temperature", "critic_loss"))
    snapshots = sorted((tmp_path / "run" / "snapshots").iterdir())
    assert [int(path.stem) for path in snapshots] == [row["step"] for row in found]
    last = load_file(snapshots[-1])["actors"]
    assert last.dtype == torch.float16
    torch.testing.assert_close(last.float(), state["actor"], rtol=1e-3, atol=1e-4)


def test_resuming_goes_on(point_mass: Path, tmp_path: Path, stepped: Steps) -> None:
    state = train(tmp_path / "run", steps=60)
    stepped.clear()
    again = train(tmp_path / "run", steps=100, resume=True)
    assert stepped == [(False, 0)] * 15 + [(False, 2)] * 10  # as many of its own as it had seen, then it learns on
    assert (int(again["step"]), int(again["updates"])) == (100, 40)
    assert int(again["actor.step"]) == int(again["critics.step"]) == 40  # Adam's own count went on
    assert not again["actor"].equal(state["actor"])
    found = [row["step"] for row in rows(tmp_path / "run")]
    assert found == sorted(set(found))
    assert (found[0], found[-1]) == (24, 100)


def test_a_run_that_is_done_is_left_alone(point_mass: Path, tmp_path: Path, stepped: Steps) -> None:
    state = train(tmp_path / "run")
    stepped.clear()
    again = train(tmp_path / "run", resume=True)
    assert stepped == []
    assert all(tensor.equal(again[name]) for name, tensor in state.items())


@pytest.mark.parametrize(("limit", "memory", "rounds"), [(40, 400, 10), (10**6, 48, 12)])
def test_refilling_is_limited(
    limit: int,
    memory: int,
    rounds: int,
    point_mass: Path,
    tmp_path: Path,
    stepped: Steps,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = SACConfig(hidden=(8,), copies=4, updates=1, batch_size=8, memory=memory, first=20)
    train(tmp_path / "run", steps=80, agents=MIXED[:1], config=config)
    stepped.clear()
    monkeypatch.setattr(trainer, "REFILL", limit)
    train(tmp_path / "run", steps=84, agents=MIXED[:1], config=config, resume=True)
    assert stepped == [(False, 0)] * rounds + [(False, 1)]


def test_minutes_stop_and_save(point_mass: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()  # a second passes whenever somebody looks
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
        state = train(tmp_path / "run", steps=10**9, minutes=1)
    step, updates = int(state["step"]), int(state["updates"])
    assert step == 20 + 2 * updates > 20
    assert int(train(tmp_path / "run", steps=step + 8, resume=True)["step"]) == step + 8


def test_ctrl_c_saves_and_resume_goes_on(
    run: Run, point_mass: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("experts", "train", "point", "--seeds", 2, "--out", tmp_path / "run", "--device", "cpu", *FLAGS)
    with monkeypatch.context() as patch:
        signal_after(7, "update", patch)
        code, out, err = run(*command, "--steps", 100_000)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == (
        f"himatch: stopped at step 36; everything is saved in {tmp_path / 'run'}, --resume goes on"
    )
    state = load_file(tmp_path / "run" / "training.safetensors")
    assert (int(state["step"]), int(state["updates"])) == (36, 8)  # the step that was under way was finished
    code, out, _ = run(*command, "--steps", 60, "--resume")
    assert code == 0
    assert f"2 agent(s) in {tmp_path / 'run'}" in out
    assert int(load_file(tmp_path / "run" / "training.safetensors")["step"]) == 60


def test_signals_do_not_disturb_saving(
    run: Run, point_mass: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last step, which only then is saved."""
    write = trainer.write_tensors

    def signalled(path: Path, *rest: Any) -> None:
        for _ in range(2 * (path.name == "training.safetensors")):
            signal.raise_signal(signal.SIGTERM)
        write(path, *rest)

    monkeypatch.setattr(trainer, "write_tensors", signalled)
    command = ("experts", "train", "point", "--out", tmp_path / "run", "--device", "cpu", *FLAGS, "--steps", 40)
    code, _, err = run(*command)
    assert code == 130
    assert "himatch: stopped at step 40; everything is saved in " in err
    assert int(load_file(tmp_path / "run" / "training.safetensors")["step"]) == 40


def test_ctrl_c_before_the_first_update(
    run: Run, point_mass: Path, tmp_path: Path, stepped: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("experts", "train", "point", "--out", tmp_path / "run", "--device", "cpu", *FLAGS, "--steps", 40)
    with monkeypatch.context() as patch:
        signal_after(2, "step", patch)
        code, _, err = run(*command)
    assert code == 130
    assert "nothing learned yet" in err
    assert not (tmp_path / "run" / "training.safetensors").exists()
    stepped.clear()
    assert run(*command, "--resume")[0] == 0
    assert stepped[:5] == [(True, 0)] * 5  # from the beginning


# -- from another run -----------------------------------------------------------------------------------------------


def test_starting_with_agents_of_another_run(
    point_mass: Path, tmp_path: Path, stepped: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = train(tmp_path / "mixed")
    stepped.clear()
    monkeypatch.setattr(SAC, "update", lambda self: None)
    begun = train(tmp_path / "one", steps=64, agents=[MIXED[1]], start=tmp_path / "mixed")
    assert stepped[:15] == [(False, 0)] * 15  # it has seen 60 transitions already
    assert int(begun["step"]) == 64
    expected = chosen_agents(state, [1])
    for name in expected.keys() - {"step", "updates"}:
        assert begun[name].equal(expected[name]), name
    facts = json.loads((tmp_path / "one" / "run.json").read_text())
    assert facts["widths"]["observation"] == 4  # padded as in the run it comes from
    assert facts["start"] == "mixed"
    train(tmp_path / "one", steps=68, agents=[MIXED[1]], start=tmp_path / "mixed", resume=True)
    # One that learned with another setting of its environment does, too, if it is the only one.
    other = replace(MIXED[1], settings=(("bonus", 1.0),))
    begun = train(tmp_path / "other", steps=64, agents=[other], start=tmp_path / "mixed")
    assert all(begun[name].equal(expected[name]) for name in expected.keys() - {"step", "updates"})


# -- what goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (("tango",), ("unknown task 'tango'",)),
        (("point", "--seeds", 0), ("--seeds must be at least 1, got 0",)),
        (("point", "--seed", -1), ("seeds must be 0 or more",)),
        (("point", "--steps", 0), ("at least 1",)),
        (("point", "--looks", 0), ("at least 1",)),
        (("point", "--copies", 0), ("copies must be at least 1",)),
        (("point", "--device", "abacus"), ("unknown device 'abacus'",)),
        (("point:bonus",), ("TASK:name=number",)),
        (("point:bonus=much",), ("TASK:name=number",)),
        (("point:malus=1",), ("does not take the settings", "malus")),
        (("logs",), ("does not say how wide",)),
        (("unbounded",), ("no action range",)),
        (("point", "--start", "nowhere"), ("nowhere is not a run of himatch experts train",)),
        (("point", "--import", "nowhere.py"), ("nowhere.py: no such file",)),
    ],
)
def test_bad_input_is_one_line(
    run: Run, point_mass: Path, tmp_path: Path, arguments: tuple[object, ...], fragments: tuple[str, ...]
) -> None:
    import himatch as hm

    hm.register_task("logs", horizon=5)
    hm.register_task("unbounded", horizon=5, observation_width=2, action_width=1)
    device = () if "--device" in arguments else ("--device", "cpu")
    command = ("experts", "train", *arguments, "--out", tmp_path / "run", *device)
    assert_refused(run(*command), *fragments)
    assert not (tmp_path / "run").exists()


def test_other_runs_are_not_continued(run: Run, point_mass: Path, tmp_path: Path) -> None:
    train(tmp_path / "run")
    command = ("experts", "train", "point", "plane", "--out", tmp_path / "run", "--device", "cpu")
    assert_refused(run(*command, *FLAGS), "holds a run already", "--resume")
    assert_refused(run(*command, *FLAGS, "--resume"), "was begun with other agents")
    again = ("experts", "train", "point", "--seeds", 2, "--out", tmp_path / "pair", "--device", "cpu", "--steps", 24)
    assert run(*again, *FLAGS)[0] == 0
    assert_refused(run(*again, *FLAGS, "--resume", "--updates", 1), "was begun with other config")
    assert_refused(run(*again, *FLAGS, "--resume", "--start", tmp_path / "run"), "was begun with other")
    other = ("experts", "train", "point", "--out", tmp_path / "new", "--device", "cpu", *FLAGS)
    assert_refused(
        run(*other, "--start", tmp_path / "run", "--seed", 7), "has no agent point/7; it has point/0, point/1, plane/0"
    )
    assert_refused(run(*other, "--start", tmp_path / "run", "--hidden", 16), "hidden layers (8, 8), not (16,)")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("file", ["run.json", "training.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "foreign"])
def test_damaged_runs_are_refused(run: Run, point_mass: Path, tmp_path: Path, file: str, damage: str) -> None:
    out = tmp_path / "run"
    train(out, agents=MIXED[:1])
    content = (out / file).read_bytes()
    if damage == "cut":
        (out / file).write_bytes(content[: len(content) // 2])
    elif file == "run.json":
        (out / file).write_text("[1, 2]")
    else:
        save_file({"weights": torch.zeros(3)}, out / file)
    command = ("experts", "train", "point", "--device", "cpu", *FLAGS)
    assert_refused(run(*command, "--out", out, "--resume"), file)
    assert_refused(run(*command, "--out", tmp_path / "new", "--start", out), file)
    assert not (tmp_path / "new").exists()


def test_settings_of_an_environment(point_mass: Path, tmp_path: Path) -> None:
    """Agents of one task side by side, each in an environment of its own settings."""
    agents = [AgentSpec("point", 0, (("bonus", bonus),)) for bonus in (0.0, 5.0)]
    train(tmp_path / "run", steps=120, agents=agents)
    low, high = rows(tmp_path / "run")[-1]["returns"]
    assert high - low == pytest.approx(100.0, abs=20.0)  # a bonus of 5 in each of 20 steps
    assert agents[1].name == "point:bonus=5/0"
