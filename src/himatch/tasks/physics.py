"""MuJoCo and Gymnasium, which come with the extra ``sim``; of MuJoCo only drawing depends on OpenGL."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from himatch._runtime.extras import import_extra, installed
from himatch.errors import SimulationError

OPENGL_VARIABLE = "MUJOCO_GL"  # MuJoCo's own; it reads it while it is imported
OPENGL_OFF = ("disable", "disabled", "off", "false", "0")


def import_gymnasium(purpose: str) -> Any:
    """The module ``gymnasium``; ``purpose`` says in the error what needs it."""
    return import_extra("gymnasium", "sim", purpose, SimulationError)


def import_mujoco() -> Any:
    """The module ``mujoco``, also where MUJOCO_GL names an OpenGL that is not here.

    MuJoCo then refuses to be imported at all, though simulating needs no OpenGL. ``himatch.simulation.opengl`` finds
    one for drawing, and says so if there is none.
    """
    if not installed("mujoco"):
        import_extra("mujoco", "sim", "simulating", SimulationError)
    try:
        return import_module("mujoco")
    except Exception:  # what it raises depends on which part of that OpenGL is missing
        wish = os.environ.get(OPENGL_VARIABLE, "")
        if wish.lower().strip() in ("", *OPENGL_OFF):
            raise
        os.environ[OPENGL_VARIABLE] = "disable"
        try:
            return import_module("mujoco")
        finally:
            os.environ[OPENGL_VARIABLE] = wish
