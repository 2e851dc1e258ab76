"""Pictures into a moving one: .mp4 by the ffmpeg of imageio-ffmpeg (the extra ``video``), .gif and .webp by Pillow."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.files import new_file
from himatch.errors import HimatchError, one_line

Image = NDArray[np.uint8]  # (height, width, 3)
SUFFIXES = (".mp4", ".gif", ".webp")
QUALITY = 75  # of WebP, 0 to 100


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written in the end."""
    if path.suffix.lower() not in SUFFIXES:
        raise HimatchError(f"{path}: a video ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if path.suffix.lower() == ".mp4":
        _program(path)


def write_video(
    path: Path, frames: Iterable[Image], fps: float, *, quality: int = QUALITY, later: Image | None = None
) -> Path:
    """Write pictures of one size, ``fps`` of them a second; sides of an .mp4 are even numbers.

    The palette of a .gif comes from its first picture, and from ``later``: one with the colours that are still to come.
    """
    check_writable(path)
    with new_file(path) as partial:
        if path.suffix.lower() == ".mp4":
            _ffmpeg(_program(path), partial, iter(frames), fps)
        else:
            _pillow(partial, iter(frames), fps, quality, later)
    return path


def _program(path: Path) -> str:
    """Where ffmpeg is: imageio-ffmpeg brings its own, and finds another one where it has none for the platform."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError:
        raise HimatchError(
            f'{path}: .mp4 needs the extra video: pip install "himatch[video]", or choose a .gif'
        ) from None
    try:
        return str(get_ffmpeg_exe())
    except RuntimeError as reason:
        raise HimatchError(f"{path}: {one_line(reason)}; or choose a .gif") from reason


def _ffmpeg(program: str, path: Path, frames: Iterator[Image], fps: float) -> None:
    """Raw pictures into the program as they come, so that none are kept."""
    first = next(frames)
    height, width, _ = first.shape
    read = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:.6g}", "-i", "-"]
    # Players everywhere know yuv420p, and begin before the file is complete with its index in front.
    write = ["-pix_fmt", "yuv420p", "-preset", "veryfast", "-crf", "20", "-movflags", "+faststart", str(path)]
    with tempfile.TemporaryFile() as said:
        command = [program, "-y", "-loglevel", "error", *read, *write]
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said)
        except OSError as reason:
            raise HimatchError(f"{program} cannot be started ({one_line(reason)}); choose a .gif instead") from reason
        assert process.stdin is not None
        try:
            for frame in chain([first], frames):
                process.stdin.write(np.ascontiguousarray(frame).data)
        except BrokenPipeError:
            pass  # it has left; what it said follows
        except BaseException:
            process.kill()
            raise
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
            process.wait()
        if process.returncode != 0:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            cause = lines[0] if lines else f"it ended with code {process.returncode}"
            raise HimatchError(f"{path.name}: ffmpeg cannot write it ({cause}); choose a .gif instead")


def _pillow(path: Path, frames: Iterator[Image], fps: float, quality: int, later: Image | None) -> None:
    from PIL import Image as Picture

    first = next(frames)
    pictures = (Picture.fromarray(frame) for frame in chain([first], frames))
    timing: dict[str, Any] = {"duration": 1000 / fps, "loop": 0, "save_all": True}
    if path.suffix.lower() == ".webp":
        next(pictures).save(path, "WEBP", append_images=pictures, quality=quality, method=2, **timing)
        return
    colors = [image.reshape(1, -1, 3) for image in (first, later) if image is not None]
    palette = Picture.fromarray(np.concatenate(colors, axis=1)).quantize(255, Picture.Quantize.FASTOCTREE)
    # One palette for all and no dither: noise would make every picture a new one.
    indexed = (picture.quantize(palette=palette, dither=Picture.Dither.NONE) for picture in pictures)
    next(indexed).save(path, "GIF", append_images=indexed, optimize=False, **timing)
