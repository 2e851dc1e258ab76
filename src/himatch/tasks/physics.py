"""MuJoCo, imported so that only drawing depends on OpenGL."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

OPENGL_VARIABLE = "MUJOCO_GL"  # MuJoCo's own; it reads it while it is imported
OPENGL_OFF = ("disable", "disabled", "off", "false", "0")


def import_mujoco() -> Any:
    """The module ``mujoco``, also where MUJOCO_GL names an OpenGL that is not here.

    MuJoCo then refuses to be imported at all, though simulating needs no OpenGL. What draws looks for one itself
    (``himatch.simulation.opengl``), and says so if there is none.
    """
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
