"""OGBench's PointMazes (Park et al. 2025): a ball that is pushed through a maze, with nothing but its place observed.

A step moves it by at most 0.2 in every direction; a cell of the maze is 4 wide. The longest episode is that of the data
that is made here: 1000 steps, 2000 in the giant maze. OGBench rolls out 1000 steps in every maze: ``goal(X, Y,
within=1000)``.
"""

from himatch.tasks.task import Task


def _maze(name: str, horizon: int) -> Task:
    return Task(
        name=f"ogbench-pointmaze-{name}",
        env_id=f"himatch/OGBenchPointMaze{name.title()}-v0",
        env_kwargs={"maze": name},
        horizon=horizon,
        observation_width=2,
        action_width=2,
        action_low=-1.0,
        action_high=1.0,
        features={"xy": (0, 1), "x": 0, "y": 1},
        rate=10.0,
    )


POINT_MAZES = (_maze("medium", 1000), _maze("large", 1000), _maze("giant", 2000))
