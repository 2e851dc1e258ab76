"""What a simulation took is free as soon as it is over; only then pages go back to the system."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from studios import RUN, opened, say, start, studio, until
from waiting import wait_for

from himatch.rollout import Player
from himatch.studio import app, view

VIEWS = 30
TASKS = Path("/proc/self/task")
SHORT = {"run": RUN, "expression": "normal(5,1)", "robots": 2, "steps": 3}


@pytest.fixture
def client() -> Iterator[TestClient]:
    with studio() as client:
        yield client


@pytest.fixture
def players(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[Player]]]:
    """Those that are made from now on; Python does not look for cycles meanwhile."""
    found: list[weakref.ref[Player]] = []
    make = Player.__init__

    def noted(player: Player, *args: Any, **settings: Any) -> None:
        found.append(weakref.ref(player))
        make(player, *args, **settings)

    monkeypatch.setattr(Player, "__init__", noted)
    gc.disable()
    yield found
    gc.enable()


def test_views_leave_nothing_behind(
    client: TestClient, players: list[weakref.ref[Player]], monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[list[bool]] = []
    monkeypatch.setattr(view, "give_back", lambda: left.append([player() is None for player in players]))
    with opened(client) as shown:
        start(shown)
        until(shown, "end")
        start(shown)  # in the place of the first
        say(shown, "target", expression="normal(4,1)")
        until(shown, "target")
        say(shown, "stop")
        until(shown, "stopped")
        start(shown, steps=None, conditioning="remaining")
    wait_for(lambda: len(left) == 3, "the end of all simulations")
    assert left == [[True, False], [True, True], [True, True, True]]


def test_a_match_leaves_nothing_behind(
    client: TestClient, players: list[weakref.ref[Player]], monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[list[bool]] = []
    monkeypatch.setattr(app, "give_back", lambda: left.append([player() is None for player in players]))
    assert client.post("/api/match", json=SHORT).status_code == 200
    assert client.post("/api/match", json=SHORT | {"expression": "normal("}).status_code == 422
    assert left == [[True], [True]]


@pytest.mark.skipif(not TASKS.is_dir(), reason="threads are counted as Linux counts them, with those of libraries")
def test_views_one_after_another_need_no_more_threads(client: TestClient) -> None:
    watch(client, robots=1)
    before = threads()
    for number in range(VIEWS):
        watch(client, robots=1 + number % 8)
    wait_for(lambda: threads() <= before, f"{before} threads")


def watch(client: TestClient, robots: int) -> None:
    """A view to its end."""
    with opened(client) as shown:
        start(shown, robots=robots, steps=3)
        until(shown, "end")
    simulated = client.app.app.state.views  # type: ignore[attr-defined]
    wait_for(lambda: not len(simulated), "its end")


def threads() -> int:
    """Those of libraries too."""
    return len(list(TASKS.iterdir()))
