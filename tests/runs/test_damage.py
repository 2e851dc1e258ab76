"""Damaged run folders and datasets are refused in one line, or read exactly; ``benchmarks/damage.py`` does more."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from himatch.tasks import registry

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "damage.py"


@pytest.fixture
def damage(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    spec = importlib.util.spec_from_file_location("damage", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "damage", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("kind", "count"), [("run", 100), ("dataset", 140)])
def test_damage_is_refused_or_without_effect(kind: str, count: int, damage: ModuleType, tmp_path: Path) -> None:
    check = {"run": damage.run_case, "dataset": damage.dataset_case}[kind]
    judge = lambda _, *case: damage.outcome(check, *case)  # noqa: E731
    table, wrong = damage.measure(kind, count, 7, judge, tmp_path)
    assert not wrong, wrong[0]
    assert sum(table.values()) == count
