"""Moving pictures: what is written is read back by somebody else; what cannot be written is said in a line."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from waiting import PATIENCE

from himatch.errors import HimatchError
from himatch.viz.encoder import check_writable, write_video

SIZE = (24, 32)  # height, width


def pictures(count: int) -> Iterator[NDArray[np.uint8]]:
    """A blue bar that grows over grey, one after another and not all at once."""
    for number in range(count):
        picture = np.full((*SIZE, 3), 200, np.uint8)
        picture[:, : 2 + 3 * number] = (26, 115, 232)
        yield picture


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".GIF"])
def test_pillow_reads_back_what_was_written(tmp_path: Path, suffix: str) -> None:
    path = write_video(tmp_path / f"bar{suffix}", pictures(8), 12.5)
    with Image.open(path) as moving:
        assert moving.n_frames == 8  # type: ignore[attr-defined]
        assert moving.size == SIZE[::-1]
        for number, wanted in enumerate(pictures(8)):
            moving.seek(number)
            seen = np.asarray(moving.convert("RGB")).astype(int)
            assert np.abs(seen - wanted).mean() < 6
            if suffix != ".webp":
                assert moving.info["duration"] == 80
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_colours_that_come_later_are_in_the_palette(tmp_path: Path) -> None:
    grey, blue = np.full((2, *SIZE, 3), 200, np.uint8)
    grey[:, 0] = np.arange(24)[:, None] * 10  # shades of grey
    blue[...] = (26, 115, 232)
    with Image.open(write_video(tmp_path / "late.gif", [grey, blue], 10, later=blue)) as moving:
        moving.seek(1)
        assert np.abs(np.asarray(moving.convert("RGB")).astype(int) - blue).max() < 6


def program(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for ffmpeg."""
    folder.mkdir()
    fake = folder / "ffmpeg"
    fake.write_text(f"#!{sys.executable}\nimport json, pathlib, sys\n{text}\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(fake))
    return fake


def test_ffmpeg_is_handed_raw_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "pathlib.Path(sys.argv[-1]).write_bytes(sys.stdin.buffer.read())\n"
    text += f"pathlib.Path({str(tmp_path / 'said.json')!r}).write_text(json.dumps(sys.argv))"
    program(tmp_path / "bin", text, monkeypatch)
    path = write_video(tmp_path / "bar.mp4", pictures(9), 20.0)
    assert path.read_bytes() == b"".join(picture.tobytes() for picture in pictures(9))
    said = json.loads((tmp_path / "said.json").read_text())
    assert said[said.index("-s") + 1] == "32x24"
    assert said[said.index("-r") + 1] == "20"


def test_what_ffmpeg_says_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "sys.exit('Unknown encoder\\nand more')", monkeypatch)
    with pytest.raises(HimatchError, match=r"Unknown encoder.*choose a \.gif") as caught:
        write_video(tmp_path / "bar.mp4", pictures(3000), 20.0)
    assert "\n" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["bin"]


def test_a_mistake_while_drawing_ends_ffmpeg_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "sys.stdin.buffer.read(); pathlib.Path(sys.argv[-1]).touch()", monkeypatch)

    def broken() -> Iterator[NDArray[np.uint8]]:
        yield from pictures(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_video(tmp_path / "bar.mp4", broken(), 20.0)
    assert [file.name for file in tmp_path.iterdir()] == ["bin"]


def test_the_ffmpeg_that_comes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IMAGEIO_FFMPEG_EXE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))  # no other one
    path = write_video(tmp_path / "bar.mp4", pictures(8), 20.0)
    command = [
        imageio_ffmpeg.get_ffmpeg_exe(),
        "-loglevel",
        "error",
        "-i",
        str(path),
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-",
    ]
    raw = subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE).stdout
    seen = np.frombuffer(raw, np.uint8).reshape(-1, *SIZE, 3).astype(int)
    assert np.abs(seen - np.array(list(pictures(8)))).mean() < 8


def test_what_cannot_be_written_is_said_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("film.avi", "film", "film.mp4.txt"):
        with pytest.raises(HimatchError, match=r"ends in \.mp4, \.gif or \.webp"):
            check_writable(tmp_path / name)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    check_writable(tmp_path / "film.gif")
    needed = r'\.mp4 needs the extra video: pip install "himatch\[video\]", or choose a \.gif$'
    with pytest.raises(HimatchError, match=needed):
        check_writable(tmp_path / "film.mp4")


def test_a_platform_without_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise RuntimeError("No ffmpeg exe could be found.")

    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", missing)
    with pytest.raises(HimatchError, match=r"No ffmpeg exe could be found.*choose a \.gif"):
        check_writable(tmp_path / "film.mp4")


def test_a_program_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(tmp_path / "nowhere"))
    with pytest.raises(HimatchError, match=r"nowhere cannot be started.*choose a \.gif"):
        write_video(tmp_path / "bar.mp4", pictures(3), 20.0)
    assert not list(tmp_path.iterdir())
