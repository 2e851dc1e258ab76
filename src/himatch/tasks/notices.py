"""MuJoCo's notice about the old XML of Gymnasium's HalfCheetah, left out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from himatch._runtime.extras import installed
from himatch.errors import note
from himatch.tasks.physics import import_mujoco

KNOWN_NOTICE = "settotalmass"  # an XML attribute of half_cheetah.xml that MuJoCo means to drop one day

# MuJoCo has one handler for all threads: the first that loads puts ours in its place, the last takes it out again.
_lock = threading.Lock()
_loading = 0
_previous: Callable[[str], Any] | None = None
_others: list[str] = []


def _keep(message: str | bytes) -> None:
    text = message.decode(errors="replace") if isinstance(message, bytes) else message
    if KNOWN_NOTICE not in text:
        _others.append(text)


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Leave out MuJoCo's deprecation notice while models load; every other warning is passed on.

    MuJoCo would print the notice and append it to MUJOCO_LOG.TXT in the current folder, once a model. Other warnings
    go to the handler that was there before, else to Python's warnings.
    """
    if not installed("mujoco"):
        yield
        return
    mujoco = import_mujoco()
    global _loading, _previous
    with _lock:
        if _loading == 0:
            _previous = mujoco.get_mju_user_warning()
            mujoco.set_mju_user_warning(_keep)
        _loading += 1
    passed_on: list[str] = []
    try:
        yield
    finally:
        with _lock:
            _loading -= 1
            previous = _previous
            if _loading == 0:
                passed_on, _others[:] = list(_others), []
                if mujoco.get_mju_user_warning() is _keep:  # an environment may have installed its own
                    mujoco.set_mju_user_warning(previous)
    for text in passed_on:
        if previous is not None:
            previous(text)
        else:
            note(f"MuJoCo: {text}")
