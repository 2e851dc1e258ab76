"""Small random episodes. Not in conftest: folders have one of their own, and the name would mean any of them."""

from __future__ import annotations

import numpy as np

import himatch as hm


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
