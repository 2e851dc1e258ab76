"""The two cheetahs that the paper trained experts for, as Gymnasium environments.

Both are HalfCheetah-v5 with another reward and without termination. Velocities are finite differences over a control
step, as in HalfCheetah.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv
from gymnasium.utils import EzPickle
from numpy.typing import NDArray

from himatch.tasks.notices import quiet_loading


class _Cheetah(HalfCheetahEnv):
    """HalfCheetah up to its reward."""

    def _initialize_simulation(self) -> Any:
        with quiet_loading():
            return super()._initialize_simulation()

    def step(self, action: NDArray[np.floating]) -> tuple[NDArray[np.float64], Any, bool, bool, dict[str, Any]]:
        before = self.data.qpos[1:3].copy()
        observation, _, terminated, truncated, info = super().step(action)  # type: ignore[no-untyped-call]
        info["z_velocity"], info["pitch_rate"] = (self.data.qpos[1:3] - before) / self.dt
        del info["reward_forward"]  # HalfCheetah's, which is not paid here
        info["reward_behaviour"] = self._behaviour_reward(info["x_velocity"], info["pitch_rate"])
        return observation, info["reward_behaviour"] + info["reward_ctrl"], terminated, truncated, info

    def _behaviour_reward(self, x_velocity: float, pitch_rate: float) -> float:
        raise NotImplementedError


class CheetahVelEnv(_Cheetah):
    """The cheetah that runs at a given velocity: reward -|vx - v| - 0.05 |a|^2, 200 steps.

    Parameters
    ----------
    velocity
        The target v, in metres a second.
    **settings
        Those of HalfCheetah-v5.
    """

    def __init__(self, velocity: float = 1.0, *, ctrl_cost_weight: float = 0.05, **settings: Any) -> None:
        self.velocity = float(velocity)
        super().__init__(ctrl_cost_weight=ctrl_cost_weight, **settings)
        EzPickle.__init__(self, velocity, ctrl_cost_weight=ctrl_cost_weight, **settings)

    def _behaviour_reward(self, x_velocity: float, pitch_rate: float) -> float:
        return -abs(x_velocity - self.velocity)


class BackflipCheetahEnv(_Cheetah):
    """The cheetah that flips: reward |vx| + |pitch rate| - 0.1 |a|^2, 1000 steps.

    This is the reward of the authors' public code, which differentiates the pitch angle. The paper's text has another:
    HalfCheetah's, which pays for running forwards, and the absolute z-velocity.

    Parameters
    ----------
    direction
        0 pays for any direction, as the public code does. -1 pays for the pitch rate backwards alone, 1 for the
        opposite: an agent that began with that turns on in its direction.
    **settings
        Those of HalfCheetah-v5.
    """

    def __init__(self, *, direction: float = 0.0, **settings: Any) -> None:
        self.direction = float(direction)
        super().__init__(**settings)
        EzPickle.__init__(self, direction=direction, **settings)

    def _behaviour_reward(self, x_velocity: float, pitch_rate: float) -> float:
        if self.direction:
            return self.direction * pitch_rate
        return abs(x_velocity) + abs(pitch_rate)
