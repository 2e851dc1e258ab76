"""Videos of rollouts, with a painted robot wherever there is no OpenGL to draw one."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from command_line import Run, assert_refused
from filming import hopping, no_opengl, painted, skip_without_opengl
from PIL import Image
from waiting import PATIENCE

import himatch as hm
from himatch.errors import HimatchError, HimatchWarning, SimulationError
from himatch.evaluation.match import check_video
from himatch.policy import Policy
from himatch.viz.film import LARGE, SMALL, _stretches, fitted


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return hopping(tmp_path_factory.mktemp("cdt"), seeds=(0, 3))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """So little data covers no target; what a video has to say is heard."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?!.*repeat).*", HimatchWarning)
        yield


def test_the_first_rollout_is_filmed_in_real_time(
    policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    painted(monkeypatch)
    result = policy.match("normal(0.3,0.1)", episodes=2, seed=4)
    reported: list[tuple[int, int]] = []
    path = result.video(tmp_path / "hop.gif", progress=lambda done, total: reported.append((done, total)))
    stride, last = SMALL.stride(0.008), len(result.example) - 1
    assert stride == 10
    count = len({*range(0, last, stride), last})
    assert reported == [(done, count) for done in range(1, count + 1)]
    with Image.open(path) as moving:
        assert moving.size == (SMALL.robot[0] + SMALL.panel[0], SMALL.robot[1])
        assert moving.n_frames == count  # type: ignore[attr-defined]
        assert moving.info["duration"] == 80
        robot, panel = np.split(np.asarray(moving.convert("RGB")), [SMALL.robot[0]], axis=1)
        assert np.abs(robot - np.array([254, 120, 40])).max() < 8
        assert panel.mean() > 220
        moving.seek(count - 1)
        assert moving.info["duration"] >= 1500  # the end stays


@pytest.mark.parametrize("env", ["Hopper-v4", lambda: gymnasium.make("Hopper-v5", reset_noise_scale=0.05)])
def test_it_is_played_again_where_it_was_rolled_out(
    policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: str
) -> None:
    """Another environment's states would be noted, and warnings are errors here."""
    painted(monkeypatch)
    result = policy.match("normal(0.3,0.1)", episodes=1, env=env)
    assert result.video(tmp_path / "hop.webp").stat().st_size > 1000
    assert result.replay is not None
    with pytest.warns(HimatchWarning, match="does not repeat"):
        replace(result, replay=replace(result.replay, seed=1)).video(tmp_path / "hop.webp")


def test_steps_from_picture_to_picture() -> None:
    assert [LARGE.stride(dt) for dt in (0.05, 0.008, 0.002, 1 / 30, 1.0)] == [1, 5, 20, 1, 1]
    assert [SMALL.stride(dt) for dt in (0.05, 0.008)] == [2, 10]


def test_clips_show_beginning_middle_and_end() -> None:
    assert _stretches(7, 100, 2) == [0, 2, 4, 6]
    chosen = np.array(_stretches(1000, 150, 1))
    assert len(chosen) == 150
    np.testing.assert_array_equal(chosen, [*range(50), *range(475, 525), *range(950, 1000)])
    assert _stretches(1000, 2, 5) == [0, 499, 999]


def test_clips_are_small_or_refused(policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = policy.match("normal(0.3,0.1)", episodes=1)
    with monkeypatch.context() as patch:
        no_opengl(patch)
        with pytest.raises(SimulationError, match="there is no OpenGL here"):
            result.clip(tmp_path / "clip.webp")
    assert not list(tmp_path.iterdir())
    painted(monkeypatch)
    best = result.clip(tmp_path / "best.webp", seconds=0.1)
    small = result.clip(tmp_path / "small.webp", seconds=0.1, largest=1)
    assert small.stat().st_size < best.stat().st_size
    with Image.open(best) as moving:
        assert moving.size == (LARGE.robot[0] + LARGE.panel[0], LARGE.robot[1])


def test_pictures_of_other_sizes_are_fitted() -> None:
    tall = np.zeros((20, 10, 3), np.uint8)
    seen = fitted(tall, (60, 40))
    assert seen.shape == (40, 60, 3)
    assert (seen[:, :19] == 255).all()
    assert (seen[:, 21:39] == 0).all()
    assert fitted(seen, (60, 40)) is seen


def test_a_result_without_an_environment(policy: Policy, tmp_path: Path) -> None:
    result = replace(policy.match("normal(0.3,0.1)", episodes=1), replay=None)
    with pytest.raises(HimatchError, match="does not say where it was rolled out"):
        result.video(tmp_path / "hop.gif")


def test_checks_before_the_rollouts(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    painted(monkeypatch)
    check_video(Path("film.gif"), policy.run)
    check_video(Path("film.gif"), policy.run, lambda: gymnasium.make("Hopper-v5"))
    with pytest.raises(HimatchError, match="ends in"):
        check_video(Path("film.mov"), policy.run)


# -- as a user does it --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("film")
    data = hm.make_dataset("hopper-medium", folder / "hopper-v0", episodes=4, quiet=True)
    hm.train(hm.CDT("x_velocity"), data, out=folder / "run", preset="cpu", steps=3, split="none", quiet=True)
    return folder / "run"


def test_the_command(run: Run, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    painted(monkeypatch)
    path = tmp_path / "hop.gif"
    code, out, err = run("match", run_folder, "--target", "normal(2,0.3)", "--episodes", 2, "--video", path)
    assert code == 0
    assert "video of the first rollout written to" in out
    assert re.search("frames/(s|min|h)", err)
    assert path.stat().st_size > 1000


@pytest.mark.parametrize(
    ("name", "message"),
    [("hop.gif", "apt-get install"), ("hop.mp4", "needs the extra video"), ("hop.mpg", "ends in .mp4")],
)
def test_nobody_waits_for_a_failure(
    run: Run, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    no_opengl(monkeypatch)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setattr(Policy, "match_all", lambda *_, **__: pytest.fail("rolled out"))
    assert_refused(run("match", run_folder, "--target", "normal(2,0.3)", "--video", tmp_path / name), message)


def test_a_real_robot(run_folder: Path, tmp_path: Path) -> None:
    """In a process of its own, which is ended where OpenGL hangs."""
    skip_without_opengl()
    path = tmp_path / "hop.webp"
    command = [sys.executable, "-m", "himatch", "match", run_folder, "--target", "normal(2,0.3)", "--episodes", "1"]
    done = subprocess.run([*map(str, command), "--video", str(path)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    with Image.open(path) as moving:
        robot = np.asarray(moving.convert("RGB")).astype(int)[:, : SMALL.robot[0]]
    assert 300 < (robot[..., 0] - robot[..., 2] > 30).sum() < 30000
