"""OGBench's PointMaze environments, with a start and a goal that are given or drawn from the seed of a reset.

The physics, the mazes, the tolerance of a goal and the five test tasks are OGBench's own (extra ``ogbench``). What is
not: its environments draw starts and goals from NumPy's global generator, so that no seed gives the same episode twice.
"""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from himatch._runtime.extras import import_extra
from himatch.errors import SimulationError
from himatch.tasks.notices import quiet_loading
from himatch.tasks.physics import import_mujoco

CELL, OFFSET = 4.0, 4.0  # OGBench's width of a cell, and where the first one lies
SIZE = 480  # pixels of a picture
NOISE = 1.0  # by which starts and goals lie off the middle of their cell, at most, in x and in y

Cell = tuple[int, int]
Place = tuple[float, float]


class PointMazeEnv(gymnasium.Env[NDArray[np.float64], NDArray[np.float32]]):
    """A ball in a maze.

    Parameters
    ----------
    maze
        ``medium``, ``large`` or ``giant``.
    start, goal
        Places ``(x, y)``. Without a start, an episode begins anywhere in the maze. With a goal, it ends within the
        tolerance that OGBench has, and that step is paid 1; without one nothing is paid, and it goes on.
    test
        One of OGBench's five test tasks, 1 to 5, in place of both: their cells, with OGBench's noise from the seed.
    render_mode
        ``rgb_array`` or nothing.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  (Gymnasium's own)

    def __init__(
        self,
        maze: str = "medium",
        *,
        start: Place | None = None,
        goal: Place | None = None,
        test: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        import_mujoco()
        self._inner = _another(_first(maze))
        self.render_mode = render_mode
        self.observation_space, self.action_space = self._inner.observation_space, self._inner.action_space
        self.map: NDArray[np.int64] = self._inner.maze_map
        self.tolerance = float(self._inner._goal_tol)
        if test is not None and (start is not None or goal is not None):
            raise SimulationError("a test task has a start and a goal of its own; give it, or these")
        if test is not None and not 1 <= test <= len(self._inner.task_infos):
            raise SimulationError(f"OGBench's test tasks are 1 to {len(self._inner.task_infos)}, got {test}")
        self._start, self._goal = start, goal
        self._cells: tuple[Cell, Cell] | None = None
        if test is not None:
            info = self._inner.task_infos[test - 1]
            self._cells = info["init_ij"], info["goal_ij"]
        self.goal: Place | None = goal

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Begin at the start; ``info["goal"]`` is where to go, if anywhere."""
        import mujoco

        super().reset(seed=seed)
        start, self.goal = self._start, self._goal
        if self._cells is not None:
            start, self.goal = (self._near(cell) for cell in self._cells)
        elif start is None:
            free = np.argwhere(self.map == 0)
            start = self._near(tuple(free[self.np_random.integers(len(free))].tolist()))
        mujoco.mj_resetData(self._inner.model, self._inner.data)
        self._inner.set_goal(goal_xy=self.goal if self.goal is not None else start)
        self._inner.set_xy(start)
        return self._inner.get_ob(), {"goal": self.goal}

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """Push it."""
        observation, *_ = self._inner.step(action)
        reached = self.goal is not None and bool(np.linalg.norm(observation - self.goal) <= self.tolerance)
        return observation, float(reached), reached, False, {"success": reached}

    def render(self) -> Any:
        """The maze from above."""
        return self._inner.render()

    def close(self) -> None:
        """Free what it holds."""
        self._inner.close()

    def _near(self, cell: Cell) -> Place:
        x, y = middle(cell) + self.np_random.uniform(-NOISE, NOISE, size=2)
        return float(x), float(y)


@cache
def _first(maze: str) -> Any:
    """OGBench's environment of a maze, which only stands for others."""
    mazes = import_extra("ogbench.locomaze.maze", "ogbench", "the mazes of OGBench", SimulationError)
    with quiet_loading():
        made = mazes.make_maze_env("point", "maze", maze_type=maze, terminate_at_goal=False, width=SIZE, height=SIZE)
    Path(made.fullpath).unlink(missing_ok=True)  # OGBench leaves a file behind for every environment
    return made


def _another(first: Any) -> Any:
    """The same with physics and pictures of its own, several times as fast as making it: its file is read once."""
    import mujoco
    from gymnasium.envs.mujoco.mujoco_rendering import MujocoRenderer

    other = object.__new__(type(first))  # what copies an environment makes it again
    other.__dict__.update(first.__dict__)
    other.model = copy.copy(first.model)
    other.data = mujoco.MjData(other.model)
    other.mujoco_renderer = MujocoRenderer(other.model, other.data, width=SIZE, height=SIZE)
    return other


def middle(cell: Cell) -> NDArray[np.float64]:
    """The place of a cell (row, column)."""
    return np.array([cell[1] * CELL - OFFSET, cell[0] * CELL - OFFSET])


def cells_of(places: NDArray[np.floating]) -> NDArray[np.int64]:
    """The cells (row, column) that places ``(n, 2)`` lie in."""
    found: NDArray[np.int64] = np.floor((places[:, ::-1] + OFFSET) / CELL + 0.5).astype(np.int64)
    return found
