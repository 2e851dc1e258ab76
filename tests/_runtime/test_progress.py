from __future__ import annotations

import errno
import io
import signal
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from himatch._runtime.progress import interruptible, progress_bar, speed


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, moves: bool, fails: bool) -> str:
    """What a bar leaves behind; on a terminal that is what follows the last erased line."""
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    try:
        with progress_bar("rollouts", 4) as update:
            if moves:
                update(3, 1.0)
            if fails:
                raise ValueError
    except ValueError:
        pass
    return stream.getvalue().rpartition("\x1b[2K")[2]


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_bar_that_never_moved_leaves_nothing_before_an_error(
    stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(stream(), monkeypatch, moves=False, fails=True) == ""
    for moves, fails in ((True, True), (True, False), (False, False)):
        assert "rollouts" in shown(stream(), monkeypatch, moves=moves, fails=fails)


def test_a_long_note_leaves_room_for_what_is_done_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "80")
    with progress_bar("benchmark", 28, unit="jobs") as update:
        update(27, 0.05, "walker2d-medium-expert-dt-cpc-m=16-mode=joint-batch_size=64-context=20")
    (line,) = stream.getvalue().splitlines()
    assert "27/28 walker2d" in line
    assert "3.0 jobs/min" in line
    assert "…" in line.split("jobs/min")[0]
    assert "…" not in line.split("jobs/min")[1]


def test_a_file_instead_of_a_terminal_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 20))
    monkeypatch.setattr("himatch._runtime.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    for quiet in (False, True):
        stream = io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        with progress_bar("training", 10, quiet=quiet) as update:
            for done in range(10):
                update(done, 1.0, "loss 0.1")
        lines = stream.getvalue().splitlines()
        assert 3 < len(lines) < 10 if not quiet else not lines
        assert all("loss 0.1" in line for line in lines)


@pytest.mark.parametrize(
    ("rate", "said"),
    [(1234.5, "1,234 jobs/s"), (2.25, "2.2 jobs/s"), (0.5, "30 jobs/min"), (0.001, "3.6 jobs/h"), (0, "")],
)
def test_slow_work_is_shown_per_minute_or_per_hour(rate: float, said: str) -> None:
    assert speed(rate, "jobs") == said


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # whoever draws may notice first
def test_a_bar_on_a_terminal_that_closed_does_not_hide_why_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")

    def closed(_: str) -> int:
        raise OSError(errno.EIO, "Input/output error")

    def work() -> None:
        with progress_bar("rollouts", 4) as update:
            update(3, 1.0)
            monkeypatch.setattr(stream, "write", closed)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()


@pytest.fixture
def hangup() -> Iterator[signal.Signals]:
    """The signal of a terminal that closes; the tests themselves may run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield signal.SIGHUP
    signal.signal(signal.SIGHUP, before)


def test_a_terminal_that_closes_asks_to_stop_however_often_it_says_so(hangup: signal.Signals) -> None:
    with interruptible() as stopped:
        signal.raise_signal(hangup)
        assert stopped.is_set()
        signal.raise_signal(hangup)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(hangup) == signal.SIG_DFL


def test_under_nohup_a_terminal_may_close(hangup: signal.Signals) -> None:
    signal.signal(hangup, signal.SIG_IGN)
    with interruptible() as stopped:
        signal.raise_signal(hangup)
        assert not stopped.is_set()
    assert signal.getsignal(hangup) == signal.SIG_IGN


def test_a_notebook_gets_a_few_plain_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A bar there needs ipywidgets, or prints every state of itself."""
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    clock = iter(range(0, 100_000, 5))
    monkeypatch.setattr("himatch._runtime.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    with progress_bar("training cdt", 1000) as update:
        for step in range(1, 1001):
            update(step, 50.0, f"loss {step}")
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == ""
    assert 10 <= len(lines) <= 21
    assert lines[-1] == "training cdt: 1,000/1,000 (50 steps/s, loss 1000)"
    with progress_bar("rollouts", 10, quiet=True) as update:
        update(10, 1.0)
    assert capsys.readouterr().out == ""
