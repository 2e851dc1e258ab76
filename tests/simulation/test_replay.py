"""Episodes played again: the states are those that were recorded, and what cannot be shown is said in a line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from filming import PaintedView, no_opengl, painted, skip_without_opengl
from numpy.typing import NDArray
from waiting import PATIENCE

from himatch.errors import HimatchWarning, SimulationError
from himatch.simulation import make_simulator, record
from himatch.simulation.replay import Playback, Replay
from himatch.simulation.views import CAMERAS, camera_of
from himatch.tasks import Task, get_task
from himatch.tasks.locomotion import LOCOMOTION
from himatch.types import Trajectory

STEPS = 60


def random_episode(task: Task, seed: int) -> Trajectory:
    noise = np.random.default_rng(seed).uniform(-1, 1, (task.horizon, task.action_width or 1))
    return record(make_simulator(task, 3), lambda _, __, step: noise[step], [seed + i for i in range(3)])[0]


@pytest.mark.parametrize("task", [task.name for task in LOCOMOTION])
def test_the_states_are_those_of_the_episode(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gymnasium plays what the batched simulator recorded, bit for bit."""
    painted(monkeypatch)
    episode = random_episode(get_task(task), 7)
    last = min(STEPS, len(episode)) - 1
    with Replay(get_task(task), 7).open((32, 24)) as playback:
        seen: list[NDArray[np.float32]] = []

        def look() -> NDArray[np.uint8]:
            inner: Any = playback.env.unwrapped
            seen.append(inner._get_obs().astype(np.float32))
            return np.zeros((24, 32, 3), np.uint8)

        steps = [
            step for step, _ in Playback(playback.env, look, playback.seed, playback.name).play(episode, [0, 3, last])
        ]
    assert steps == [0, 3, last]
    np.testing.assert_array_equal(np.array(seen), episode.observations[[0, 3, last]])


def test_an_environment_that_does_not_repeat_itself_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    painted(monkeypatch)
    episode = random_episode(get_task("hopper"), 7)
    with Replay(get_task("hopper"), 8).open((32, 24)) as playback, pytest.warns(HimatchWarning, match="from step 0 on"):
        assert len(list(playback.play(episode, range(3)))) == 3


@pytest.mark.parametrize(("task", "dt"), [("halfcheetah", 0.05), ("hopper", 0.008), ("walker2d", 0.008), ("ant", 0.05)])
def test_time(task: str, dt: float, monkeypatch: pytest.MonkeyPatch) -> None:
    painted(monkeypatch)
    with Replay(get_task(task), 0).open((32, 24)) as playback:
        assert playback.dt == pytest.approx(dt)
        view = playback.view
    assert isinstance(view, PaintedView)


def test_graphics_memory_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    painted(monkeypatch)
    closed: list[object] = []
    monkeypatch.setattr(PaintedView, "close", lambda view: closed.append(view))
    with Replay(get_task("hopper"), 0).open((32, 24)) as playback:
        assert not closed
        view = playback.view
    assert closed == [view]


def test_no_opengl_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    no_opengl(monkeypatch)
    with pytest.raises(SimulationError, match="apt-get install"):
        Replay(get_task("hopper"), 0).check()


# -- environments of a user's own ---------------------------------------------------------------------------------


class Lamp(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """Shines as brightly as it was told to."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012
    picture: Any = None

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        self.light = np.zeros(1, np.float32)
        return self.light, {}

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        self.light = np.asarray(action, np.float32)
        return self.light, 0.0, False, False, {}

    def render(self) -> Any:
        return np.full((10, 20, 3), 255 * self.light[0], np.uint8) if self.picture is None else self.picture()


def lamp(**settings: Any) -> Replay:
    return Replay(Task(name="lamp", horizon=9), 0, lambda: Lamp(**settings))


def test_an_environment_that_draws_itself() -> None:
    episode = Trajectory(np.array([[0.0], [0.2], [1.0]]), np.array([[0.2], [1.0], [0.0]]))
    with lamp(render_mode="rgb_array").open((640, 480)) as playback:
        assert playback.dt == pytest.approx(0.05)
        drawn = {step: (image.shape, int(image[0, 0, 0])) for step, image in playback.play(episode, [0, 1, 2])}
    assert drawn == {0: ((10, 20, 3), 0), 1: ((10, 20, 3), 51), 2: ((10, 20, 3), 255)}


def test_a_registered_one_is_made_again_so_that_it_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    gymnasium.register("Lamp-v0", Lamp, max_episode_steps=9)
    for replay in (
        Replay(Task(name="lamp", horizon=9, env_id="Lamp-v0"), 0),
        Replay(Task(name="lamp", horizon=9), 0, lambda: gymnasium.make("Lamp-v0")),
    ):
        with replay.open((640, 480)) as playback:
            assert playback.first().shape == (10, 20, 3)


def broken(*args: Any, **settings: Any) -> Any:
    raise RuntimeError("motor bus down\nand out")


def test_one_that_cannot_be_made_again_so_that_it_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    made = iter([Lamp])
    gymnasium.register("Lamp-v0", lambda **settings: next(made, broken)(**settings), max_episode_steps=9)
    once = gymnasium.make("Lamp-v0")
    with pytest.raises(SimulationError, match=r"environment of lamp cannot be made: RuntimeError: motor bus down$"):
        Replay(Task(name="lamp", horizon=9), 0, lambda: once).check()


@pytest.mark.parametrize("method", ["__init__", "reset", "step"])
def test_one_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setattr(Lamp, method, broken)
    episode = Trajectory(np.zeros((2, 1)), np.zeros((2, 1)))
    with (
        pytest.raises(SimulationError, match=r"^[^\n]*RuntimeError: motor bus down[^\n]*$"),
        lamp(render_mode="rgb_array").open((64, 48)) as playback,
    ):
        list(playback.play(episode, [0, 1]))


def shadow() -> Any:
    raise RuntimeError("no bulb\nnor socket")


@pytest.mark.parametrize(
    ("settings", "picture", "message"),
    [
        ({}, None, "lamp draws no pictures of itself.*rgb_array"),
        ({"render_mode": "rgb_array"}, shadow, r"lamp cannot draw itself \(RuntimeError: no bulb\)"),
        ({"render_mode": "rgb_array"}, lambda: None, "bytes"),
        ({"render_mode": "rgb_array"}, lambda: np.zeros((4, 4, 3)), "float64"),
        ({"render_mode": "rgb_array"}, lambda: np.zeros((4, 4), np.uint8), r"\(4, 4\)"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    settings: dict[str, Any], picture: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lamp, "picture", staticmethod(picture) if picture else None)
    with pytest.raises(SimulationError, match=message) as caught:
        lamp(**settings).check()
    assert "\n" not in str(caught.value)


# -- with OpenGL --------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
from himatch.simulation.replay import Replay
from himatch.simulation.views import TILE
from himatch.tasks import get_task

pictures = {}
for task in sys.argv[2:]:
    with Replay(get_task(task), 0).open((160, 120)) as playback:
        pictures[task] = playback.first()
        inner = playback.env.unwrapped
        start = inner.data.qpos.copy()
        for place, metres in (("far", 115 * TILE), ("farther", 115.3 * TILE)):
            state = start.copy()
            state[0] += metres
            inner.set_state(state, inner.data.qvel.copy())
            pictures[f"{task}-{place}"] = playback.view()
np.savez(sys.argv[1], **pictures)
"""


def test_every_robot_stands_in_the_picture_wherever_it_is(tmp_path: Path) -> None:
    """In a process of its own, which is ended where OpenGL hangs."""
    skip_without_opengl()
    tasks = [task.name for task in LOCOMOTION]
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "seen.npz"), *tasks], check=True, timeout=PATIENCE)
    with np.load(tmp_path / "seen.npz") as seen:
        for name in tasks:
            picture, far, farther = (seen[name + place].astype(int) for place in ("", "-far", "-farther"))
            assert picture.shape == (120, 160, 3)
            robot = picture[..., 0] - picture[..., 2] > 30  # floor, shadow and sky are grey
            rows, columns = np.nonzero(robot)
            assert 150 < robot.sum() < 6000, name
            assert 40 < columns.mean() < 120, name
            assert 20 < rows.mean() < 100, name
            shadow = (picture.max(axis=2) < 160) & ~robot
            assert 10 < shadow[rows.min() :].sum() < 2000, name
            assert shadow[: rows.min()].sum() == 0, name
            assert picture[0].min() > 200, name
            # Pairs of squares further the picture is the same; in between the robot is, and the floor has moved.
            assert np.abs(far - picture).mean() < 1, name
            assert np.abs(farther - picture)[robot].mean() < 5, name
            assert (np.abs(farther - picture)[60:] > 5).mean() > 0.05, name


def test_every_known_robot_has_a_camera() -> None:
    assert set(CAMERAS) == {str(task.env_id).rpartition("-v")[0] for task in LOCOMOTION}


def test_a_name_that_only_looks_versioned_has_no_camera() -> None:
    assert camera_of("Hopper-v2") is not None
    assert camera_of("Hopper-vision") is None
