"""Another target while a loop goes on: prepared elsewhere, swapped in between two steps."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from known_programs import know_programs
from random_episodes import episode
from untrained import untrained

import himatch as hm
from himatch.errors import HimatchError, HimatchWarning
from himatch.policy import Policy
from himatch.rollout import CONDITIONINGS, Conditioning
from himatch.rollout.checks import note_outside
from himatch.targets import EpisodeReference, Target

OF_DISTRIBUTIONS = [c for c in CONDITIONINGS if c != "waypoints"]  # those of a CDT
WAIT = 60.0  # seconds, which nothing here takes


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    rng = np.random.default_rng(0)
    return hm.load_dataset([episode(rng, 30, level=i / 5) for i in range(6)], "hopper")


@pytest.fixture
def policy(data: hm.TrajectoryDataset, tmp_path: Path) -> Policy:
    return untrained(hm.CDT("x_velocity"), data, tmp_path)


@pytest.mark.parametrize("conditioning", OF_DISTRIBUTIONS)
def test_a_prepared_target_is_the_target(
    conditioning: Conditioning, policy: Policy, data: hm.TrajectoryDataset
) -> None:
    know_programs(policy, [data[0], data[4]])
    swapped, plain = (policy.controller(data[0], conditioning=conditioning) for _ in range(2))
    prepared = swapped.prepare(data[4])
    for step, row in enumerate(data[1].observations[:12]):
        if step in (4, 9):  # as often as one likes
            swapped.retarget(prepared)
            plain.retarget(data[4])
        if step == 7:
            swapped.retarget(data[0])
            plain.retarget(data[0])
        np.testing.assert_array_equal(swapped.act(row), plain.act(row))
    assert isinstance(swapped.target, Target)
    assert swapped.target.name == prepared.targets[0].name


def test_some_robots(policy: Policy, data: hm.TrajectoryDataset) -> None:
    controller = policy.controller([data[0], data[1], data[2]])
    prepared = controller.prepare([data[4], data[5]], robots=[2, 0])
    controller.retarget(prepared)
    alone = [policy.controller(data[number]) for number in (5, 1, 4)]
    rows = np.stack([data[i].observations[0] for i in range(3)])
    actions = controller.act(rows)
    for robot, one in enumerate(alone):
        np.testing.assert_allclose(actions[robot], one.act(rows[robot]), atol=2e-6)


@pytest.mark.parametrize("prepares", [True, False])
def test_planning_does_not_hold_up_the_loop(
    prepares: bool, policy: Policy, data: hm.TrajectoryDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The linear program waits until the loop has made its steps; were it the other way round, neither would end."""
    controller, undisturbed = (policy.controller(data[0], conditioning="planned") for _ in range(2))
    begun, may_end, schedule = threading.Event(), threading.Event(), EpisodeReference.schedule

    def slowly(self: EpisodeReference, target: Target, *steps: int) -> list[tuple[int, float]]:
        begun.set()
        assert may_end.wait(WAIT)
        return schedule(self, target, *steps)

    monkeypatch.setattr(EpisodeReference, "schedule", slowly)

    def plan() -> None:
        if prepares:
            controller.retarget(controller.prepare(data[4]))
        else:
            controller.retarget(data[4])

    planning = threading.Thread(target=plan)
    planning.start()
    assert begun.wait(WAIT)
    for row in data[1].observations[:5]:
        np.testing.assert_array_equal(controller.act(row), undisturbed.act(row))  # under the old target still
    assert planning.is_alive()
    may_end.set()
    planning.join(WAIT)
    assert not planning.is_alive()
    row = data[1].observations[5]
    assert not np.array_equal(controller.act(row), undisturbed.act(row))


def test_a_constant_out_of_reach_is_said_to_be_one(recwarn: pytest.WarningsRecorder) -> None:
    data = hm.load_dataset([hm.Trajectory(np.ones((9, 2)), np.zeros((9, 1)))] * 2)
    reference = EpisodeReference.of(data, "obs[0]")
    note_outside(hm.parse_target("point(5)"), None, reference)
    (said,) = [str(one.message) for one in recwarn if "no training episode goes" in str(one.message)]
    assert said.endswith("they have obs[0] at 1")


def test_a_prepared_target_that_does_not_fit(policy: Policy, data: hm.TrajectoryDataset) -> None:
    one, other = policy.controller(data[0], batch=2), policy.controller(data[0], batch=2)
    prepared = one.prepare(data[4])
    with pytest.raises(HimatchError, match="prepared by another controller; prepare it with this one"):
        other.retarget(prepared)
    with pytest.raises(HimatchError, match=r"has its robots already; name them in prepare\(target, robots\)"):
        one.retarget(prepared, robots=[1])
    with pytest.warns(HimatchWarning, match=r"100% of normal\(40,1\) lies where no training episode goes"):
        one.prepare("normal(40,1)")
