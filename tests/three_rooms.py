"""A U of three corridors, 2 wide and 10 long, in NumPy: no episode goes through all of them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

import himatch as hm

SPEED, TOLERANCE = 0.2, 1.0
ENV_ID = "tests/ThreeRooms-v0"

hm.register_task(
    "three-rooms",
    env_id=ENV_ID,
    horizon=150,
    observation_width=2,
    action_width=2,
    action_low=-1,
    action_high=1,
    features={"xy": (0, 1)},
)


def moved(places: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Up, across, down; walls stop one coordinate at a time."""
    after = places + SPEED * np.clip(actions, -1, 1)
    for axis in (0, 1):
        one = places.copy()
        one[:, axis] = after[:, axis]
        places = np.where(inside(one)[:, None], one, places)
    return places


def inside(places: np.ndarray) -> np.ndarray:
    x, y = places.T
    within = (x >= 0) & (x <= 10) & (y >= 0) & (y <= 10)
    return within & ((x <= 2) | (x >= 8) | (y >= 8))


def walk(rng: np.random.Generator, stops: list[tuple[float, float]], steps: int) -> hm.Trajectory:
    """From the first stop to the others in turn, with noise, and rest."""
    place, goals = np.array([stops[0]]) + rng.uniform(-0.8, 0.8, 2), stops[1:]
    seen, acted = [place[0]], []
    for _ in range(steps):
        while len(goals) > 1 and np.linalg.norm(place[0] - goals[0]) < 0.5:
            goals = goals[1:]
        way = np.array(goals[0]) - place[0]
        action = way / max(np.linalg.norm(way), SPEED) + rng.normal(0, 0.3, 2)
        acted.append(action.clip(-1, 1))
        place = moved(place, acted[-1][None])
        seen.append(place[0])
    return hm.Trajectory(np.array(seen[:-1]), np.array(acted), None, np.array(seen[-1]))


FOOT, LEFT, RIGHT, OTHER = (1.0, 1.0), (1.0, 9.0), (9.0, 9.0), (9.0, 1.0)


def corridors() -> hm.TrajectoryDataset:
    """Every episode is in one corridor and a corner of the next, there or back."""
    rng = np.random.default_rng(0)
    legs = [[FOOT, LEFT, (3.0, 9.0)], [LEFT, RIGHT, (9.0, 7.0)], [RIGHT, OTHER]]
    legs += [leg[::-1] for leg in legs]
    return hm.load_dataset([walk(rng, legs[i % 6], 70) for i in range(180)], "three-rooms")


class ThreeRooms(gymnasium.Env[Any, Any]):
    """From a start to a goal, within the tolerance of which it ends."""

    def __init__(self, start: tuple[float, float] = FOOT, goal: tuple[float, float] = OTHER) -> None:
        self.observation_space = gymnasium.spaces.Box(0.0, 10.0, (2,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self._start, self._goal = np.array(start), np.array(goal)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = self._start
        return self._place, {"goal": tuple(self._goal)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._place = moved(self._place[None], np.asarray(action)[None])[0]
        there = bool(np.linalg.norm(self._place - self._goal) < TOLERANCE)
        return self._place, 0.0, there, False, {}


if ENV_ID not in gymnasium.registry:
    gymnasium.register(ENV_ID, ThreeRooms)
