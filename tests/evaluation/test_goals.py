"""Goals that are counted as reached are those at which the environment terminates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
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
