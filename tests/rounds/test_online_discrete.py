"""Rollouts of discrete actions are saved, collected and trained on, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from grid_world import ACTIONS, grid, task, walks

import himatch as hm
from himatch.rounds.folder import OnlineFolder

__all__ = ["grid"]
pytestmark = pytest.mark.filterwarnings("ignore::himatch.HimatchWarning")


def test_discrete_actions(tmp_path: Path) -> None:
    data = hm.load_dataset(walks(40), task())
    settings = {"preset": "cpu", "width": 16, "layers": 1, "context": 1, "batch_size": 8, "steps": 4, "quiet": True}
    policy = hm.train(hm.GoalDT("cell"), data, out=tmp_path / "run", **settings)  # type: ignore[arg-type]
    made = policy.match("goal(2,2)", episodes=3).save(tmp_path / "saved")
    read = hm.load_dataset(tmp_path / "saved", task())
    assert read.content_hash == made.content_hash
    assert read.discrete == ACTIONS
    assert (np.sort(np.unique(read.actions)) == [0, 1]).all()
    targets = ("goal(2,2)", "goal(0,0)")
    where = tmp_path / "collected"
    collected = hm.collect_dataset(task(), f"run:{tmp_path / 'run'}", where, targets=targets, episodes=4, quiet=True)
    assert hm.load_dataset(where, task()).content_hash == collected.content_hash
    hm.online(tmp_path / "run", out=tmp_path / "out", data=data, rounds=2, episodes=3, steps=2, quiet=True)
    assert [row["trained_on"]["rollouts"] for row in OnlineFolder(tmp_path / "out").rows] == [3, 6]
