"""Which folder a run may be written to, and what a training that fails leaves there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from himatch._runtime.files import check_target, write_json
from himatch.errors import DataError, HimatchError, one_line
from himatch.runs import folder as files


def check_folder(folder: Path, *, resume: bool) -> None:
    """Refuse a folder that holds a run, unless that is continued, or anything that is not ours."""
    if (folder / files.RUN).exists():
        if not resume:
            raise DataError(f"{folder} holds a run already; pass --resume to continue it, or choose another folder")
        return
    # What a run leaves that failed, or was killed before it had begun, may be written over, anything else may not.
    ours = {files.EPISODES, files.HELD_OUT, files.NORMALIZERS}
    if folder.exists() and not (folder / files.FAILED).is_file():
        foreign = not folder.is_dir() or any(p.name not in ours and p.name[0] != "." for p in folder.iterdir())
        if foreign:
            raise DataError(f"{folder} exists and is not a run folder; choose another one")
    check_target(folder / files.RUN)


def clear(folder: Path) -> None:
    """Remove what an attempt left that failed; a run that it was to go on with stays."""
    (folder / files.FAILED).unlink(missing_ok=True)
    if not (folder / files.RUN).exists():
        for left in (folder / files.HELD_OUT, folder / files.TENSORBOARD, *folder.glob("seed-*")):
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def attempt(folder: Path) -> Iterator[None]:
    """A training there. If it fails the folder says why, and without any weights it is no run: another may begin."""
    try:
        yield
    except BaseException as reason:
        if (folder / files.RUN).exists():
            if not files.holds_weights(folder):
                (folder / files.RUN).unlink()
            if isinstance(reason, Exception):  # one that was interrupted did not fail
                said = str(reason) if isinstance(reason, HimatchError) else one_line(reason)
                write_json(folder / files.FAILED, {"reason": said})
        raise
