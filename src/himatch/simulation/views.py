"""The view of a robot: a camera that follows it over a light floor."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.simulation.opengl import opengl_context
from himatch.tasks.locomotion import BACKFLIP, CHEETAH_VEL
from himatch.tasks.physics import import_mujoco
from himatch.tasks.registry import environment_name

Image = NDArray[np.uint8]  # (height, width, 3)
View = Callable[[], Image]
"""Draws an environment as it is now."""

FINER = 1.5  # drawn larger and made smaller: on a CPU that smooths edges in half the time of multisampling
SUN = np.array((1.0, 1.5, -5.0)) / np.sqrt(28.25)  # where the light shines
# Onto the floor, along the light.
FLATTEN = np.array([[1, 0, -SUN[0] / SUN[2]], [0, 1, -SUN[1] / SUN[2]], [0, 0, 1e-4]])
SHADOW = np.array((0.52, 0.52, 0.52, 1.0), np.float32)
FLOOR = (222, 240)  # the two greys of the floor's squares
TILE = 3.0  # metres of a pair of squares; on smaller ones fast robots seem to run backwards, at ten pictures a second


@dataclass(frozen=True)
class Camera:
    """Where it stands: metres away, degrees up and around, and the height at the centre of the picture."""

    distance: float
    height: float
    elevation: float = -10.0
    azimuth: float = 90.0


_CHEETAH = Camera(2.9, 0.5)
CAMERAS: Mapping[str, Camera] = {
    "HalfCheetah": _CHEETAH,
    environment_name(str(CHEETAH_VEL.env_id)): _CHEETAH,
    environment_name(str(BACKFLIP.env_id)): _CHEETAH,
    "Hopper": Camera(3.1, 0.82),
    "Walker2d": Camera(3.1, 0.82),
    "Ant": Camera(4.6, 0.35, elevation=-28.0, azimuth=65.0),
}
"""By the name of the environment without its version."""


def camera_of(env_id: str | None) -> Camera | None:
    """The camera for an environment, whatever its version; ``None`` for those that himatch does not know."""
    return None if env_id is None else CAMERAS.get(environment_name(env_id))


class RobotView:
    """Pictures of a MuJoCo simulation, from a camera that follows its first body."""

    def __init__(self, model: Any, data: Any, camera: Camera, size: tuple[int, int]) -> None:
        mujoco = import_mujoco()
        self._size = size
        width, height = (round(FINER * side) for side in size)
        self._model, self._data, self._camera = _lit(model, camera, width, height), data, camera
        self._context = opengl_context(width, height)
        self._buffers = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._buffers)
        self._scene = mujoco.MjvScene(self._model, maxgeom=1000)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_FOG] = True  # the floor fades out
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
        self._option, self._eye = mujoco.MjvOption(), mujoco.MjvCamera()
        self._eye.distance, self._eye.elevation, self._eye.azimuth = camera.distance, camera.elevation, camera.azimuth
        self._area = mujoco.MjrRect(0, 0, width, height)
        self._pixels = np.empty((height, width, 3), np.uint8)

    def __call__(self) -> Image:
        """The simulation as it is now."""
        from PIL import Image as Picture

        mujoco = import_mujoco()
        x, y, _ = self._data.xpos[1]
        self._eye.lookat[:] = x, y, self._camera.height
        self._context.make_current()
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateCamera(self._model, self._data, self._eye, self._scene)  # an endless floor is laid around it
        mujoco.mjv_updateScene(self._model, self._data, self._option, None, self._eye, everything, self._scene)
        for light in list(self._scene.lights)[1 : self._scene.nlight]:  # the first one sits on the camera
            light.dir[:] = SUN
            light.diffuse[:], light.specular[:] = 0.45, 0.1
        self._cast_shadows()
        mujoco.mjr_render(self._area, self._scene, self._buffers)
        mujoco.mjr_readPixels(self._pixels, None, self._area, self._buffers)
        drawn = Picture.fromarray(self._pixels[::-1])
        return np.asarray(drawn.resize(self._size, Picture.Resampling.BOX))

    def _cast_shadows(self) -> None:
        """Flatten a grey copy of every limb onto the floor, along the light: half the time of OpenGL's shadow maps."""
        mujoco = import_mujoco()
        scene, limbs = self._scene, self._scene.ngeom
        for limb in scene.geoms[:limbs]:
            if limb.type == mujoco.mjtGeom.mjGEOM_PLANE:
                continue
            shadow = scene.geoms[scene.ngeom]
            place, turn = FLATTEN @ limb.pos + (0, 0, 0.003), FLATTEN @ limb.mat
            mujoco.mjv_initGeom(shadow, limb.type, np.ones(3), place, turn.ravel(), SHADOW)
            shadow.size[:] = limb.size  # that of a scene, which is not that of a model
            scene.ngeom += 1

    def close(self) -> None:
        """Free the graphics memory."""
        self._context.make_current()
        self._buffers.free()
        self._context.free()


def _lit(model: Any, camera: Camera, width: int, height: int) -> Any:
    """A copy of the model in daylight, on an endless floor."""
    mujoco = import_mujoco()
    lit = copy.copy(model)
    visual = lit.vis
    visual.global_.offwidth, visual.global_.offheight = width, height
    visual.quality.offsamples = 0
    visual.headlight.ambient[:], visual.headlight.diffuse[:], visual.headlight.specular[:] = 0.5, 0.2, 0.05
    lit.stat.extent = camera.distance  # the unit of the four distances below
    visual.map.znear, visual.map.zfar, visual.map.fogstart, visual.map.fogend = 0.02, 50.0, 2.0, 7.0
    visual.rgba.fog[:] = 1.0
    for texture in np.flatnonzero(lit.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX):
        _texture(lit, texture)[:] = 255
    planes = lit.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
    lit.geom_matid[~planes] = -1  # plain colours: Hopper's texture has seams
    for floor in np.flatnonzero(planes):
        lit.geom_size[floor, :2] = 0.0  # without end
        lit.geom_rgba[floor] = 1.0
        material = lit.geom_matid[floor]  # all of Gymnasium's floors have one
        lit.mat_texuniform[material], lit.mat_texrepeat[material] = True, 2.0 / TILE  # in units of two metres
        lit.mat_reflectance[material] = lit.mat_specular[material] = lit.mat_shininess[material] = 0.0
        for texture in np.unique(lit.mat_texid[material]):
            if texture >= 0:
                grey = _texture(lit, texture)
                grey[:] = np.where(grey > grey.mean(), FLOOR[1], FLOOR[0])
    return lit


def _texture(model: Any, number: Any) -> NDArray[np.uint8]:
    """The pixels of a texture, where they can be written."""
    size = int(model.tex_height[number]) * int(model.tex_width[number]) * int(model.tex_nchannel[number])
    start = int(model.tex_adr[number])
    pixels: NDArray[np.uint8] = model.tex_data[start : start + size]
    return pixels
