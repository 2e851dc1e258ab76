"""Which OpenGL draws: the user's, else the first that works; tried elsewhere, so that a failure harms nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
from waiting import PATIENCE

from himatch.errors import SimulationError
from himatch.simulation import opengl


@pytest.fixture(autouse=True)
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opengl.sys, "platform", "linux")
    for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


def working(monkeypatch: pytest.MonkeyPatch, *backends: str) -> list[str]:
    tried: list[str] = []

    def draws(backend: str) -> bool:
        tried.append(backend)
        return backend in backends

    monkeypatch.setattr(opengl, "draws", draws)
    return tried


def test_egl_comes_first_then_osmesa(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = working(monkeypatch, "egl", "osmesa")
    assert (opengl.opengl_backend(), tried) == ("egl", ["egl"])
    tried = working(monkeypatch, "osmesa", "glfw")
    assert (opengl.opengl_backend(), tried) == ("osmesa", ["egl", "osmesa"])


@pytest.mark.parametrize("variable", ["DISPLAY", "WAYLAND_DISPLAY"])
def test_windows_need_a_display(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    tried = working(monkeypatch, "glfw")
    with pytest.raises(SimulationError):
        opengl.opengl_backend()
    assert tried == ["egl", "osmesa"]
    monkeypatch.setenv(variable, ":0")
    assert opengl.opengl_backend() == "glfw"


@pytest.mark.parametrize(("platform", "first"), [("darwin", "cgl"), ("win32", "glfw")])
def test_other_systems(monkeypatch: pytest.MonkeyPatch, platform: str, first: str) -> None:
    monkeypatch.setattr(opengl.sys, "platform", platform)
    working(monkeypatch, first)
    assert opengl.opengl_backend() == first


def test_what_the_user_says_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = working(monkeypatch, "egl", "osmesa", "glfw")
    for said, used in (("osmesa", "osmesa"), (" EGL ", "egl"), ("glx", "glfw"), ("on", "egl"), ("", "egl")):
        monkeypatch.setenv("MUJOCO_GL", said)
        assert opengl.opengl_backend() == used
    assert tried == ["osmesa", "egl", "glfw", "egl", "egl"]


def test_nothing_there_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    working(monkeypatch)
    for said, part in (("", "tried egl, osmesa"), ("egl", "MUJOCO_GL=egl"), ("off", "turns the drawing of robots off")):
        monkeypatch.setenv("MUJOCO_GL", said)
        with pytest.raises(SimulationError, match=part) as caught:
            opengl.opengl_backend()
        assert "\n" not in str(caught.value)
        assert said == "off" or "apt-get install libegl1 libopengl0 libgl1-mesa-dri" in str(caught.value)


@pytest.mark.parametrize("program", ["import os; os.abort()", "raise SystemExit(1)", "import time; time.sleep(600)"])
def test_a_backend_that_crashes_or_hangs_does_so_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str
) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text(program)
    monkeypatch.setattr(opengl, "_PROBE", probe)
    monkeypatch.setattr(opengl, "PATIENCE", 2.0 if "sleep" in program else PATIENCE)
    assert not opengl.draws.__wrapped__("egl")
    probe.write_text("import sys; assert sys.argv[1:] == ['egl']")
    monkeypatch.setattr(opengl, "PATIENCE", PATIENCE)
    assert opengl.draws.__wrapped__("egl")


def test_the_probe_notices_a_backend_that_does_not_exist() -> None:
    assert not opengl.draws("nonsense")
