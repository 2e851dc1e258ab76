"""The two point-mass tasks, known for the length of a test, and the program as a user runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from himatch.cli import main
from himatch.tasks import import_tasks, registry

POINT_MASS = Path(__file__).parent / "point_mass.py"


@pytest.fixture
def point_mass(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Registers ``point`` and ``plane``; the file that does so."""
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    import_tasks(str(POINT_MASS))
    return POINT_MASS


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command line and give its exit code, output and error output."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return run
