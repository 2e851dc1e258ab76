"""Episodes that were just played, as a dataset, and what is written beside them."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from himatch._runtime.extras import installed_versions
from himatch._version import __version__
from himatch.data.dataset import TrajectoryDataset
from himatch.data.episodes import pack_trajectories
from himatch.data.facts import Facts
from himatch.tasks import Task
from himatch.types import Trajectory


def recorded_dataset(trajectories: Sequence[Trajectory], task: Task, source: str) -> TrajectoryDataset:
    """Episodes that were just played, as a dataset."""
    packed = replace(pack_trajectories(trajectories, task), facts=Facts(discrete=task.discrete))
    return TrajectoryDataset(packed, task, source=source, env_id=task.env_id)


def recording_metadata(facts: dict[str, Any]) -> dict[str, Any]:
    """What a recorded set says about where it comes from: Minari's keys, and himatch's own block."""
    versions = installed_versions("gymnasium", "mujoco", "numpy", "torch")
    return {
        "requirements": [f"{name}=={versions[name]}" for name in ("gymnasium", "mujoco") if name in versions],
        "himatch": {**facts, "versions": {"himatch": __version__, "python": platform.python_version(), **versions}},
    }


def return_range(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Mean, lowest and highest return."""
    returns = np.array([trajectory.total_reward for trajectory in trajectories])
    return {"mean": float(returns.mean()), "min": float(returns.min()), "max": float(returns.max())}
