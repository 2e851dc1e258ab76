"""Long work: a bar with rate and time left, and signals that let it save before it leaves."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(
    title: str, total: int, done: int = 0, *, unit: str = "steps", quiet: bool = False
) -> Iterator[Callable[..., None]]:
    """A bar; gives a function ``(done, rate, what else to say, total)``."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:>7,}/{task.total:,}"),
        TextColumn("{task.fields[note]}"),
        TextColumn("{task.fields[rate]:,.0f} " + f"{unit}/s"),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(file=sys.stderr), disable=quiet) as progress:
        task = progress.add_task(title, total=total, completed=done, note="", rate=0.0)

        def update(done: int, rate: float, note: str = "", total: int | None = None) -> None:
            progress.update(task, completed=done, note=note, rate=rate, total=total)

        try:
            yield update
        except BaseException:
            if progress.tasks[0].completed == done:  # a bar that never moved says nothing beside the error
                progress.live.transient = progress.disable = True
                progress.live.stop()
            raise


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that SIGINT or SIGTERM sets; a second signal interrupts at once."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def handle(_: int, __: FrameType | None) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
