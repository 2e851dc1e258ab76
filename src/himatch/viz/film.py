"""A rollout filmed beside what it achieves: the robot on the left, target and rollout so far on the right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from himatch.viz.charts import RolloutPicture
from himatch.viz.encoder import Image, check_writable, write_video
from himatch.viz.panel import Panel

Progress = Callable[[int, int], None]
Robots = Iterable[tuple[int, Image]]
"""Numbers of steps, and the robot before each of them."""
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

    def steps(self, length: int, dt: float) -> list[int]:
        """The steps of a rollout that are shown in real time, the last one among them."""
        return sorted({*range(0, length - 1, self.stride(dt)), length - 1})

    def stretches(self, length: int, dt: float, seconds: float) -> list[int]:
        """The steps of a clip: all of a short rollout, of a longer one its beginning, its middle and its end."""
        return _stretches(length, round(seconds / dt), self.stride(dt))


LARGE = Format((480, 360), (420, 360), dpi=100, fps=25.0)
SMALL = Format((340, 270), (300, 270), dpi=78, fps=12.5)  # .gif and .webp pay for every picture anew


def format_of(path: Path) -> Format:
    """What suits a file, by its ending."""
    return LARGE if path.suffix.lower() == ".mp4" else SMALL


def film(
    path: Path,
    picture: RolloutPicture,
    robots: Robots,
    dt: float,
    count: int,
    *,
    progress: Progress | None = None,
) -> Path:
    """Film a rollout whose steps take ``dt`` seconds; of ``robots`` there are ``count``."""
    check_writable(path)
    form = format_of(path)
    panel = Panel(picture, dt, form.panel, form.dpi)
    pictures = _pictures(panel, robots if progress is None else _reported(robots, count, progress), dt, form)
    last = panel.draw(len(picture.rollout) - 1)
    return write_video(path, pictures, 1 / (dt * form.stride(dt)), later=last)


def clip(path: Path, picture: RolloutPicture, robots: Robots, dt: float, *, largest: int = 1_400_000) -> Path:
    """A .webp in the large format, of about ``largest`` bytes at most, for a page."""
    check_writable(path)
    panel = Panel(picture, dt, LARGE.panel, LARGE.dpi)
    pictures, fps = list(_pictures(panel, robots, dt, LARGE)), 1 / (dt * LARGE.stride(dt))
    for quality in (75, 50, 25, 0):
        write_video(path, pictures, fps, quality=quality)
        if path.stat().st_size <= largest:
            break
    return path


def _stretches(steps: int, wanted: int, stride: int) -> list[int]:
    """Which steps are shown of an episode, ``wanted`` of them in all and always the last one."""
    if steps <= wanted:
        starts, each = np.zeros(1, np.int64), steps
    else:
        each = max(1, wanted // STRETCHES)
        starts = np.linspace(0, steps - each, STRETCHES).astype(np.int64)
    return sorted({steps - 1, *(int(s + k) for s in starts for k in range(0, each, stride))})


def _pictures(panel: Panel, robots: Robots, dt: float, form: Format) -> Iterator[Image]:
    """Both halves side by side; the last picture stays for a while."""
    for step, robot in robots:
        picture = np.hstack([fitted(robot, form.robot), panel.draw(step)])
        yield picture
    for _ in range(round(HOLD / (dt * form.stride(dt)))):
        yield picture


def _reported(robots: Robots, count: int, progress: Progress) -> Iterator[tuple[int, Image]]:
    """Each is reported when the next one is wanted, that is, when its picture is written."""
    for done, robot in enumerate(robots, start=1):
        yield robot
        progress(done, count)


def fitted(image: Image, size: tuple[int, int]) -> Image:
    """An image as large as possible in the middle of a white one."""
    from PIL import Image as Picture
    from PIL import ImageOps

    if image.shape[1::-1] == size:
        return image
    return np.asarray(ImageOps.pad(Picture.fromarray(image), size, color="white"))
