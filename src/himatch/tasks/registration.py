"""The environments that himatch brings, by the names under which Gymnasium makes them."""

from __future__ import annotations

from himatch.tasks.locomotion import BACKFLIP, CHEETAH_VEL
from himatch.tasks.mazes import POINT_MAZES
from himatch.tasks.physics import import_gymnasium

_CLASSES = (
    (CHEETAH_VEL, "paper_environments:CheetahVelEnv"),
    (BACKFLIP, "paper_environments:BackflipCheetahEnv"),
    *((task, "point_mazes:PointMazeEnv") for task in POINT_MAZES),
)


def register_environments() -> None:
    """Make them known to ``gymnasium.make``; their code is imported when one is made."""
    registration = import_gymnasium("making an environment").envs.registration
    for task, name in _CLASSES:
        if task.env_id not in registration.registry:
            place = f"himatch.simulation.{name}"
            registration.register(task.env_id, place, max_episode_steps=task.horizon, kwargs=dict(task.env_kwargs))
