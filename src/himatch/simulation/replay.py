"""An episode played again, to be drawn: the same environment, initial state and actions give the same states."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from himatch.errors import SimulationError, note, one_line
from himatch.simulation.gymnasium_envs import RESET, STEP, calling, environment_makers
from himatch.simulation.opengl import opengl_backend
from himatch.simulation.views import Image, RobotView, View, camera_of
from himatch.tasks import Discrete, Task
from himatch.tasks.environments import MakeEnv, made
from himatch.tasks.notices import quiet_loading
from himatch.tasks.physics import OPENGL_VARIABLE, import_gymnasium
from himatch.types import Trajectory

if TYPE_CHECKING:
    import gymnasium

PACE = 1 / 30  # seconds a step takes where the environment does not say
SAME = 1e-3  # observations that differ by less are those of the same episode


@dataclass(frozen=True)
class Replay:
    """What it takes to play an episode again besides its actions."""

    task: Task
    seed: int
    make_env: MakeEnv | None = None
    """Makes the environment, where it is not the task's."""

    @property
    def env_id(self) -> str | None:
        """The id of the environment, where that is known."""
        return self.task.env_id if self.make_env is None else None

    @contextmanager
    def open(self, size: tuple[int, int]) -> Iterator[Playback]:
        """The environment, ready to be drawn in pictures of ``(width, height)``."""
        if self.make_env is None and camera_of(self.task.env_id) is not None:
            opengl_backend()  # refused before anything is made
        with quiet_loading(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # data of an older environment is no mistake
            make = self.make_env or environment_makers(self.task, [self.task.env_kwargs])[0]
            name = self.task.env_id or self.task.name
            env = made(make, name)
        view: View | None = None
        try:
            env, view = _viewed(env, size, name)
            yield Playback(env, view, self.seed, name, self.task.discrete)
        finally:
            if isinstance(view, RobotView):
                view.close()
            env.close()

    def check(self) -> None:
        """Refuse an environment that cannot be drawn, before anybody waits for its rollouts."""
        with self.open((32, 32)) as playback:
            playback.first()


@dataclass(frozen=True)
class Playback:
    """An environment in which an episode is played again, and the view that draws it."""

    env: gymnasium.Env[Any, Any]
    view: View
    seed: int
    name: str
    discrete: Discrete | None = None

    @property
    def dt(self) -> float:
        """Seconds that a step of the environment takes."""
        own = getattr(self.env.unwrapped, "dt", None)
        if isinstance(own, float) and own > 0:
            return own
        rate = self.env.metadata.get("render_fps")
        return 1.0 / rate if rate else PACE

    def first(self) -> Image:
        """The initial state."""
        self._reset()
        return self.view()

    def play(self, episode: Trajectory, steps: Collection[int]) -> Iterator[tuple[int, Image]]:
        """The states before these steps, in turn."""
        wanted, same = set(steps), True
        seen = self._reset()
        for step in range(max(wanted) + 1):
            logged = episode.observations[step]
            if same and not np.allclose(np.ravel(seen)[: len(logged)], logged, rtol=SAME, atol=SAME):
                same = False
                note(
                    f"the environment does not repeat its episodes: from step {step} on the pictures show another one "
                    "than the numbers"
                )
            if step in wanted:
                yield step, self.view()
            with calling(self.name, STEP):
                action: Any = episode.actions[step]
                seen, *_ = self.env.step(action if self.discrete is None else int(self.discrete.numbers(action)))

    def _reset(self) -> Any:
        with calling(self.name, RESET):
            seen, _ = self.env.reset(seed=self.seed)
        return seen


def _viewed(env: gymnasium.Env[Any, Any], size: tuple[int, int], name: str) -> tuple[gymnasium.Env[Any, Any], View]:
    """Known robots from a camera of ours, everything else as it draws itself."""
    spec = env.spec
    camera = None if spec is None else camera_of(spec.id)
    inner: Any = env.unwrapped
    if camera is not None:
        return env, RobotView(inner.model, inner.data, camera, size)
    if env.render_mode != "rgb_array":
        if spec is None or "rgb_array" not in env.metadata.get("render_modes", ()):
            raise SimulationError(
                f"{name} draws no pictures of itself, so there is no video of it; give it the render mode rgb_array"
            )
        env.close()
        make = import_gymnasium(f"a video of {name}").make
        env = made(partial(make, spec, render_mode="rgb_array"), name)
    if hasattr(inner, "mujoco_renderer"):
        os.environ[OPENGL_VARIABLE] = opengl_backend()  # else Gymnasium tries a window first
    return env, own_view(env, name)


def own_view(env: gymnasium.Env[Any, Any], name: str) -> View:
    """What the environment draws, checked."""

    def view() -> Image:
        try:
            drawn = np.asarray(env.render())
        except Exception as reason:  # the user's environment, or a library that it draws with
            raise SimulationError(f"{name} cannot draw itself ({one_line(reason)})") from reason
        if drawn.ndim != 3 or drawn.shape[2] != 3 or drawn.dtype != np.uint8:
            raise SimulationError(
                f"{name} must draw an array of bytes (height, width, 3), got {drawn.dtype} of shape {drawn.shape}"
            )
        return drawn

    return view
