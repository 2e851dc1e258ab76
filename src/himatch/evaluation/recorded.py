"""At which state the feature of a step is read in rollouts: himatch's s_t, or s_{t+1} as in the authors' code."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from himatch.types import Trajectory

RecordedAt = Literal["t", "t+1"]


def recorded(rollout: Trajectory, at: RecordedAt) -> Trajectory:
    """A rollout as its features are read: with the state of each step, or the one that the step led to.

    Actions and rewards stay where they are, and with them every feature that is made of these alone.
    """
    if at == "t":
        return rollout
    assert rollout.final_observation is not None  # a rollout has one
    return replace(rollout, observations=np.concatenate([rollout.observations[1:], rollout.final_observation[None]]))
