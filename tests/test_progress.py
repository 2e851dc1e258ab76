from __future__ import annotations

import io

import pytest

from himatch.progress import progress_bar


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
