"""Goals that are counted as reached are those at which the environment terminates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from three_rooms import FOOT, OTHER, SPEED, corridors
from untrained import untrained

import himatch as hm
from himatch.evaluation.goals import goals_reached
from himatch.rollout import Conditioning


@pytest.mark.parametrize("conditioning", ["nominal", "waypoints"])
def test_near_goals_are_reached_and_far_ones_are_not(conditioning: Conditioning, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    places = np.cumsum(rng.uniform(-0.2, 0.2, (5, 30, 2)), axis=1)
    episodes = [hm.Trajectory(p[:-1], rng.uniform(-1, 1, (29, 2)), None, p[-1]) for p in places]
    policy = untrained(hm.GCSL("xy"), hm.load_dataset(episodes, "ogbench-pointmaze-medium"), tmp_path)
    goals = [(0.5, 0.0), (4.0, 0.0), (0.0, 0.3)]
    settings = [{"start": (0.0, 0.0), "goal": goal} for goal in goals]
    reached, lengths = goals_reached(policy.run, policy.agent, goals, settings, conditioning=conditioning, steps=2)
    np.testing.assert_array_equal(reached, np.tile([True, False, True], (len(policy.seeds), 1)))
    assert (lengths == np.where(reached, 1, 2)).all()


def test_a_goal_behind_two_corners_is_reached_by_way_points_alone(tmp_path: Path) -> None:
    """No episode shows both corners; up to 8, across from 2 to 8 and down to 2 are 18.3 at the least, at 0.2 a step."""
    policy = hm.train(
        hm.GCSL("xy"), corridors(), out=tmp_path / "run", preset="cpu", steps=700, width=64, seeds=2, quiet=True
    )
    starts = np.array(FOOT) + np.random.default_rng(5).uniform(-0.7, 0.7, (6, 2))
    settings = [{"start": tuple(start.tolist()), "goal": OTHER} for start in starts]
    found = {
        conditioning: goals_reached(policy.run, policy.agent, [OTHER] * 6, settings, conditioning=conditioning)
        for conditioning in ("nominal", "waypoints")
    }
    assert found["nominal"].reached.mean() < 0.2
    assert (found["nominal"].steps[~found["nominal"].reached] == 150).all()
    assert found["waypoints"].reached.mean() > 0.9
    assert (found["waypoints"].steps >= (8 - 1.7 + 6 + 6) / SPEED).all()
