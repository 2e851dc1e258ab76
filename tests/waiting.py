"""Waiting for what a test is about, and not for some time in which it should have come about."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from filelock import FileLock

T = TypeVar("T")
Program = subprocess.Popen[str]

PATIENCE = 300.0  # seconds; a test that passes never waits as long

ORPHANED = """
import os
import threading
import time


def leave_with(parent):
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


threading.Thread(target=leave_with, args=(os.getppid(),), daemon=True).start()
"""
"""For a file that a program reads: without it, one that works until a signal would outlive tests that were killed."""

TRAINED = f"""{ORPHANED}
from pathlib import Path

from himatch.training.update import Update

step = Update._one_step


def noted(self):
    step(self)
    (Path(__file__).parent / f"{{os.getpid()}}.trained").touch()


Update._one_step = noted
"""
"""For ``--import``: a process that trains leaves a file beside this one, ``PID.trained``, when it has made a step."""


def wait_for(condition: Callable[[], T], what: str, process: Program | None = None, *, seconds: float = PATIENCE) -> T:
    """What the condition gives as soon as that is true; fails if it is not in time, or if the process has ended."""
    deadline = time.monotonic() + seconds
    while True:
        ended = None if process is None else process.poll()  # before looking: it may end just after it has done it
        if found := condition():
            return found
        if process is not None and ended is not None:
            pytest.fail(f"waited for {what}, but the process has ended ({ended}): {_last_words(process)}")
        if time.monotonic() > deadline:
            pytest.fail(f"waited {seconds:g} s for {what}")
        time.sleep(0.02)


def _last_words(process: Program) -> str:
    try:
        return process.communicate(timeout=10)[1]
    except subprocess.TimeoutExpired:
        return "(processes that it began have not)"


@contextmanager
def program(*arguments: object, **settings: Any) -> Iterator[Program]:
    """``himatch`` as a process, the first of a group of its own; what is left of the group in the end is killed."""
    command = [sys.executable, "-m", "himatch", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes, **settings) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def both_at_the_lock(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that take a module's ``FileLock`` do so at the same time: nobody before both have come to it."""
    there = threading.Barrier(2)

    class Met(FileLock):
        def acquire(self, *arguments: Any, **settings: Any) -> Any:
            there.wait(timeout=PATIENCE)
            return super().acquire(*arguments, **settings)

    monkeypatch.setattr(f"{module}.FileLock", Met)


def trained(folder: Path) -> int:
    """How many processes that imported ``TRAINED`` from there have made a step."""
    return len(list(folder.glob("*.trained")))
