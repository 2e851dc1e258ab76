"""Studios to talk to in tests: bundled models behind an in-process client."""

from __future__ import annotations

import json
import struct
from functools import cache
from typing import Any

import numpy as np
from starlette.testclient import TestClient, WebSocketTestSession

from himatch.studio.app import make_app
from himatch.studio.catalog import Catalog

RUN = "halfcheetah-cdt"
ADDRESS = "http://localhost:8450"


@cache
def catalog() -> Catalog:
    """Loaded once."""
    return Catalog.read([RUN])


def studio(token: str | None = None, runs: Catalog | None = None) -> TestClient:
    """A client of a studio; a bug there is one here."""
    return TestClient(make_app(runs or catalog(), token), base_url=ADDRESS)


def opened(client: TestClient, **headers: str) -> WebSocketTestSession:
    """A view, as a context."""
    return client.websocket_connect(f"{ADDRESS.replace('http', 'ws')}/ws/view", headers=headers)


def say(view: WebSocketTestSession, kind: str, **content: Any) -> None:
    """Send a command."""
    view.send_text(json.dumps({"type": kind, **content}))


def start(view: WebSocketTestSession, **content: Any) -> dict[str, Any]:
    """Begin something short and quick; what is said to be ready."""
    settings = {"run": RUN, "expression": "normal(5,1)", "robots": 2, "steps": 30, "speed": 50.0} | content
    say(view, "start", **settings)
    return until(view, "ready")[-1]


def until(view: WebSocketTestSession, *kinds: str) -> list[dict[str, Any]]:
    """What is received up to the first message of one of these kinds; frames have their numbers in ``frame``."""
    found: list[dict[str, Any]] = []
    while not found or found[-1]["type"] not in kinds:
        message = view.receive()
        if message.get("bytes") is not None:
            found.append({"type": "frame", "frame": np.frombuffer(message["bytes"], "<f4")})
        elif message.get("text") is not None:
            found.append(json.loads(message["text"]))
        else:
            raise AssertionError(f"the socket was closed: {message}")
    return found


def head(frame: np.ndarray) -> tuple[int, int]:
    """The step and the number of robots of a frame."""
    step, robots = struct.unpack("<2f", frame[:2].tobytes())
    return int(step), int(robots)
