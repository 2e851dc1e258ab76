"""MUJOCO_GL concerns drawing only: what does not draw works whatever it says, what draws says what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from himatch.tasks.physics import import_mujoco

# Whichever comes first imports MuJoCo.
BATCHED = """
import os, himatch
print(himatch.make_simulator("hopper", 1).reset([0]).shape)
print(os.environ["MUJOCO_GL"])
"""
GYMNASIUM = """
import os, himatch
print(himatch.register_task("pendulum", env_id="InvertedPendulum-v5").observation_width)
print(os.environ["MUJOCO_GL"])
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """Where PyOpenGL fails as it does without EGL's library."""
    package = tmp_path / "packages" / "OpenGL"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "raise AttributeError(\"'NoneType' object has no attribute 'eglQueryString'\")"
    )
    return str(package.parent)


@pytest.mark.parametrize("wish", ["nonsense", "egl"])
@pytest.mark.parametrize(("program", "printed"), [(BATCHED, "(1, 11)"), (GYMNASIUM, "4")])
def test_simulating_needs_no_opengl(program: str, printed: str, wish: str, broken: str) -> None:
    done = run("-c", program, MUJOCO_GL=wish, PYTHONPATH=broken)
    assert (done.returncode, done.stdout) == (0, f"{printed}\n{wish}\n"), done.stderr


def test_mujoco_alone_would_have_failed(broken: str) -> None:
    """If this ever passes, ``import_mujoco`` has become needless."""
    for wish in ("nonsense", "egl"):
        assert run("-c", "import mujoco", MUJOCO_GL=wish, PYTHONPATH=broken).returncode != 0


def test_drawing_is_refused_in_one_line(tmp_path: Path) -> None:
    video = ("--episodes", "1", "--video", str(tmp_path / "film.gif"))
    done = run("-m", "himatch", "match", "hopper-cdt", "--target", "normal(2,1)", *video, MUJOCO_GL="nonsense")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert "robots cannot be drawn with MUJOCO_GL=nonsense here; unset it" in done.stderr


def test_what_else_is_wrong_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> None:
        raise ImportError("its core bindings are missing")

    monkeypatch.setattr("himatch.tasks.physics.import_module", fails)
    for wish in ("", "off", "egl"):
        monkeypatch.setenv("MUJOCO_GL", wish)
        with pytest.raises(ImportError, match="core bindings"):
            import_mujoco()
        assert os.environ["MUJOCO_GL"] == wish
