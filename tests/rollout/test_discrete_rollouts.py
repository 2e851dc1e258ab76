"""Discrete actions between a policy and environments: numbers out, rows kept, other actions refused."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from grid_world import ACTIONS, ENV, FIRST, STEPS, Grid, grid, task, walks
from pretended_gpu import GPU, PretendedGPU
from untrained import untrained

import himatch as hm
from himatch._runtime.graphs import GraphedStep
from himatch.datagen import collect_dataset
from himatch.errors import HimatchError, SimulationError
from himatch.rollout import Player, make_conditioner
from himatch.rollout.environment import replay_for
from himatch.simulation import make_simulator, record
from himatch.tasks import Task

__all__ = ["grid"]


@pytest.fixture
def policy(tmp_path: Path) -> hm.Policy:
    made = untrained(hm.DT(), hm.load_dataset(walks(10), task()), tmp_path / "run", head=None)
    made.temperature = 1.0
    return made


def test_the_simulator_sends_numbers() -> None:
    simulator = make_simulator(Task("grid", STEPS, env_id=ENV), 3)
    assert (simulator.discrete, simulator.action_width) == (ACTIONS, 5)
    assert (simulator.task.discrete, simulator.task.action_width) == (ACTIONS, 5)
    walk = walks(1)[0]
    played = record(simulator, lambda _, __, step: ACTIONS.rows(walk["actions"][step]), [0])
    np.testing.assert_array_equal(played[0].observations, walk["observations"])
    np.testing.assert_array_equal(ACTIONS.numbers(played[0].actions), walk["actions"])


def test_a_simulator_of_other_actions_is_refused() -> None:
    for discrete, env_id in ((hm.Discrete(3), ENV), (hm.Discrete(5), ENV), (hm.Discrete(3), "Pendulum-v1")):
        with pytest.raises(SimulationError, match=r"the actions of .* are .*, those of task grid \d discrete ones"):
            make_simulator(Task("grid", STEPS, env_id=env_id, discrete=discrete), 1)


def test_the_right_environment(policy: hm.Policy) -> None:
    class Pushed(Grid):
        action_space = gymnasium.spaces.Box(-1, 1, (5,), np.float32)

    class Renumbered(Grid):
        action_space = gymnasium.spaces.Discrete(5)

    class Narrow(Grid):
        action_space = gymnasium.spaces.Discrete(4, start=FIRST)

    for env in (Pushed, Renumbered, Narrow):
        with pytest.raises(HimatchError, match=r"the actions of .* those of task grid 5 discrete ones \(1 to 5\)"):
            policy.match("return(3)", episodes=1, env=env)
    assert policy.match("return(3)", episodes=1, env=Grid).lengths.tolist() == [[STEPS]]


@pytest.mark.filterwarnings("ignore:.*lies where no training episode goes:himatch.HimatchWarning")
def test_a_continuous_policy_does_not_choose(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    logged = [hm.Trajectory(rng.normal(size=(9, 2)), rng.uniform(-1, 1, (9, 5)), rng.normal(size=9)) for _ in range(3)]
    policy = untrained(hm.BC(), hm.load_dataset(logged, Task("pushed", STEPS, 2, 5, -1.0, 1.0)), tmp_path)
    with pytest.raises(HimatchError, match=r"actions of Grid are 5 discrete ones .* of task pushed continuous"):
        policy.match("normal(0,0.1)", episodes=1, feature="reward", env=Grid)


def test_actions_are_sampled_by_the_seed_of_the_noise(policy: hm.Policy) -> None:
    def taken(noise: int, temperature: float) -> list[int]:
        policy.temperature = temperature
        controller = policy.controller("return(3)", noise=noise)
        return [controller.act(seen) for seen in walks(1)[0]["observations"]]

    assert taken(1, 1.0) == taken(1, 1.0)
    assert len({tuple(taken(noise, 1.0)) for noise in range(5)}) > 1
    assert len({tuple(taken(noise, 0.0)) for noise in range(5)}) == 1


def test_remaining_counts_the_reward_of_actions(policy: hm.Policy) -> None:
    controller = policy.controller("return(3)", conditioning="remaining", batch=2)
    seen = walks(1)[0]["observations"][:2]
    assert controller.act(seen).shape == (2,)
    controller.act(seen, [1.0, 0.0])
    assert controller._player.latest_z is not None
    controller.act(seen, [0.0, 0.0])
    left = controller._player.latest_z[0, :, 0] * STEPS
    torch.testing.assert_close(left[1] - left[0], torch.tensor(1.0))


def test_rollouts_are_drawn_by_playing_them_again(policy: hm.Policy, recwarn: pytest.WarningsRecorder) -> None:
    replay = replay_for(policy.run, None, 0)
    simulator = make_simulator(policy.task, 1)
    (episode,) = record(simulator, lambda _, __, step: ACTIONS.rows([FIRST + 1]), [replay.seed])
    with replay.open((32, 32)) as playback:
        pictures = [picture for _, picture in playback.play(episode, [0, STEPS - 1])]
    assert len(pictures) == 2
    assert not [w for w in recwarn if "does not repeat" in str(w.message)]


def test_trajectories_of_numbers_are_told_what_is_needed(policy: hm.Policy) -> None:
    walk = walks(1)[0]
    with pytest.raises(HimatchError, match=r"this policy reads \(2, 5\) \(one-hot rows: himatch.Discrete"):
        policy.actions(hm.Trajectory(walk["observations"], walk["actions"][:, None], walk["rewards"]))


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_functions_that_return_numbers_are_collected_from(shape: tuple[int, ...], tmp_path: Path) -> None:
    data = collect_dataset(task(), lambda seen: np.full(len(seen), 2).reshape(shape), tmp_path / "a-v0", episodes=3)
    assert data.discrete == ACTIONS
    back = hm.load_dataset(tmp_path / "a-v0", task())
    assert (back.discrete, back.content_hash) == (ACTIONS, data.content_hash)
    assert (ACTIONS.numbers(back.actions) == 2).all()


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda seen: np.zeros(len(seen), int), "returned an action that is none: 0 is none of the actions"),
        (lambda seen: np.full(len(seen), 1.5), r"returned an action that is none: 1\.5"),
        (lambda seen: np.full(len(seen), np.nan), "returned an action that is none: nan"),
        (lambda seen: np.ones((len(seen), 2)), r"returned shape \(3, 2\).*needs \(3, 5\), or numbers \(3,\)"),
    ],
)
def test_functions_that_return_something_else_are_refused(act: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(HimatchError, match=said):
        collect_dataset(task(), act, tmp_path / "a-v0", episodes=3)  # type: ignore[arg-type]
    assert not (tmp_path / "a-v0").exists()


def test_one_graph_serves_every_step_of_sampled_choices(policy: hm.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: the noise is drawn outside of the graph, the sample inside. A CPU's last token gives the same."""
    gpu = PretendedGPU(monkeypatch)
    conditioner = partial(make_conditioner, "nominal", policy.run, policy.agent, [policy.target("return(3)")])
    short, whole, captured = (
        Player(policy.agent, policy.normalizers, conditioner(np.zeros((1, 4), np.int64)), 4, seed=5, temperature=1.0)
        for _ in range(3)
    )
    whole._last_token = captured._last_token = None
    captured._forward = graph = GraphedStep(
        captured._one_step, GPU, snapshot=captured.context.snapshot, purpose="rollouts"
    )
    seen = torch.from_numpy(np.stack([walk["observations"] for walk in walks(4)], axis=1))
    played = [[acting.act(rows[None]).clone() for rows in seen] for acting in (short, whole, captured)]
    assert graph.how == "CUDA graph"
    assert gpu.events.count("capturing") == 1
    for rows in zip(*played, strict=True):
        assert torch.equal(rows[0], rows[1])
        assert torch.equal(rows[1], rows[2])
    assert len(torch.stack(played[0]).argmax(-1).unique()) > 1


def test_an_observation_that_is_no_number_chooses_nothing(policy: hm.Policy) -> None:
    with pytest.raises(HimatchError, match="NaN"):
        policy.controller("return(3)").act(np.array([np.nan, 0.0], np.float32))


def test_a_demonstration_in_a_table_has_the_column_of_the_log(tmp_path: Path) -> None:
    """The run's columns are those of one-hot rows, the table's holds numbers."""
    lines = ["episode,x,y,push,reward"]
    for number, walk in enumerate(walks(4)):
        steps = zip(walk["observations"], walk["actions"], walk["rewards"], strict=True)
        lines += [f"{number},{seen[0]},{seen[1]},{action},{reward}" for seen, action, reward in steps]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines))
    named = {"observations": "x,y", "actions": "push"}
    policy = untrained(hm.CDT("push=1"), hm.load_dataset(path, task(), columns=named), tmp_path / "run", head=None)
    assert policy.run.action_columns == tuple(f"push={i}" for i in range(1, 6))
    shown = policy.target(f"demo({path}, 2)").demonstration()
    assert shown is not None
    np.testing.assert_array_equal(ACTIONS.numbers(shown.actions), walks(4)[2]["actions"])
    assert policy.controller(shown).act(shown.observations[0]) in range(1, 6)
