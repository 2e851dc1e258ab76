"""Who may talk to the studio."""

from __future__ import annotations

import pytest
from starlette.websockets import WebSocketDisconnect
from studios import RUN, opened, studio

from himatch.studio.guard import is_loopback
from himatch.studio.messages import BODY

TARGET = {"run": RUN, "expression": "normal(5,1)"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:1"}, 200),
        ({"host": "127.0.0.1:8450"}, 200),
        ({"host": "[::1]:8450"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "localhost.evil.example"}, 403),
        ({"host": "evil.example@localhost:1/"}, 403),
        ({"host": "[::1"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://localhost:8450"}, 200),
        ({"origin": "http://localhost:8451"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://[::1"}, 403),
    ],
)
def test_host_and_origin_are_checked(headers: dict[str, str], status: int) -> None:
    with studio() as client:
        answer = client.post("/api/target", json=TARGET, headers=headers)
        assert answer.status_code == status, answer.text
        if status == 403:
            assert set(answer.json()) == {"error", "at"}


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "http://evil.example"}])
def test_a_page_of_elsewhere_opens_no_view(headers: dict[str, str]) -> None:
    with studio() as client, pytest.raises(WebSocketDisconnect) as left, opened(client, **headers):
        pass
    assert left.value.code == 1008


def test_a_token_is_asked_for_and_remembered() -> None:
    with studio("secret") as client:
        for path in ("/", "/api/runs", "/page/studio.js", "/?token=wrong", "/api/runs?token="):
            assert client.get(path).status_code == 403
        assert client.get("/api/runs", headers={"authorization": "Bearer secret"}).status_code == 200
        client.cookies.clear()
        page = client.get("/?token=secret", headers={"host": "robot.lan:8450"})
        assert page.status_code == 200
        assert "HttpOnly; SameSite=Strict" in page.headers["set-cookie"]
    with studio("secret") as client:
        client.get("/?token=secret")
        assert client.get("/api/runs").status_code == 200
        with opened(client):
            pass
        client.cookies.clear()
        with pytest.raises(WebSocketDisconnect), opened(client):
            pass


def test_a_long_message_is_refused_before_it_is_read() -> None:
    with studio() as client:
        answer = client.post("/api/target", content=b" " * (BODY + 1), headers={"content-type": "application/json"})
        assert answer.status_code == 413

        def parts() -> object:
            for _ in range(10):
                yield b" " * BODY

        assert client.post("/api/target", content=parts()).status_code == 413  # type: ignore[arg-type]
        assert client.get("/api/runs", headers={"content-length": "-1"}).status_code == 413


def test_which_addresses_are_this_machines_alone() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.2", "evil.example", "")))
