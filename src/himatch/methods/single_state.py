"""What methods share whose policy sees a single state and z, a statistic that is known or relabelled: RvS policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from himatch.methods.base import Agent, Method, Settings
from himatch.methods.batch import BatchSpec, Dims
from himatch.methods.normalizers import ZScale, usual_moments
from himatch.networks.single_step import StepPolicy
from himatch.networks.transformer import ModelConfig, initialize
from himatch.statistics.information import Statistic
from himatch.types import StepRows

SINGLE_STATES: dict[str, Any] = {"context": 1, "layers": 2, "dropout": 0.0, "head": "gaussian"}
_ADAM = {"batch_size": 256, "warmup": 0, "weight_decay": 0.0, "clip": 10.0}
_QUICK = {"learning_rate": 1e-3, "schedule": "linear"}


def presets(paper: Settings) -> Mapping[str, Settings]:
    """Those of a method whose paper has these settings; the others are the same for all."""
    return {
        "paper": {**SINGLE_STATES, **_ADAM, "steps": 100_000, **paper},
        "fast": {**SINGLE_STATES, **_ADAM, **_QUICK, "layers": 3, "width": 256, "steps": 30_000},
        "cpu": {**SINGLE_STATES, **_ADAM, **_QUICK, "width": 128, "steps": 10_000, "batch_size": 128},
    }


@dataclass(frozen=True)
class SingleStateMethod(Method):
    """A policy of single states, whose z is scaled to unit spread."""

    fixed: ClassVar[Settings] = {"context": 1}
    unused: ClassVar[tuple[str, ...]] = ("context", "heads", "tokens", "activation", "time_std")

    def build(self, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> Agent:
        """Fully connected policies."""
        return SingleStateAgent(self, config, dims, seeds)

    def batch_spec(self, context: int, action: int) -> BatchSpec:
        """Single steps, as z is known before training."""
        return BatchSpec(1)

    def z_scale(self, z: StepRows, statistic: Statistic, lengths: NDArray[np.int64], horizon: int) -> ZScale:
        """To unit spread."""
        return ZScale(*usual_moments(z))


class SingleStateAgent(Agent):
    """K policies of single states. In single precision: the networks are small."""

    precision: ClassVar[torch.dtype] = torch.float32

    def __init__(self, method: Method, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> None:
        super().__init__(method, config, dims, seeds)
        self.policy = self.make_policy((config.width,) * config.layers)
        initialize(self, seeds)

    def make_policy(self, hidden: tuple[int, ...]) -> StepPolicy:
        """The policy with these hidden layers."""
        dims, config = self.dims, self.config
        return StepPolicy(len(self.seeds), dims.observation, dims.action, dims.z, hidden, config.dropout, config.head)
