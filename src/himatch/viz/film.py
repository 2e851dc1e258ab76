"""A rollout filmed beside what it achieves: the robot on the left, target and rollout so far on the right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from himatch.errors import HimatchError
from himatch.evaluation.match import Environment, replay_for
from himatch.evaluation.result import MatchResult
from himatch.simulation.replay import Playback
from himatch.viz.encoder import Image, check_writable, write_video
from himatch.viz.panel import Panel

if TYPE_CHECKING:
    from himatch.policy import Policy

Progress = Callable[[int, int], None]
HOLD = 1.5  # seconds that the last picture stays
STRETCHES = 3  # of a clip


@dataclass(frozen=True)
class Format:
    """Pixels of both halves, how many of them are an inch of text, and how many pictures a second are aimed at."""

    robot: tuple[int, int]
    panel: tuple[int, int]
    dpi: int
    fps: float

    def stride(self, dt: float) -> int:
        """Steps from picture to picture."""
        return max(1, round(1 / (self.fps * dt)))


LARGE = Format((480, 360), (420, 360), dpi=100, fps=25.0)
SMALL = Format((340, 270), (300, 270), dpi=78, fps=12.5)  # .gif and .webp pay for every picture anew


def check_video(path: Path, policy: Policy, env: Environment | None = None) -> None:
    """Refuse what could not be filmed or written, before anybody waits for rollouts."""
    check_writable(path)
    replay_for(policy, env, 0).check()


def film(result: MatchResult, path: Path, *, progress: Progress | None = None) -> Path:
    """Film the first rollout in real time."""
    check_writable(path)
    form = LARGE if path.suffix.lower() == ".mp4" else SMALL
    with _stage(result, form) as stage:
        stride, last = form.stride(stage.dt), len(result.example) - 1
        steps = sorted({*range(0, last, stride), last})
        panel = Panel(result, stage.dt, form.panel, form.dpi)
        pictures = _pictures(result, stage, panel, form, steps, progress)
        return write_video(path, pictures, 1 / (stage.dt * stride), later=panel.draw(last))


def clip(result: MatchResult, path: Path, *, seconds: float = 7.5, largest: int = 1_400_000) -> Path:
    """A short .webp of about ``largest`` bytes at most, for a page.

    A longer rollout is shown in three stretches of real time: its beginning, its middle and its end.
    """
    check_writable(path)
    with _stage(result, LARGE) as stage:
        stride = LARGE.stride(stage.dt)
        steps = _stretches(len(result.example), round(seconds / stage.dt), stride)
        panel = Panel(result, stage.dt, LARGE.panel, LARGE.dpi)
        pictures, fps = list(_pictures(result, stage, panel, LARGE, steps)), 1 / (stage.dt * stride)
    for quality in (75, 50, 25, 0):
        write_video(path, pictures, fps, quality=quality)
        if path.stat().st_size <= largest:
            break
    return path


def _stage(result: MatchResult, form: Format) -> AbstractContextManager[Playback]:
    if result.replay is None:
        raise HimatchError("this result does not say where it was rolled out; film those of policy.match")
    return result.replay.open(form.robot)


def _stretches(steps: int, wanted: int, stride: int) -> list[int]:
    """Which steps are shown of an episode, ``wanted`` of them in all and always the last one."""
    if steps <= wanted:
        starts, each = np.zeros(1, np.int64), steps
    else:
        each = max(1, wanted // STRETCHES)
        starts = np.linspace(0, steps - each, STRETCHES).astype(np.int64)
    return sorted({steps - 1, *(int(s + k) for s in starts for k in range(0, each, stride))})


def _pictures(
    result: MatchResult,
    stage: Playback,
    panel: Panel,
    form: Format,
    steps: Sequence[int],
    progress: Progress | None = None,
) -> Iterator[Image]:
    """Both halves side by side; the last picture stays for a while."""
    for done, (step, robot) in enumerate(stage.play(result.example, steps), start=1):
        picture = np.hstack([fitted(robot, form.robot), panel.draw(step)])
        yield picture
        if progress is not None:
            progress(done, len(steps))
    for _ in range(round(HOLD / (stage.dt * form.stride(stage.dt)))):
        yield picture


def fitted(image: Image, size: tuple[int, int]) -> Image:
    """An image as large as possible in the middle of a white one."""
    from PIL import Image as Picture
    from PIL import ImageOps

    if image.shape[1::-1] == size:
        return image
    return np.asarray(ImageOps.pad(Picture.fromarray(image), size, color="white"))
