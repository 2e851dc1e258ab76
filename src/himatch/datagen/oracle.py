"""Who plays in OGBench's PointMazes, as OGBench's own commands have it (``data_gen_scripts`` of its repository).

An oracle goes straight to the next cell on the shortest way, as fast as it may, with Gaussian noise of 0.5 on both
actions, cut to [-1, 1]. ``navigate`` starts in any cell and goes to a random cell that is no passage, and on to another
one when it is there. ``stitch`` starts in any cell and goes to one exactly 4 cells away, where it stays. Starts and
goals lie up to 1 off the middle of their cell in x and in y. OGBench's random numbers are others, so its episodes are
not these.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from himatch._runtime.files import new_folder
from himatch._version import __version__
from himatch.data.dataset import TrajectoryDataset
from himatch.data.writer import check_out, write_folder
from himatch.datagen.mazes import MazeRecipe
from himatch.datagen.recorded import recorded_dataset, recording_metadata
from himatch.datagen.slots import even_slots, metered, reset_seeds
from himatch.simulation import make_simulator
from himatch.tasks import get_task

ACTION_NOISE = 0.5
AWAY = 4  # cells between start and goal of a stitch episode
SLOTS = 16  # an environment takes 50 ms to make, and they are stepped one after another


class Maze:
    """The cells of a maze, numbered, and how far it is from each to each."""

    def __init__(self, walls: NDArray[np.integer]) -> None:
        self.cells: NDArray[np.int64] = np.argwhere(walls == 0)
        self.number = np.full(walls.shape, -1)
        self.number[tuple(self.cells.T)] = np.arange(len(self.cells))
        gaps = np.abs(self.cells[:, None] - self.cells[None]).sum(axis=2)
        self.distances: NDArray[np.int64] = shortest_path(csr_array(gaps == 1), unweighted=True).astype(np.int64)
        neighbours = np.where(gaps == 1, 0, 10**6)  # what is not beside it is no next cell
        # next[a, b]: where to go from a on the way to b; a itself where it is b
        self.next: NDArray[np.int64] = (self.distances[None] + neighbours[:, :, None]).argmin(axis=1)
        np.fill_diagonal(self.next, np.arange(len(self.cells)))
        self.corners: NDArray[np.int64] = np.flatnonzero(~_passages(walls, self.cells))


def _passages(walls: NDArray[np.integer], cells: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Cells that are free on two opposite sides and walled on the two others."""
    rows, columns = cells.T
    up, down = walls[rows - 1, columns] == 0, walls[rows + 1, columns] == 0
    left, right = walls[rows, columns - 1] == 0, walls[rows, columns + 1] == 0
    found: NDArray[np.bool_] = (up & down & ~left & ~right) | (left & right & ~up & ~down)
    return found


class Oracle:
    """A behaviour: straight to the next cell on the shortest way to its goal, with noise of each episode's own."""

    def __init__(self, maze: Maze, count: int, seed: int, *, goes_on: bool, tolerance: float) -> None:
        self._maze, self._seed, self._goes_on, self._tolerance = maze, seed, goes_on, tolerance
        self._rngs = [np.random.default_rng(0)] * count
        self._cells, self._goals = np.zeros(count, np.int64), np.zeros((count, 2))

    def __call__(
        self, observations: NDArray[np.float64], episodes: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Actions ``(count, 2)``."""
        from himatch.simulation.point_mazes import cells_of, middle

        maze, actions = self._maze, np.zeros(observations.shape, np.float32)
        here = maze.number[tuple(cells_of(observations).T)]
        for slot in np.flatnonzero(episodes >= 0).tolist():
            if steps[slot] == 0:
                self._rngs[slot] = np.random.default_rng((self._seed, int(episodes[slot])))
                self._choose(slot, maze.corners if self._goes_on else self._away(int(here[slot])))
            elif self._goes_on and np.linalg.norm(observations[slot] - self._goals[slot]) <= self._tolerance:
                self._choose(slot, maze.corners)
            # In the cell of the goal OGBench's oracle goes to its middle, not to the goal itself.
            way = middle(maze.cells[maze.next[here[slot], self._cells[slot]]]) - observations[slot]
            pushed = way / (np.linalg.norm(way) + 1e-6) + self._rngs[slot].normal(0.0, ACTION_NOISE, 2)
            actions[slot] = pushed.clip(-1.0, 1.0)
        return actions

    def _away(self, cell: int) -> NDArray[np.int64]:
        """Cells so far away; where there are none the cell itself, as in OGBench."""
        found = np.flatnonzero(self._maze.distances[cell] == AWAY)
        return found if len(found) else np.array([cell])

    def _choose(self, slot: int, cells: NDArray[np.int64]) -> None:
        from himatch.simulation.point_mazes import NOISE, middle

        rng = self._rngs[slot]
        self._cells[slot] = rng.choice(cells)
        self._goals[slot] = middle(self._maze.cells[self._cells[slot]]) + rng.uniform(-NOISE, NOISE, 2)


def play_maze(
    recipe: MazeRecipe, out: str | Path, *, seed: int = 0, overwrite: bool = False, quiet: bool = False
) -> TrajectoryDataset:
    """Play a recipe and write it."""
    from himatch.simulation.point_mazes import PointMazeEnv

    task, out = get_task(recipe.task), Path(out)
    check_out(out, overwrite)
    starts, slots = reset_seeds(seed, 0, recipe.episodes), even_slots(recipe.episodes, SLOTS)
    one = PointMazeEnv(**task.env_kwargs)
    oracle = Oracle(Maze(one.map), slots, seed, goes_on=recipe.goes_on, tolerance=one.tolerance)
    one.close()
    with new_folder(out, overwrite=overwrite) as partial:
        with (
            metered(recipe.name, recipe.episodes * recipe.steps, quiet=quiet) as meter,
            closing(make_simulator(replace(task, horizon=recipe.steps), slots)) as simulator,
        ):
            played = meter.play(simulator, oracle, starts, None)
        dataset = recorded_dataset(played, task, source=recipe.name)
        kind = "to one goal after another" if recipe.goes_on else f"to a goal {AWAY} cells away"
        write_folder(
            dataset,
            partial,
            out.name,
            description=(
                f"{recipe.name}: {recipe.episodes} episodes of an oracle with action noise {ACTION_NOISE}, {kind}, "
                f"seed {seed}; OGBench's data regenerated. Made by himatch {__version__}."
            ),
            seeds=starts,
            metadata={
                "algorithm_name": "oracle",
                "author": ["himatch"],
                **recording_metadata({"recipe": recipe.name, "seed": seed, "parts": []}),
            },
        )
    dataset.source = str(out)
    return dataset
