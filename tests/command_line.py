"""What tests of commands share; the fixture ``run`` runs one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from himatch.tasks import imports as importing

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


_elsewhere: dict[Path, set[str]] = {}
"""Modules that do not lie below a folder: to ask thousands of them around every test takes longer than many a test."""


@contextmanager
def fresh_modules(folder: Path) -> Iterator[None]:
    """Files below the folder are imported anew inside, as by a new process, and forgotten afterwards."""

    def below() -> set[str]:
        known = _elsewhere.setdefault(folder, set())
        new = {name: str(getattr(sys.modules[name], "__file__", None)) for name in sys.modules.keys() - known}
        found = {name for name, file in new.items() if file.startswith(str(folder))}
        known |= new.keys() - found
        return found

    path, hidden = list(sys.path), {name: sys.modules.pop(name) for name in below()}
    known = dict(importing._sources)
    importing._sources.clear()
    try:
        yield
    finally:
        sys.path[:] = path
        importing._sources.clear()
        importing._sources.update(known)
        for name in below():
            del sys.modules[name]
        sys.modules.update(hidden)
