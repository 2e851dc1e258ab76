"""What tests of commands share; the fixture ``run`` runs one."""

from __future__ import annotations

from collections.abc import Callable

Result = tuple[int, str, str]
"""Exit code, output, error output."""
Run = Callable[..., Result]


def assert_refused(result: Result, *fragments: str) -> None:
    """Bad input: one line on standard error, with these words in it."""
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("himatch: ")
    assert len(err.splitlines()) == 1
    for fragment in fragments:
        assert fragment in err
