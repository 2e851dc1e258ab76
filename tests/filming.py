"""What tests of videos share: rollouts to film, a robot painted without OpenGL, and skipping where it is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import SimulationError
from himatch.policy import Policy
from himatch.simulation import opengl
from himatch.simulation.views import Camera


def skip_without_opengl() -> None:
    """Robots are drawn in a process of its own first, which is given up where it hangs."""
    try:
        opengl.opengl_backend()
    except SimulationError as reason:
        pytest.skip(f"cannot draw robots: {reason}")


def hopping(folder: Path, method: hm.methods.Method | None = None, **model: Any) -> Policy:
    """A policy nobody trained, for a Hopper that falls soon."""
    data = hm.load_dataset(fallen_hoppers(range(12)), "hopper")
    return untrained(method or hm.CDT("x_velocity"), data, folder, **model)


class PaintedView:
    """Stands in for the robot: one colour, darker from picture to picture."""

    def __init__(self, model: Any, data: Any, camera: Camera, size: tuple[int, int]) -> None:
        self.size, self.drawn, self.closed = size, 0, False

    def __call__(self) -> NDArray[np.uint8]:
        self.drawn += 1
        width, height = self.size
        return np.full((height, width, 3), (255 - self.drawn, 120, 40), np.uint8)

    def close(self) -> None:
        self.closed = True


def no_opengl(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where nothing draws."""
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(opengl, "draws", lambda backend: False)


def painted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Robots are painted, without OpenGL."""
    monkeypatch.setattr("himatch.simulation.replay.RobotView", PaintedView)
    monkeypatch.setattr("himatch.simulation.replay.opengl_backend", lambda: "none")
