"""What somebody else's code raised, as part of a message."""

from __future__ import annotations

import pytest

from himatch.errors import LONGEST, one_line


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (RuntimeError(), "RuntimeError"),
        (OSError(" \n "), "OSError"),
        (ValueError("too hot\nat step 3"), "ValueError: too hot"),
        (KeyError("q"), "KeyError: 'q'"),
    ],
)
def test_kind_and_first_line(reason: Exception, said: str) -> None:
    assert one_line(reason) == said


def test_long_complaints_are_cut() -> None:
    assert one_line(ValueError("x" * 10_000)) == "ValueError: ".ljust(LONGEST, "x")
