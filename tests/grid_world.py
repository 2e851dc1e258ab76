"""A small grid world with discrete actions that are not numbered from 0, and walks in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

import himatch as hm

SIZE, STEPS, FIRST = 5, 10, 1
MOVES = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])
STAY, RIGHT, LEFT, UP, DOWN = range(FIRST, FIRST + len(MOVES))
ENV = "himatch-tests/Grid-v0"
ACTIONS = hm.Discrete(len(MOVES), FIRST)


class Grid(gymnasium.Env):
    """A cell of a square; walls hold. The reward is 0 in the lower left corner, and 1 in the upper right one."""

    observation_space = gymnasium.spaces.Box(0, SIZE - 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(len(MOVES), start=FIRST)
    render_mode = "rgb_array"
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.cell = self.np_random.integers(0, SIZE, 2)
        return self.cell.astype(np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert self.action_space.contains(action), action
        self.cell = np.clip(self.cell + MOVES[action - FIRST], 0, SIZE - 1)
        return self.cell.astype(np.float32), float(self.cell.sum()) / (2 * SIZE - 2), False, False, {}

    def render(self) -> np.ndarray:
        picture = np.zeros((32, 32, 3), np.uint8)
        picture[6 * int(self.cell[1]), 6 * int(self.cell[0])] = 255
        return picture


def towards(cell: np.ndarray, goal: np.ndarray, rng: np.random.Generator) -> int:
    """A step that leads to the goal, or staying there."""
    ahead = np.sign(goal - cell)
    axes = np.flatnonzero(ahead)
    if not len(axes):
        return STAY
    axis = rng.choice(axes)
    return int(FIRST + 1 + 2 * axis + (ahead[axis] < 0))


def walks(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Episodes that go to a random cell and stay there; actions are numbers."""
    rng, env, found = np.random.default_rng(seed), Grid(), []
    for number in range(count):
        seen, _ = env.reset(seed=seed * 10_000 + number)
        goal = rng.integers(0, SIZE, 2)
        observations, actions, rewards = [seen], [], []
        for _ in range(STEPS):
            actions.append(towards(env.cell, goal, rng))
            seen, reward, *_ = env.step(actions[-1])
            observations.append(seen)
            rewards.append(reward)
        found.append(
            {
                "observations": np.array(observations[:-1]),
                "actions": np.array(actions),
                "rewards": np.array(rewards),
                "final_observation": observations[-1],
                "label": f"{goal[0]} {goal[1]}",
            }
        )
    return found


def task(**more: Any) -> hm.Task:
    """The grid as a task."""
    return hm.Task("grid", STEPS, 2, features={"x": 0, "y": 1, "cell": (0, 1)}, env_id=ENV, discrete=ACTIONS, **more)


@pytest.fixture(scope="module", autouse=True)
def grid() -> Iterator[None]:
    """A module that imports this can make grids by their name."""
    gymnasium.register(ENV, "grid_world:Grid", max_episode_steps=STEPS)
    yield
    del gymnasium.registry[ENV]
