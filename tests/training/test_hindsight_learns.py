"""What relabelled methods learn where the right action is known: to be there in time, to earn so much in so many steps.

A dot on a line moves by its action; an episode keeps its speed. So to be at g in n steps from x takes the action
(g - x) / n, and to earn R, an action's own reward, in H steps takes R / H: either number changes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import himatch as hm
from himatch.methods import Method
from himatch.policy import Policy
from himatch.tasks import Task

STEPS, REACH = 40, 0.1  # of an episode; how far the action 1 moves the dot
LINE = Task("line", STEPS, 2, 1, -1.0, 1.0, features={"x": 0})
SETTINGS: dict[str, Any] = {"preset": "cpu", "head": "tanh", "width": 64, "layers": 2, "batch_size": 128, "quiet": True}


def episode(rng: np.random.Generator) -> hm.Trajectory:
    """One speed throughout; the dot sees where it is, and its clock."""
    speed = rng.uniform(-0.9, 0.9)
    x = rng.uniform(-0.5, 0.5) + REACH * speed * np.arange(STEPS)
    seen = np.stack([x, np.arange(STEPS) / STEPS], axis=1)
    return hm.Trajectory(seen, np.full((STEPS, 1), speed), np.full(STEPS, speed))


@pytest.fixture(scope="module")
def line() -> hm.TrajectoryDataset:
    rng = np.random.default_rng(0)
    return hm.load_dataset([episode(rng) for _ in range(200)], LINE)


@pytest.fixture(scope="module")
def train(line: hm.TrajectoryDataset, tmp_path_factory: pytest.TempPathFactory) -> Any:
    known: dict[Method, Policy] = {}

    def trained(method: Method, steps: int = 900, **settings: Any) -> Policy:
        if method not in known:
            out = tmp_path_factory.mktemp("run")
            known[method] = hm.train(method, line, out=out, steps=steps, **{**SETTINGS, **settings})
        return known[method]

    return trained


def drive(policy: Policy, target: str, start: float = 0.0, steps: int = STEPS, **how: Any) -> np.ndarray:
    """Where the dot is at every step; it starts at the clock's zero."""
    controller = policy.controller(target, **how)
    places, x, reward = [], start, None
    for step in range(steps):
        places.append(x)
        action = float(controller.act([x, step / STEPS], reward)[0])
        x, reward = x + REACH * action, action
    return np.array(places)


def first_action(policy: Policy, target: str, seen: tuple[float, float] = (0.0, 0.0)) -> float:
    return float(policy.controller(target).act(list(seen))[0])


def ignoring(policy: Policy) -> Policy:
    """The same policy without the weights of z."""
    deaf = hm.load(policy.folder)
    network: Any = deaf.agent.policy
    with torch.no_grad():
        if hasattr(network, "embed_z"):
            network.embed_z.weight.zero_()
        else:
            network.layers[0].weight[:, deaf.agent.dims.observation :].zero_()
    return deaf


GOALS = [(1.5, 31), (-1.2, 31), (0.9, 16), (-0.6, 12), (0.3, 21)]


def misses(policy: Policy, goals: list[tuple[float, int]] = GOALS) -> np.ndarray:
    """How far the dot is from every goal at its deadline."""
    return np.array([abs(drive(policy, f"goal({g}, within={n})", steps=n)[-1] - g) for g, n in goals])


@pytest.mark.parametrize(
    "method",
    [
        hm.GCSL("x"),
        hm.GCSL("x", relabel="geometric", relabel_gamma=0.95),
        hm.GoalDT("x", relabel="uniform", steps_left=True),
    ],
    ids=lambda m: f"{m.name} {m.relabel}",
)
def test_goals_are_reached_in_time(method: Method, train: Any) -> None:
    policy = train(method, context=1) if method.name == "gcsl" else train(method, context=2, layers=1, width=32)
    assert misses(policy).max() < 0.15
    assert misses(ignoring(policy)).max() > 0.8


@pytest.mark.filterwarnings("ignore:the policy is not conditioned on the time that is left")
def test_time_left_decides_how_fast(train: Any) -> None:
    """The same goal in half of the time takes twice the speed; without the time left nobody can know."""
    policy = train(hm.GCSL("x"))
    for steps in (11, 21, 41):
        speed = 0.8 / REACH / (min(steps, STEPS) - 1)
        assert first_action(policy, f"goal(0.8, within={min(steps, STEPS)})") == pytest.approx(speed, abs=0.08)
    blind = train(hm.GCSL("x", steps_left=False))
    soon, late = (first_action(blind, f"goal(0.8, within={steps})") for steps in (11, 40))
    assert soon == late
    assert misses(blind).mean() > 2 * misses(policy).mean()
    assert first_action(blind, "goal(0.8)") > 0.2 > -0.2 > first_action(blind, "goal(-0.8)")  # whither, it does know


def test_a_random_state_says_nothing_of_the_action(train: Any) -> None:
    """The control of the others: what was reached in another episode is no goal of this one."""
    assert misses(train(hm.GCSL("x", relabel="random"), steps=300)).max() > 0.8


def test_final_goals_are_reached_at_the_end(train: Any) -> None:
    """`goal` as it is in the paper's table: the last value, on the way at the clock's pace."""
    policy = train(hm.GoalDT("x"), context=2, layers=1, width=32)
    for goal in (2.0, 0.8, -1.5):
        assert abs(drive(policy, f"goal({goal})")[-1] - goal) < 0.2
    assert abs(drive(ignoring(policy), "goal(2)")[-1] - 2.0) > 1.0


@pytest.mark.parametrize("relabel", ["uniform", "final"])
def test_commands_are_carried_out(relabel: Any, train: Any) -> None:
    """More in the same time, or the same in less, is faster."""
    policy = train(hm.UDRL(relabel=relabel))
    commands = [(20.0, 40), (-20.0, 40), (30.0, 40), (10.0, 40)]
    if relabel == "uniform":  # whole rests at the start of an episode have all its steps
        commands += [(6.0, 10), (6.0, 20), (12.0, 20), (-6.0, 10)]
    for total, steps in commands:
        command = f"return({total}, within={steps})"
        assert first_action(policy, command) == pytest.approx(total / steps, abs=0.08)
        earned = np.diff(drive(policy, command, steps=steps + 1)).sum() / REACH
        assert earned == pytest.approx(total, abs=0.12 * steps)
    assert abs(first_action(ignoring(policy), "return(30)") - 0.75) > 0.4


def test_what_is_left_of_a_command_is_made_up_for(train: Any) -> None:
    """After ten steps that earned nothing, all of it is to be earned in the thirty that are left."""
    policy = train(hm.UDRL())
    for conditioning, wanted in (("remaining", 18.0 / 30), ("nominal", 18.0 / 40)):
        controller = policy.controller("return(18, within=40)", conditioning=conditioning)
        for step in range(11):
            action = float(controller.act([0.0, step / STEPS], 0.0 if step else None)[0])
        assert action == pytest.approx(wanted, abs=0.08)


@pytest.mark.parametrize("given", ["return", "advantage"])
def test_reward_conditioned_policies_earn_what_they_are_given(given: Any, train: Any) -> None:
    policy = train(hm.RCP(given=given, beta=2.0), steps=1200)
    for total in (28.0, 16.0, 0.0, -16.0):
        assert first_action(policy, f"return({total})") == pytest.approx(total / STEPS, abs=0.1)
        earned = np.diff(drive(policy, f"return({total})", steps=STEPS + 1)).sum() / REACH
        assert earned == pytest.approx(total, abs=0.12 * STEPS)
    assert abs(first_action(ignoring(policy), "return(28)") - first_action(ignoring(policy), "return(-16)")) == 0.0
