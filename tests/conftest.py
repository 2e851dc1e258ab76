"""What all tests share: reproducible property tests and small random episodes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

import himatch as hm

settings.register_profile(
    "default", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")
torch.set_num_threads(1)  # tests run side by side


def episode(
    rng: np.random.Generator, steps: int = 30, obs: int = 11, act: int = 3, level: float = 0.0
) -> hm.Trajectory:
    """A random Hopper-shaped episode whose features and rewards lie around ``level``."""
    return hm.Trajectory(
        rng.normal(level, 1, (steps, obs)),
        rng.uniform(-1, 1, (steps, act)),
        rng.normal(level, 1, steps),
        rng.normal(level, 1, obs),
    )


@pytest.fixture
def hopper() -> hm.TrajectoryDataset:
    """Twenty episodes of different lengths and levels."""
    rng = np.random.default_rng(0)
    return hm.load_dataset([episode(rng, 20 + i, level=i / 5) for i in range(20)], "hopper")
