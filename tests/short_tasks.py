"""Robots whose episodes end soon, for tests that make data or roll out and do not ask how well it goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from himatch.tasks import registry

HORIZON = 60


def shorten(patch: pytest.MonkeyPatch, horizon: int = HORIZON) -> None:
    """Episodes of every known task end after that many steps: those that are made, and rollouts."""
    for name, task in registry._registry.items():
        patch.setitem(registry._registry, name, replace(task, horizon=min(task.horizon, horizon)))


@pytest.fixture(scope="module", autouse=True)
def short_tasks() -> Iterator[None]:
    """A module that imports this has short episodes."""
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        yield
