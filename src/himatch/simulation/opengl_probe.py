"""Draw one picture with an OpenGL backend of MuJoCo: ``python opengl_probe.py egl``; fails where that fails.

A program of its own, so that a backend that crashes, hangs or leaves a library half loaded does so elsewhere.
"""

import sys
from importlib import import_module

import mujoco
import numpy as np

SCENE = '<mujoco><worldbody><light pos="0 0 3"/><geom size="1"/></worldbody></mujoco>'


def draw(backend: str) -> None:
    """Draw a ball."""
    context = import_module(f"mujoco.{backend}").GLContext(32, 32)
    context.make_current()
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    buffers = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, buffers)
    scene, area = mujoco.MjvScene(model, 10), mujoco.MjrRect(0, 0, 32, 32)
    everything, camera = mujoco.mjtCatBit.mjCAT_ALL, mujoco.MjvCamera()
    mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, camera, everything, scene)
    mujoco.mjr_render(area, scene, buffers)
    picture = np.zeros((32, 32, 3), np.uint8)
    mujoco.mjr_readPixels(picture, None, area, buffers)
    if picture.max() == picture.min():
        raise RuntimeError("the picture is empty")


if __name__ == "__main__":
    draw(sys.argv[1])
