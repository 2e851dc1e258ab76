"""OGBench's mazes: recipes, cells and the oracle without it; its environments where the extra is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import himatch as hm
from himatch.datagen import MAZES, make_dataset
from himatch.datagen.cache import cached_dataset, dataset_names, dataset_task, list_datasets
from himatch.datagen.oracle import Maze, Oracle
from himatch.simulation.point_mazes import cells_of, middle

# A ring of corridors around a wall, with a blind alley.
RING = np.array(
    [
        [1, 1, 1, 1, 1, 1],
        [1, 0, 0, 0, 1, 1],
        [1, 0, 1, 0, 1, 1],
        [1, 0, 0, 0, 0, 1],
        [1, 1, 1, 1, 1, 1],
    ]
)


def numbered(maze: Maze, *cell: int) -> int:
    return int(maze.number[cell])


def test_sizes_are_those_that_ogbench_publishes() -> None:
    assert {name: (recipe.episodes, recipe.steps) for name, recipe in MAZES.items()} == {
        "ogbench-pointmaze-medium-navigate": (1000, 1000),
        "ogbench-pointmaze-medium-stitch": (5000, 200),
        "ogbench-pointmaze-large-navigate": (1000, 1000),
        "ogbench-pointmaze-large-stitch": (5000, 200),
        "ogbench-pointmaze-giant-navigate": (500, 2000),
        "ogbench-pointmaze-giant-stitch": (5000, 200),
    }
    for name, recipe in MAZES.items():
        assert name in dataset_names()
        assert hm.get_task(dataset_task(name)).horizon >= recipe.steps


def test_places_and_cells_are_inverse() -> None:
    cells = np.argwhere(RING == 0)
    places = np.stack([middle(tuple(cell)) for cell in cells])
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(cells_of(places + rng.uniform(-1.9, 1.9, places.shape)), cells)


def test_distances_and_next_cells() -> None:
    maze = Maze(RING)
    corner, opposite, alley = numbered(maze, 1, 1), numbered(maze, 3, 3), numbered(maze, 3, 4)
    assert maze.distances[corner, opposite] == 4
    assert maze.distances[corner, alley] == 5
    assert maze.next[alley, corner] == opposite
    assert maze.next[corner, corner] == corner
    for start in range(len(maze.cells)):
        for goal in range(len(maze.cells)):
            after = maze.next[start, goal]
            assert maze.distances[after, goal] == max(0, maze.distances[start, goal] - 1)
    # What has walls on two opposite sides and ways on the two others is a passage.
    passages = {(1, 2), (2, 1), (2, 3), (3, 2)}
    assert {tuple(cell) for cell in maze.cells[maze.corners].tolist()} == {
        (1, 1), (1, 3), (3, 1), (3, 3), (3, 4)
    } == {tuple(cell) for cell in maze.cells.tolist()} - passages  # fmt: skip


@pytest.mark.parametrize("goes_on", [True, False])
def test_the_oracle_keeps_to_the_ways_and_gets_there(goes_on: bool) -> None:
    maze, count = Maze(RING), 5
    oracle = Oracle(maze, count, 3, goes_on=goes_on, tolerance=1.0)
    rng = np.random.default_rng(1)
    begun = middle((1, 1)) + rng.uniform(-1, 1, (count, 2))
    places, goals = begun.copy(), set()
    for step in range(400):
        actions = oracle(places, np.arange(count), np.full(count, step))
        assert np.abs(actions).max() <= 1.0
        goals.add(tuple(oracle._goals[0]))
        places = places + 0.2 * actions
        places = np.where((RING[tuple(cells_of(places).T)] == 0)[:, None], places, places - 0.2 * actions)
    if goes_on:
        assert len(goals) > 5
    else:
        assert len(goals) == 1
        ends = maze.number[tuple(cells_of(oracle._goals).T)]
        assert (maze.distances[numbered(maze, 1, 1), ends] == 4).all()
        middles = np.stack([middle(tuple(maze.cells[end])) for end in ends])
        assert np.abs(places - middles).max() < 2.0


def test_noise_of_an_episode_does_not_depend_on_its_neighbours() -> None:
    maze, place = Maze(RING), middle((1, 1))
    several = Oracle(maze, 3, 0, goes_on=True, tolerance=1.0)
    alone = Oracle(maze, 1, 0, goes_on=True, tolerance=1.0)
    for step in range(3):
        of_three = several(np.tile(place, (3, 1)), np.array([7, 2, 4]), np.full(3, step))
        np.testing.assert_array_equal(alone(place[None], np.array([2]), np.array([step]))[0], of_three[1])


def test_what_is_no_recipe_of_theirs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hm.HimatchError, match=r"no expert plays in ogbench-pointmaze-giant-stitch"):
        make_dataset("ogbench-pointmaze-giant-stitch", tmp_path / "a-v0", experts=tmp_path)
    with pytest.raises(hm.HimatchError, match=r"at least one episode; got 0"):
        make_dataset("ogbench-pointmaze-giant-stitch", tmp_path / "a-v0", episodes=0)
    with pytest.raises(hm.HimatchError, match=r"did you mean ogbench-pointmaze-giant-stitch"):
        make_dataset("ogbench-pointmaze-giant-stich", tmp_path / "a-v0")


def test_a_set_is_made_from_its_seed_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIMATCH_CACHE", str(tmp_path))
    name = "ogbench-pointmaze-medium-stitch"
    folder = cached_dataset(name, episodes=2, quiet=True)
    data = hm.load_dataset(folder)
    assert (len(data), data.steps, data.task.name) == (2, 400, "ogbench-pointmaze-medium")
    again = make_dataset(name, tmp_path / "again-v0", episodes=3, quiet=True)
    other = make_dataset(name, tmp_path / "other-v0", episodes=2, seed=1, quiet=True)
    np.testing.assert_array_equal(again[1].observations, data[1].observations)
    assert other.content_hash != data.content_hash
    assert cached_dataset(name, episodes=2, quiet=True) == folder
    assert all(listing.cached is None for listing in list_datasets())  # of another size
    for episode in data:
        from_cell, to_cell = cells_of(episode.observations[[0]])[0], cells_of(episode.final_observation[None])[0]
        assert tuple(from_cell) != tuple(to_cell)


def test_environments_begin_where_they_are_told_and_end_at_the_goal() -> None:
    from himatch.simulation import make_simulator

    with pytest.raises(hm.HimatchError, match="test tasks are 1 to 5, got 6"):
        make_simulator("ogbench-pointmaze-giant", 1, settings={"test": 6})
    tests = make_simulator(
        "ogbench-pointmaze-medium", 2, settings=[{"test": 1}, {"start": (0.0, 0.0), "goal": (1.5, 0.0)}]
    )
    np.testing.assert_array_equal(tests.reset([5, 6]), tests.reset([5, 6]))
    assert np.abs(tests.observations[0]).max() <= 1.0  # task 1 begins in the cell whose middle is 0, 0
    np.testing.assert_array_equal(tests.observations[1], 0.0)
    paid = 0.0
    for _ in range(5):
        step = tests.step([[-1.0, 0.0], [1.0, 0.0]])
        paid += step.rewards[1]
    assert step.terminated.tolist() == [False, True]
    assert paid == 1.0
    tests.close()
