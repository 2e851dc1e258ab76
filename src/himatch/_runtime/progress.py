"""Long work: a bar with rate and time left, and signals that let it save before it leaves."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # the terminal closes; Windows has no such signal

LINES = 20  # in a notebook, at most
SAY_EVERY = 30.0  # seconds between lines where there is no terminal but a log file


@contextmanager
def progress_bar(
    title: str, total: int, done: int = 0, *, unit: str = "steps", quiet: bool = False
) -> Iterator[Callable[..., None]]:
    """A bar; gives a function ``(done, rate, what else to say, total)``. A notebook gets a few lines instead."""
    if in_notebook():
        yield _Lines(title, total, unit, quiet=quiet).update
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:>7,}/{task.total:,}"),
        _Note(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    )
    progress = Progress(*columns, console=Console(file=sys.stderr), disable=quiet)
    task = progress.add_task(title, total=total, completed=done, note="", speed="")

    said = time.monotonic()

    def update(done: int, rate: float, note: str = "", total: int | None = None) -> None:
        nonlocal said
        progress.update(task, completed=done, note=note, speed=speed(rate, unit), total=total)
        if not (quiet or progress.console.is_terminal) and time.monotonic() > said + SAY_EVERY:
            progress.print(*progress.get_renderables())
            said = time.monotonic()

    progress.start()
    stop = progress.stop
    try:
        yield update
    except BaseException:
        if progress.tasks[0].completed == done:  # a bar that never moved says nothing beside the error
            progress.live.transient, stop = True, progress.live.stop
        raise
    finally:
        with suppress(OSError):  # of a terminal that has closed; what is to be saved matters more
            stop()


@contextmanager
def bar(title: str, unit: str = "steps", *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A bar for ``(done, total)``: steps of all rollouts at once, or whatever is counted."""
    with progress_bar(title, 1, unit=unit, quiet=quiet) as update:
        started = time.perf_counter()

        def progress(done: int, total: int) -> None:
            update(done, done / max(time.perf_counter() - started, 1e-9), total=total)

        yield progress


@contextmanager
def bars() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """Bars one after another, each with a title of its own."""
    with ExitStack() as shown:

        def begin(title: str) -> Callable[[int, int], None]:
            shown.close()
            return shown.enter_context(bar(title))

        yield begin


def in_notebook() -> bool:
    """Whether a notebook runs this: there a bar needs widgets, or prints every state of it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and type(shell).__name__ in ("ZMQInteractiveShell", "Shell")


class _Lines:
    """A plain line for every twentieth of the work, and no two in the same second."""

    def __init__(self, title: str, total: int, unit: str, *, quiet: bool) -> None:
        self.title, self.total, self.unit, self.quiet = title, total, unit, quiet
        self.said, self.when = 0, -math.inf

    def update(self, done: int, rate: float, note: str = "", total: int | None = None) -> None:
        """Say it, if it is worth a line."""
        self.total = max(self.total if total is None else total, 1)
        part, now = LINES * done // self.total, time.monotonic()
        if self.quiet or part == self.said or (done < self.total and now < self.when + 1.0):
            return
        self.said, self.when = part, now
        said = ", ".join(text for text in (speed(rate, self.unit), note) if text)
        print(f"{self.title}: {done:,}/{self.total:,}" + (f" ({said})" if said else ""), flush=True)


class _Note(ProgressColumn):
    """Shortened where the line is too long: what is done and what is left are never cut off for it."""

    def render(self, task: Task) -> Text:
        return Text(task.fields["note"], no_wrap=True, overflow="ellipsis")


def speed(rate: float, unit: str) -> str:
    """A rate per second as people say it: of slow work per minute or per hour; nothing while it is not known."""
    if rate <= 0:
        return ""
    seconds, per = next(((s, p) for s, p in ((1, "s"), (60, "min")) if rate * s >= 1), (3600, "h"))
    return f"{rate * seconds:,.{0 if rate * seconds >= 10 else 1}f} {unit}/{per}"


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that SIGINT, SIGTERM or SIGHUP sets; a second Ctrl-C, or another of them, interrupts at once."""
    stopped = threading.Event()

    def stop() -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    with on_signals(stop, signal.SIGINT, signal.SIGTERM):
        yield stopped


@contextmanager
def on_signals(react: Callable[[], None], *numbers: signal.Signals) -> Iterator[None]:
    """Call ``react`` at these signals and at SIGHUP, but for those that are ignored (nohup, or in the background).

    Only the main thread gets any.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT:
            # Shells and systems send these more than once; that must not disturb the clearing up.
            signal.signal(number, signal.SIG_IGN)
        react()

    wanted = numbers if HANGUP is None else (*numbers, HANGUP)
    handled = [number for number in wanted if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupt() -> None:
    """As Ctrl-C."""
    raise KeyboardInterrupt
