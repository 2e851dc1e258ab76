"""Robots as geometry and poses, for whoever draws them without OpenGL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.simulation.batched import BatchedSimulator
from himatch.simulation.gymnasium_envs import GymnasiumSimulator
from himatch.simulation.replay import own_view
from himatch.simulation.simulator import Simulator
from himatch.simulation.views import Image, camera_of
from himatch.tasks.physics import import_mujoco

SHAPES = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")  # of MuJoCo's, those that are drawn
VISIBLE = 3  # MuJoCo draws the first three groups of geometry unless asked for more
PLAIN = np.array((0.5, 0.5, 0.5, 1.0), np.float32)  # of a geometry without a colour of its own
DIGITS = 6


@dataclass(frozen=True)
class Camera:
    """Where it stands, in MuJoCo's terms: degrees, and z is up."""

    distance: float
    height: float
    elevation: float
    azimuth: float


class Poses:
    """Where the bodies of all simulations are; the world, body 0, is left out, for it stands still."""

    def __init__(self, model: Any, positions: Callable[[], NDArray[np.float64]], env_id: str | None) -> None:
        self._mujoco, self.model, self._positions, self._env_id = import_mujoco(), model, positions, env_id
        self._data = self._mujoco.MjData(model)

    @classmethod
    def of(cls, simulator: Simulator) -> Poses | None:
        """Those of a simulator; ``None`` of environments that are none of MuJoCo's."""
        env_id = simulator.task.env_id
        if isinstance(simulator, BatchedSimulator):
            return cls(simulator.model, lambda: simulator.positions, env_id)
        if not isinstance(simulator, GymnasiumSimulator):
            return None
        inner: list[Any] = [getattr(env.unwrapped, "_inner", env.unwrapped) for env in simulator.environments]
        if not all(hasattr(getattr(one, "model", None), "geom_type") and hasattr(one, "data") for one in inner):
            return None
        return cls(inner[0].model, lambda: np.stack([one.data.qpos for one in inner]), env_id)

    @property
    def bodies(self) -> int:
        """How many there are, without the world."""
        return int(self.model.nbody) - 1

    def __call__(self) -> NDArray[np.float32]:
        """Position x, y, z and quaternion w, x, y, z of every body, ``(count, bodies, 7)``."""
        return np.stack([self._of(qpos) for qpos in self._positions()])

    def _of(self, qpos: NDArray[np.float64]) -> NDArray[np.float32]:
        """Those of one robot at these positions of its joints."""
        data = self._data
        data.qpos[:] = qpos
        self._mujoco.mj_kinematics(self.model, data)
        return np.concatenate([data.xpos[1:], data.xquat[1:]], axis=1, dtype=np.float32)

    def geometry(self) -> dict[str, Any]:
        """What is to be drawn, in plain numbers: shapes by body, the model's own pose, meshes, a camera."""
        model, mujoco = self.model, self._mujoco
        names = [mujoco.mjtGeom(int(kind)).name.removeprefix("mjGEOM_").lower() for kind in model.geom_type]
        drawn = [i for i, name in enumerate(names) if name in SHAPES and model.geom_group[i] < VISIBLE]
        meshes = sorted({int(model.geom_dataid[i]) for i in drawn if names[i] == "mesh"})
        geoms = []
        for i in drawn:
            one: dict[str, Any] = {
                "body": int(model.geom_bodyid[i]) - 1,
                "type": names[i],
                "size": _plain(model.geom_size[i]),
                "pos": _plain(model.geom_pos[i]),
                "quat": _plain(model.geom_quat[i]),
                "rgba": _plain(self._colour(i)),
            }
            if names[i] == "mesh":
                one["mesh"] = meshes.index(int(model.geom_dataid[i]))
            geoms.append(one)
        camera = self._camera()
        return {
            "bodies": [model.body(i).name for i in range(1, model.nbody)],
            "geoms": geoms,
            "meshes": [self._mesh(number) for number in meshes],
            "rest": [_plain(row) for row in self._of(model.qpos0)],
            "follow": 0,
            "camera": vars(camera),
            "extent": float(model.stat.extent),
        }

    def _colour(self, geom: int) -> NDArray[np.float32]:
        """A geometry's own colour, else that of its material."""
        own: NDArray[np.float32] = self.model.geom_rgba[geom]
        material = int(self.model.geom_matid[geom])
        if material < 0 or not np.allclose(own, PLAIN):
            return own
        found: NDArray[np.float32] = self.model.mat_rgba[material]
        return found

    def _mesh(self, number: int) -> dict[str, Any]:
        model = self.model
        first, count = int(model.mesh_vertadr[number]), int(model.mesh_vertnum[number])
        faces, corners = int(model.mesh_faceadr[number]), int(model.mesh_facenum[number])
        return {
            "vertices": _plain(model.mesh_vert[first : first + count].ravel()),
            "faces": model.mesh_face[faces : faces + corners].ravel().tolist(),
        }

    def _camera(self) -> Camera:
        """That of films for robots that himatch knows; others are seen as a whole."""
        known = camera_of(self._env_id)
        if known is not None:
            return Camera(known.distance, known.height, known.elevation, known.azimuth)
        extent, centre = float(self.model.stat.extent), self.model.stat.center
        return Camera(1.5 * extent, float(centre[2]), -20.0, 90.0)


def draws_itself(simulator: Simulator) -> bool:
    """Whether an environment that is none of MuJoCo's can draw pictures of itself."""
    environments = simulator.environments if isinstance(simulator, GymnasiumSimulator) else []
    return bool(environments) and "rgb_array" in environments[0].metadata.get("render_modes", ())


def picture_of(simulator: Simulator, name: str) -> Image:
    """What the first environment draws of itself now."""
    assert isinstance(simulator, GymnasiumSimulator)
    return own_view(simulator.environments[0], name)()


def _plain(numbers: NDArray[np.floating]) -> list[float]:
    return [float(f"{x:.{DIGITS}g}") for x in numbers.tolist()]
