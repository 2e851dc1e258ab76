"""Policies with discrete actions go where they are conditioned, in CartPole and in a grid world, and BC does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from grid_world import ACTIONS, SIZE, STEPS, Grid, grid, task, walks

import himatch as hm

__all__ = ["grid"]
pytestmark = pytest.mark.filterwarnings("ignore:.*copies of validation episodes:himatch.HimatchWarning")

SETTINGS: dict[str, Any] = {"preset": "cpu", "width": 32, "layers": 1, "context": 1, "batch_size": 64, "quiet": True}
CORNERS = [(0, 0), (0, SIZE - 1), (SIZE - 1, 0), (2, 2)]
LONGEST = 100


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, hm.Policy]:
    data, folder = hm.load_dataset(walks(300), task()), tmp_path_factory.mktemp("runs")
    methods = {"goal": hm.GoalDT("cell"), "cdt": hm.CDT("x", bins=SIZE), "bc": hm.BC()}
    return {
        name: hm.train(method, data, out=folder / name, **SETTINGS, steps=250 if name == "bc" else 600)
        for name, method in methods.items()
    }


def ends(policy: hm.Policy, goal: tuple[int, int]) -> np.ndarray:
    """Where rollouts are in their last step."""
    result = policy.match(f"goal({goal[0]},{goal[1]})", episodes=25, feature="cell")
    return np.array([values[-1] for values in result.features[0]])


def arrivals(policy: hm.Policy) -> float:
    """The share of rollouts that end in the cell that they were conditioned on."""
    return float(np.mean([(ends(policy, goal) == goal).all(axis=1).mean() for goal in CORNERS]))


def test_a_goal_is_reached_and_bc_does_not_know_it(policies: dict[str, hm.Policy]) -> None:
    assert arrivals(policies["goal"]) > 0.95
    assert arrivals(policies["bc"]) < 0.2  # 25 cells
    ignoring = hm.load(policies["goal"].folder)
    assert ignoring.agent.policy.embed_z is not None
    with torch.no_grad():
        ignoring.agent.policy.embed_z.weight.zero_()
    assert arrivals(ignoring) < 0.3


def test_a_distribution_of_cells_is_matched(policies: dict[str, hm.Policy]) -> None:
    """Every column of the grid, each the target of an episode that stays in it."""
    for column in (0, SIZE - 1):
        target = np.full(STEPS, column, np.float32)
        found, blind = (policies[name].match(target, episodes=20, feature="x").w1 for name in ("cdt", "bc"))
        assert found < 0.6 * blind


def test_logs_alone_tell_that_the_conditioning_matters(policies: dict[str, hm.Policy]) -> None:
    """The error is half the squared error of probabilities: what the data leaves to chance is in it."""
    logged = hm.load_dataset(walks(20, seed=1), task())
    scored = policies["goal"].score(logged)
    assert scored["action_error"][0] < 0.3  # of two axes any may come first
    assert scored["sensitivity"][0] > 2.0
    sure = [one for one in logged if one.observations[0, 1] == one.observations[-1, 1]]  # only one axis to move along
    assert policies["goal"].action_error(sure)[0] < 0.05
    assert policies["bc"].score(logged)["sensitivity"][0] == 1.0


def test_a_batch_of_controllers_drives_vector_environments(policies: dict[str, hm.Policy]) -> None:
    envs = gymnasium.vector.SyncVectorEnv([Grid] * len(CORNERS))
    controller = policies["goal"].controller([f"goal({x},{y})" for x, y in CORNERS])
    seen, _ = envs.reset(seed=3)
    for _ in range(STEPS):
        actions = controller.act(seen)
        assert actions.shape == (len(CORNERS),)
        assert actions.dtype == np.int64
        assert ACTIONS.known(actions).all()
        seen, *_ = envs.step(actions)
    assert (seen == CORNERS).all(axis=1).mean() >= 0.75


def balanced(noise: float, seed: int) -> dict[str, Any]:
    """An episode of CartPole by a controller of angle and speed that pushes at random now and then."""
    env, rng = gymnasium.make("CartPole-v1", max_episode_steps=LONGEST), np.random.default_rng(seed)
    seen, _ = env.reset(seed=seed)
    observations, actions, ended = [], [], False
    while not ended:
        push = int(seen[2] + 0.5 * seen[3] > 0)
        observations.append(seen)
        actions.append(int(rng.integers(2)) if rng.random() < noise else push)
        seen, _, terminated, truncated, _ = env.step(actions[-1])
        ended = terminated or truncated
    return {
        "observations": np.array(observations),
        "actions": np.array(actions),
        "rewards": np.ones(len(actions)),
        "terminals": np.arange(len(actions)) == len(actions) - terminated,
        "final_observation": seen,
    }


def test_a_return_is_earned_in_cartpole(tmp_path: Path) -> None:
    """Half of the episodes are by chance and fall soon, half are steered: a return tells them apart."""
    cart = hm.Task("learned-cart", LONGEST, 4, env_id="CartPole-v1", discrete=hm.Discrete(2))
    data = hm.load_dataset([balanced(noise, i) for i, noise in enumerate(np.tile([1.0, 0.1], 80))], cart)
    fallen = float(np.median(data.returns[::2]))
    assert fallen < 30
    lasting: dict[str, list[float]] = {}
    for name, method, steps in (("dt", hm.DT(), 1000), ("bc", hm.BC(), 200)):
        policy = hm.train(method, data, out=tmp_path / name, **{**SETTINGS, "steps": steps, "context": 5})
        targets, how = [f"return({total:g})" for total in (fallen, LONGEST)], "remaining" if name == "dt" else "nominal"
        results = policy.match_all(targets, episodes=25, feature="reward", conditioning=how)
        lasting[name] = [result.lengths.mean() for result in results]
    low, high = lasting["dt"]
    assert low == pytest.approx(fallen, rel=0.5)
    assert high > 0.9 * LONGEST
    assert lasting["bc"][0] == pytest.approx(lasting["bc"][1], rel=0.3)
