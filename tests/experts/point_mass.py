"""Two small tasks: ``point`` has to reach a goal on a line, ``plane`` one in a plane. Importing registers them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import himatch as hm

HORIZON = 20


class PointMass(gymnasium.Env[NDArray[np.float64], NDArray[np.float32]]):
    """Position and goal are seen, actions in [-1, 3] move by 0.1 (a - 1), every step earns exp(-4 distance)."""

    def __init__(self, axes: int = 1, bonus: float = 0.0) -> None:
        self.axes, self.bonus = axes, bonus
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2 * axes,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 3.0, (axes,), np.float32)
        self.state = np.zeros(2 * axes)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1.0, 1.0, 2 * self.axes)
        return self.state.copy(), {}

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        self.state[: self.axes] += 0.1 * (action - 1.0)
        distance = float(np.abs(self.state[: self.axes] - self.state[self.axes :]).sum())
        return self.state.copy(), float(np.exp(-4.0 * distance)) + self.bonus, distance > 8.0, False, {}


for _name, _axes in (("point", 1), ("plane", 2)):
    _id = f"himatch-tests/{_name.capitalize()}-v0"
    if _id not in gymnasium.registry:
        gymnasium.register(_id, lambda axes=_axes, **settings: PointMass(axes, **settings))
    hm.register_task(_name, env_id=_id, horizon=HORIZON)
