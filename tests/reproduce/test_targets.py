"""Targets that suites make of episodes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import himatch as hm
from himatch.reproduce.suites import SUITES
from himatch.reproduce.targets import suite_targets

STEPS = 1000


def episode(number: int, label: str) -> hm.Trajectory:
    """Every state tells its episode and its step."""
    observations = np.zeros((STEPS, 17), dtype=np.float32)
    observations[:, 0], observations[:, 1] = number, np.arange(STEPS)
    rewards = np.zeros(STEPS, dtype=np.float32)
    return hm.Trajectory(observations, np.zeros((STEPS, 6), dtype=np.float32), rewards, label=label)


def test_patchworks_take_every_half_once_and_run_before_they_flip() -> None:
    """Paper: five more episodes of each behaviour, cut into halves of 500 steps, ten patchworks of them."""
    extra = hm.load_dataset(
        [episode(i, label) for i, label in enumerate(["run", "backflip"] * 6)], "halfcheetah"
    )  # one of each too many
    split = hm.Split(extra[:1], extra[1:2], ("expert",), np.array([0]), np.array([1]))
    targets = suite_targets(SUITES["zvel"], "halfcheetah", split, 0, lambda: extra)
    assert Counter(target.group for target in targets) == {"uni-modal": 10, "bi-modal": 10}
    assert len({target.target.name for target in targets}) == 20
    halves: Counter[tuple[int, int]] = Counter()
    for target in targets[10:]:
        demonstration = target.target.demonstration()
        assert demonstration is not None
        assert len(demonstration) == STEPS
        for part, behaviour in ((demonstration[:500], 0), (demonstration[500:], 1)):
            (number,) = set(part.observations[:, 0].tolist())
            assert number % 2 == behaviour
            assert np.ptp(part.observations[:, 1]) == 499
            halves[int(number), int(part.observations[0, 1])] += 1
    assert halves == {(number, first): 1 for number in range(10) for first in (0, 500)}


def test_a_suite_that_needs_no_more_episodes_makes_none() -> None:
    extra = hm.load_dataset([episode(0, "run"), episode(1, "run")], "halfcheetah")
    split = hm.Split(extra[:1], extra[1:], ("expert",), np.array([0]), np.array([1]))
    targets = suite_targets(SUITES["xvel"], "halfcheetah", split, 0, lambda: pytest.fail("nobody asked"))
    assert [target.group for target in targets] == ["expert"]


def earning(total: float, steps: int) -> hm.Trajectory:
    """The reward is the same at every step; the x-velocity is the step's number."""
    observations = np.zeros((steps, 17), dtype=np.float32)
    observations[:, 8] = np.arange(steps)
    observations[:, 0] = total  # or one would be a copy of the other
    rewards = np.full(steps, total / steps, dtype=np.float32)
    return hm.Trajectory(observations, np.zeros((steps, 6), dtype=np.float32), rewards)


def test_returns_that_are_asked_for_are_those_of_training_episodes() -> None:
    totals = [*range(100, 2100, 100), 9000.0]
    data = hm.load_dataset([earning(total, 10) for total in totals], "halfcheetah")
    split = hm.Split(data[:20], data[20:], ("expert",), np.arange(20), np.array([20]))
    targets = suite_targets(SUITES["hindsight-return"], "halfcheetah", split, 0, lambda: pytest.fail("nobody asked"))
    asked = {target.group: target.target for target in targets}
    assert [target.name for target in asked.values()] == ["return(2000)", "return(1950)", "return(1550)"]
    assert list(asked) == ["best", "best tenth", "expert"]
    assert [target.held_against for target in targets] == pytest.approx([1550.0] * 3)  # the better half


def test_goals_are_where_held_out_episodes_are_in_time() -> None:
    data = hm.load_dataset([earning(1.0, 300), earning(2.0, 250), earning(3.0, 120)], "halfcheetah")
    split = hm.Split(data[:1], data[1:], ("expert", "medium"), np.array([0]), np.array([1, 2]))
    targets = suite_targets(SUITES["hindsight-goal"], "halfcheetah", split, 0, lambda: pytest.fail("nobody asked"))
    assert [(target.target.name, target.group) for target in targets] == [
        ("goal(49, within=50)", "expert"),
        ("goal(199, within=200)", "expert"),
        ("goal(49, within=50)", "medium"),  # the other one is too short for the rest
    ]
