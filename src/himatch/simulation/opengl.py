"""Which OpenGL draws robots: off screen, chosen by trying."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from himatch.errors import SimulationError
from himatch.tasks.physics import OPENGL_OFF, OPENGL_VARIABLE

PATIENCE = 60.0  # seconds a backend gets for its first picture; most need less than one
REMEDY = "install one, on Debian or Ubuntu with: apt-get install libegl1 libopengl0 libgl1-mesa-dri"
_PROBE = Path(__file__).with_name("opengl_probe.py")
_ANY = ("", "enable", "enabled", "on", "true", "1")
_SAME = {"glx": "glfw", "wgl": "glfw"}  # MuJoCo makes these through GLFW


def opengl_backend() -> str:
    """The backend named by MUJOCO_GL, else the first that draws: EGL, OSMesa, and GLFW where there is a display."""
    wish = os.environ.get(OPENGL_VARIABLE, "").lower().strip()
    if wish in OPENGL_OFF:
        raise SimulationError(f"{OPENGL_VARIABLE}={wish} turns the drawing of robots off; unset it to have them drawn")
    if wish not in _ANY:
        backend = _SAME.get(wish, wish)
        if draws(backend):
            return backend
        raise SimulationError(
            f"robots cannot be drawn with {OPENGL_VARIABLE}={wish} here; unset it to have another OpenGL tried, "
            f"or {REMEDY}"
        )
    candidates = _candidates()
    for backend in candidates:
        if draws(backend):
            return backend
    raise SimulationError(f"there is no OpenGL here to draw robots with (tried {', '.join(candidates)}); {REMEDY}")


def opengl_context(width: int, height: int) -> Any:
    """A context of the chosen backend, made current; MuJoCo may have been imported long before."""
    context = import_module(f"mujoco.{opengl_backend()}").GLContext(width, height)
    context.make_current()
    return context


@cache
def draws(backend: str) -> bool:
    """Whether a backend draws a picture, tried in a process of its own: a failure spoils nothing in this one."""
    try:
        tried = subprocess.run(
            [sys.executable, "-P", str(_PROBE), backend],
            env={**os.environ, OPENGL_VARIABLE: "disable"},  # importing MuJoCo must not load another one first
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def _candidates() -> tuple[str, ...]:
    if sys.platform == "darwin":
        return ("cgl", "glfw")
    if sys.platform != "linux":
        return ("glfw",)
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return ("egl", "osmesa", "glfw") if display else ("egl", "osmesa")
