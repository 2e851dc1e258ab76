"""What multi-task methods learn where the right action is known: a dot's own speed is what its task asks for.

An agent that was to keep the speed c kept half of it. So under task(c) a policy of labels keeps half of c, as was done
under that label; relabelled with what was done, it keeps c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import himatch as hm
from himatch.errors import HimatchError, TargetError
from himatch.methods import METHODS, Method
from himatch.methods.single_state import SingleStateMethod
from himatch.policy import Policy
from himatch.statistics.information import InformationStatistic
from himatch.tasks import Task

STEPS = 24
SPEED = Task("speed", STEPS, 2, 1, -1.0, 1.0, features={"speed": "act[0]"})
REWARDS: dict[str, Any] = {"ahead": lambda obs, act, rew: act[:, 0], "back": lambda obs, act, rew: -act[:, 0]}
SETTINGS: dict[str, Any] = {"preset": "cpu", "head": "tanh", "width": 64, "layers": 2, "batch_size": 128, "quiet": True}
KEPT = 0.5  # of what an agent was to do
HINDSIGHT = (hm.HIPI("speed"), hm.GH("speed"), hm.HIPI("speed", rewards="square", unit=0.1))
UNSEEN = (-0.41, 0.2, 0.44)
"""Speeds that no agent was near to: a gap around each."""


def agents(rng: np.random.Generator) -> list[hm.Trajectory]:
    """Each keeps a speed of its own, a little unsteadily; states say nothing of it."""
    found = []
    while len(found) < 120:
        speed = rng.uniform(-0.6, 0.6)
        if min(abs(speed - gap) for gap in UNSEEN) > 0.03:
            actions = np.clip(speed + 0.05 * rng.normal(size=(STEPS, 1)), -1, 1)
            seen = rng.uniform(-1, 1, (STEPS, 2))
            found.append(hm.Trajectory(seen, actions, -np.abs(actions[:, 0]), label=f"{speed / KEPT:.4f}"))
    return found


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset(agents(np.random.default_rng(0)), SPEED)


@pytest.fixture(scope="module")
def train(data: hm.TrajectoryDataset, tmp_path_factory: pytest.TempPathFactory) -> Any:
    known: dict[Method, Policy] = {}

    def trained(method: Method) -> Policy:
        if method not in known:
            known[method] = hm.train(method, data, out=tmp_path_factory.mktemp("run"), steps=500, **SETTINGS)
        return known[method]

    return trained


def kept(policy: Policy, target: str) -> np.ndarray:
    """The actions of an episode under a target, wherever it is."""
    controller, rng = policy.controller(target), np.random.default_rng(1)
    return np.array([controller.act(rng.uniform(-1, 1, 2))[0] for _ in range(STEPS)])


def ignoring(policy: Policy) -> Policy:
    """The same policy without the weights of z."""
    deaf = hm.load(policy.folder)
    network: Any = deaf.agent.policy
    with torch.no_grad():
        network.layers[0].weight[:, deaf.agent.dims.observation :].zero_()
    return deaf


@pytest.mark.parametrize("method", HINDSIGHT, ids=lambda m: f"{m.name} {m.rewards}")
def test_tasks_are_served_whether_an_agent_was_near_or_not(method: Any, train: Any) -> None:
    policy = train(method)
    for speed in (-0.5, *UNSEEN, 0.0):
        assert np.abs(kept(policy, f"task({speed})") - speed).max() < 0.08
    assert np.ptp([kept(ignoring(policy), f"task({speed})").mean() for speed in UNSEEN]) == 0.0
    assert policy.statistic.meaning.startswith("the parameter psi, -0.")


def test_labels_say_what_was_asked_and_relabelling_what_was_done(train: Any) -> None:
    """The control: nothing is learned from a label but what was done under it."""
    policy = train(hm.MultiTask("speed"))
    for asked in (-0.6, -0.2, 0.4, 0.64):
        assert np.abs(kept(policy, f"task({asked})") - KEPT * asked).max() < 0.08
    assert np.ptp([kept(ignoring(policy), f"task({asked})").mean() for asked in (-0.6, 0.64)]) == 0.0


def test_tasks_follow_one_another(train: Any) -> None:
    found = kept(train(hm.HIPI("speed")), "task(-0.41) for 10 then task(0.44)")
    np.testing.assert_allclose(found, np.repeat([-0.41, 0.44], (10, STEPS - 10)), atol=0.08)


def test_other_targets_stand_for_the_task_that_they_serve(train: Any) -> None:
    """Distributions and episodes by what they show; episodes under a policy of labels by their label."""
    by_rewards, by_labels = train(hm.HIPI("speed")), train(hm.MultiTask("speed"))
    assert abs(kept(by_rewards, "normal(0.44,0.05)")[: STEPS // 2].mean() - 0.44) < 0.08
    assert abs(kept(by_labels, "normal(0.4,0.05)")[: STEPS // 2].mean() - KEPT * 0.4) < 0.08
    actions = np.full((STEPS, 1), 0.3)
    episode = hm.Trajectory(np.zeros((STEPS, 2)), actions, label="-0.8")
    said, seen = by_labels.actions(episode)[0, :, 0], by_rewards.actions(episode)[0, :, 0]
    assert abs(said.mean() - KEPT * -0.8) < 0.08
    assert abs(seen[: STEPS // 2].mean() - 0.3) < 0.08


def test_relabelling_needs_no_labels(data: hm.TrajectoryDataset) -> None:
    plain = hm.load_dataset([hm.Trajectory(e.observations, e.actions) for e in data], SPEED)
    for method in HINDSIGHT:
        statistic = method.statistic(SPEED)
        np.testing.assert_array_equal(statistic.fit(plain).relabel(plain), statistic.fit(data).relabel(data))


def test_a_task_is_for_policies_that_have_tasks(data: hm.TrajectoryDataset, train: Any, tmp_path: Any) -> None:
    other = hm.train(hm.CDT("speed"), data, out=tmp_path / "cdt", steps=1, **SETTINGS)
    with pytest.raises(TargetError, match=r"^cdt is conditioned on no task, so task\(0.2\) says nothing.*point\(0.2\)"):
        other.controller("task(0.2)")
    with pytest.raises(HimatchError, match="conditioned on no task"):
        other.actions(data[0], "task(0.2) for 9 then task(0.4)")
    clone = hm.train(hm.BC(), data, out=tmp_path / "bc", steps=1, **SETTINGS)
    clone.controller("task(0.2)")  # the control may be compared with anything
    with pytest.raises(TargetError, match=r"task\(1,2\) gives 2 numbers, the feature speed has 1"):
        train(hm.HIPI("speed")).controller("task(1,2)")
    with pytest.raises(TargetError, match="is of the task '1,2', and tasks have parameters of 1 numbers here"):
        train(hm.MultiTask("speed")).actions(hm.Trajectory(data[0].observations, data[0].actions, label="1,2"))


@dataclass(frozen=True)
class BestReward(SingleStateMethod):
    """The statistic of the paper's multi-task category: which of a few rewards the rest has most of."""

    name: ClassVar[str] = "best-reward"
    feature: str = "ahead,back"

    def statistic(self, task: Task) -> InformationStatistic:
        return hm.multi_task(task, self.feature)


def test_one_of_a_few_rewards(data: hm.TrajectoryDataset, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told which one is wanted the policy does what those did who had most of it: 0.3 on average, either way."""
    monkeypatch.setitem(METHODS, BestReward.name, BestReward)
    monkeypatch.setattr("himatch.tasks.registry._registry", {})
    ways = hm.register_task("ways", horizon=STEPS, action_low=-1.0, action_high=1.0, features=REWARDS)
    policy = hm.train(BestReward(), hm.load_dataset(list(data), ways), out=tmp_path, steps=300, **SETTINGS)
    wanted = ("task(0.3,-0.3)", "task(-0.3,0.3)", "joint(point(0.3), point(-0.3))")
    for target, sign in zip(wanted, (1, -1, 1), strict=True):
        assert (sign * kept(policy, target) > 0.2).all(), target
    assert np.ptp([kept(ignoring(policy), target).mean() for target in wanted]) == 0.0
