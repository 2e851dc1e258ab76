"""The two point-mass tasks, known for the length of a test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from himatch.tasks import import_tasks, registry

POINT_MASS = Path(__file__).parent / "point_mass.py"


@pytest.fixture
def point_mass(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Registers ``point`` and ``plane``; the file that does so."""
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    monkeypatch.delitem(sys.modules, POINT_MASS.stem, raising=False)  # imported by another test, it would not run
    import_tasks(str(POINT_MASS))
    return POINT_MASS
