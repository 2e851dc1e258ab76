"""``himatch experts pick``: from the snapshots of a run to agents that load and act as they did."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import himatch as hm
from himatch._runtime.tensors import read_tensors
from himatch.errors import DataError, HimatchError
from himatch.experts import AgentSpec, SACConfig, load_expert, read_cards, select_experts, selection, train_experts
from himatch.experts.expert import Expert, narrowed, stacked_actor
from himatch.experts.networks import Actor
from himatch.experts.run import dims_of
from himatch.experts.selection import CARD_SEED, ExpertRun, backward_turns, flips_back, velocity_error
from himatch.simulation.gymnasium_envs import GymnasiumSimulator

TINY = SACConfig(hidden=(8, 8), copies=4, updates=1, batch_size=8, memory=400, first=80)
AGENTS = [AgentSpec("point", 0), AgentSpec("point", 3), AgentSpec("plane", 0)]


@pytest.fixture
def trained(point_mass: Path, tmp_path: Path) -> Path:
    settings = {"config": TINY, "snapshots": 20, "device": "cpu", "threads": 1, "quiet": True}
    return train_experts(AGENTS, tmp_path / "run", steps=200, **settings)  # type: ignore[arg-type]


def test_picked_agents_load_with_their_cards(trained: Path, tmp_path: Path) -> None:
    picked = select_experts(trained, tmp_path / "agents", command="himatch experts train point plane", threads=1)
    assert [agent.name for agent in picked] == ["point-medium", "point-expert", "plane-medium", "plane-expert"]
    cards = read_cards(tmp_path / "agents")
    assert list(cards) == ["plane-medium", "plane-expert", "point-medium", "point-expert"]  # by family
    taken = {row["step"]: row["updates"] for row in ExpertRun(trained).rows}
    for name, card in cards.items():
        assert (card["task"], card["family"]) == (name.split("-")[0],) * 2
        assert card["command"] == "himatch experts train point plane"
        assert card["config"]["hidden"] == [8, 8]
        assert card["updates"] == taken[card["steps"]]
        for mode in ("stochastic", "deterministic"):
            assert card[mode]["episodes"] == 20
            assert card[mode]["length"] == 20.0
        # The card says what these very weights do: the same episodes give the same returns, up to half precision.
        expert = load_expert(name, tmp_path / "agents")
        simulator = hm.make_simulator(expert.task, 20)
        episodes = hm.simulation.record(
            simulator, lambda seen, *_, e=expert: e.act(seen), range(CARD_SEED, CARD_SEED + 20)
        )
        found = np.mean([episode.total_reward for episode in episodes])
        assert found == pytest.approx(card["deterministic"]["mean"], abs=0.1)


def test_a_family_grows_and_what_is_not_picked_stays(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "agents"
    select_experts(trained, out, command="first", threads=1)
    before = read_cards(out)
    picked = select_experts(trained, out, command="second", only=("point-expert",), threads=1)
    assert [agent.name for agent in picked] == ["point-expert"]
    after = read_cards(out)
    assert {name: card["command"] for name, card in after.items()} == {
        name: "second" if name == "point-expert" else "first" for name in before
    }
    assert after["point-medium"] == before["point-medium"]
    with pytest.raises(HimatchError, match="no expert called moon"):
        select_experts(trained, out, only=("moon",), threads=1)


def test_a_medium_agent_is_one_of_the_expert_beside_it(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "agents"
    select_experts(trained, out, threads=1)
    path = next(path for path in out.glob("*.json") if path.stem == "point")
    content = json.loads(path.read_text())
    for card in content["agents"]:
        card["stochastic"]["mean"] = 123.0
    path.write_text(json.dumps(content))
    asked: list[float] = []

    def medium(run: ExpertRun, task: hm.Task, agents: object, threads: int, best: float) -> Expert:
        asked.append(best)
        return load_expert(f"{task.name}-medium", out)

    monkeypatch.setattr(selection, "_medium", medium)
    picked = select_experts(trained, out, only=("point-medium",), threads=1)
    assert [agent.name for agent in picked] == ["point-medium"]
    assert asked[0] == 123.0


def test_cards_are_written_anew(trained: Path, tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    out = tmp_path / "agents"
    select_experts(trained, out, threads=1)
    right = read_cards(out)
    for path in out.glob("*.json"):
        content = json.loads(path.read_text())
        for card in content["agents"]:
            card["stochastic"]["mean"] = 1e6
        path.write_text(json.dumps(content))
    code, _, _ = run("experts", "evaluate", out)
    assert code == 0
    for name, card in read_cards(out).items():  # weights are in half precision by now
        assert card["stochastic"]["mean"] == pytest.approx(right[name]["stochastic"]["mean"], abs=0.5)
        assert card["seed"] == right[name]["seed"]


def test_a_narrowed_agent_acts_as_in_the_padded_stack(trained: Path) -> None:
    """Exactly: with numbers of few bits, sums do not depend on their order."""
    opened = ExpertRun(trained)
    task, dims = hm.get_task("point"), dims_of(opened.facts)
    stack = Actor((1, 1, 2), dims)
    for tensor in stack.state_dict().values():
        tensor.copy_(torch.randint(-8, 9, tensor.shape) / 16)
    seen = torch.zeros(3, 6, dims.observation)
    seen[..., :2] = torch.randint(-8, 9, (3, 6, 2)) / 8
    noise = torch.randn(3, 6, dims.action)
    for agent, (actions, observations) in enumerate([(1, 2), (1, 2), (2, 4)]):
        weights = {name: tensor[agent] for name, tensor in stack.state_dict().items()}
        one = stacked_actor([narrowed(weights, observations, actions)])
        for drawn in (None, noise):
            own = None if drawn is None else drawn[agent : agent + 1, :, :actions]
            found = one.act(seen[agent : agent + 1, :, :observations], own)[0]
            assert found.equal(stack.act(seen, drawn)[agent, :, :actions])
    # And with the numbers of the run itself, to rounding.
    row = opened.rows[-1]
    flat = read_tensors(trained / "snapshots" / f"{row['step']:09d}.safetensors")["actors"].float()
    opened.flat.load(flat)
    whole = Actor((1, 1, 2), dims)
    whole.load_state_dict(dict(zip(opened.flat.names, opened.flat.views(flat), strict=True)))
    one = stacked_actor([opened.load(1, row).weights])
    torch.testing.assert_close(one.act(seen[1:2, :, :2], None)[0], whole.act(seen, None)[1, :, : task.action_width])


def test_several_agents_act_as_one_stack(trained: Path) -> None:
    opened = ExpertRun(trained)
    pair = [opened.load(agent, opened.rows[-1]).weights for agent in (0, 1)]
    seen = torch.randn(2, 5, 2)
    together = stacked_actor(pair).act(seen, None)
    for agent in range(2):
        torch.testing.assert_close(together[agent], stacked_actor([pair[agent]]).act(seen[agent : agent + 1], None)[0])


def test_where_returns_are_penalties_there_is_no_medium_agent(point_mass: Path, tmp_path: Path) -> None:
    agent = AgentSpec("point", 0, (("bonus", -3.0),))
    settings = {"config": TINY, "snapshots": 5, "device": "cpu", "threads": 1, "quiet": True}
    train_experts([agent], tmp_path / "run", steps=120, **settings)  # type: ignore[arg-type]
    (picked,) = select_experts(tmp_path / "run", tmp_path / "agents", threads=1)
    assert picked.name == "point-expert"
    assert picked.settings == {"bonus": -3.0}
    assert picked.card["stochastic"]["mean"] < 0.0


def test_what_velocity_agents_and_flips_are_held_to() -> None:
    steps = np.zeros((200, 17))
    steps[:50, 8], steps[50:, 8] = -9.0, 1.4  # only the last 150 steps count
    steps[:, 1] = np.linspace(0.0, 7.0 * np.pi, 200)
    episode = hm.Trajectory(steps, np.zeros((200, 6)), np.zeros(200), steps[0])
    assert velocity_error([episode], 1.5) == pytest.approx(0.1, abs=1e-5)
    assert backward_turns(episode) == pytest.approx(-3.5)
    assert not flips_back(episode)


@pytest.mark.parametrize(("turns", "velocity", "back"), [(3.5, -1.0, True), (3.5, 1.0, False), (2.5, -1.0, False)])
def test_a_back_flip_turns_nose_up_and_moves_backwards(turns: float, velocity: float, back: bool) -> None:
    steps = np.zeros((200, 17))
    steps[:, 1], steps[:, 8] = np.linspace(0.0, -2.0 * np.pi * turns, 200), velocity
    episode = hm.Trajectory(steps, np.zeros((200, 6)), np.zeros(200), steps[0])
    assert backward_turns(episode) == pytest.approx(turns)
    assert flips_back(episode) is back


def test_what_is_measured_is_named_by_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, feature in (("CHEETAH_VEL", "x_velocity"), ("BACKFLIP", "pitch")):
        task = getattr(selection, name)
        monkeypatch.setattr(selection, name, replace(task, features={feature: 3}))
    steps = np.zeros((200, 17))
    steps[:, 3] = np.linspace(0.0, 2.0 * np.pi, 200)
    episode = hm.Trajectory(steps, np.zeros((200, 6)))
    assert backward_turns(episode) == pytest.approx(-1.0)
    assert velocity_error([episode], 0.0) == pytest.approx(steps[50:, 3].mean(), abs=1e-5)


def test_the_velocity_of_somebody_elses_task_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    episode = hm.Trajectory(np.zeros((4, 2)), np.zeros((4, 1)), np.zeros(4))
    monkeypatch.setattr(selection, "roll_out", lambda *_, **__: [[episode]])
    cart = Expert("cart-expert", hm.Task("cart", 4, 2, 1), {}, {"settings": {"velocity": 1.0}})
    assert "velocity_error" not in selection.evaluated(cart).card["stochastic"]


def test_simulations_are_closed_when_a_rollout_fails(
    trained: Path, point_mass: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, closed = [], []
    make, close = selection.make_simulator, GymnasiumSimulator.close
    monkeypatch.setattr(selection, "make_simulator", lambda *a, **k: made.append(make(*a, **k)) or made[-1])
    monkeypatch.setattr(GymnasiumSimulator, "close", lambda self: closed.append(self) or close(self))
    monkeypatch.setattr(selection, "record", lambda *_: 1 / 0)
    opened = ExpertRun(trained)
    weights = opened.load(0, opened.rows[-1]).weights
    with pytest.raises(ZeroDivisionError):
        selection.roll_out([weights], [{}], hm.get_task("point"), stochastic=False, episodes=2)
    assert len(made) == 1
    assert closed == made


def test_bad_runs_are_one_line(
    run: Callable[..., tuple[int, str, str]], trained: Path, point_mass: Path, tmp_path: Path
) -> None:
    def refused(folder: Path, fragment: str) -> None:
        code, _, err = run("experts", "pick", folder, "--out", tmp_path / "agents")
        assert code == 2
        assert len(err.splitlines()) == 1
        assert fragment in err

    refused(tmp_path / "nowhere", "is not a run")
    for path in (trained / "snapshots").iterdir():
        path.write_bytes(path.read_bytes()[:50])
    refused(trained, "damaged")
    for path in (trained / "snapshots").iterdir():
        path.unlink()
    refused(trained, "no snapshots yet")
    settings = {"config": TINY, "snapshots": 80, "device": "cpu", "threads": 1, "quiet": True}
    train_experts(AGENTS[:1], tmp_path / "short", steps=84, **settings)  # type: ignore[arg-type]
    metrics = tmp_path / "short" / "metrics.jsonl"
    lines = [json.loads(line) | {"returns": [None]} for line in metrics.read_text().splitlines()]
    metrics.write_text("\n".join(map(json.dumps, lines)))
    refused(tmp_path / "short", "no episode had ended")
    assert not (tmp_path / "agents").exists()


def test_pick_and_list_as_a_user_runs_them(
    run: Callable[..., tuple[int, str, str]], trained: Path, tmp_path: Path
) -> None:
    code, out, err = run("experts", "pick", trained, "--out", tmp_path / "agents")
    assert (code, err) == (0, "")
    assert "point-expert" in out
    assert run("experts", "list", tmp_path / "agents")[1] == out
    content = json.loads((tmp_path / "agents" / "point.json").read_text())
    content["agents"].append(content["agents"][0] | {"name": "point-third"})
    (tmp_path / "agents" / "point.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match="fewer agents than its card"):
        load_expert("point-third", tmp_path / "agents")
