"""``himatch studio`` as a program: where it listens, what it prints, and that Ctrl-C leaves nothing running."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import sys
from contextlib import closing

import pytest
from command_line import Run
from studios import RUN
from waiting import program
from websockets.sync.client import connect

from himatch.errors import HimatchError, HimatchWarning
from himatch.studio import server


def test_ctrl_c_leaves_nothing_running() -> None:
    with program("studio", RUN, "--port", 0, "--no-browser") as studio:
        assert studio.stdout is not None
        found = re.fullmatch(r"himatch studio: http://127\.0\.0\.1:(\d+)/\n", studio.stdout.readline())
        assert found is not None
        assert studio.stdout.readline() == "Ctrl-C ends it\n"
        port = int(found[1])
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/api/runs")
        assert json.load(connection.getresponse())["runs"][0]["name"] == RUN
        connection.close()
        with connect(f"ws://127.0.0.1:{port}/ws/view") as view:
            view.send(json.dumps({"type": "start", "run": RUN, "expression": "normal(5,1)", "robots": 2}))
            while isinstance(message := view.recv(), bytes) or json.loads(message)["type"] != "state":
                pass
            studio.send_signal(signal.SIGINT)
            printed, said = studio.communicate()
    assert studio.returncode == 0
    assert (printed, said) == ("", "himatch studio: closed\n")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_port_that_is_taken_is_said_or_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(server._listen("127.0.0.1", 0)) as first:
        taken = first.getsockname()[1]
        with pytest.raises(HimatchError, match=rf"port {taken} \(.*\); give another \(--port N\)"):
            server._listen("127.0.0.1", taken)
        monkeypatch.setattr(server, "PORT", taken)
        with closing(server._listen("127.0.0.1", None)) as second:
            assert taken < second.getsockname()[1] < taken + server.TRIED


@pytest.mark.parametrize(
    ("host", "port", "said"), [("127.0.0.1", 70_000, "0 to 65535"), ("no.such.host.invalid", 0, "cannot listen")]
)
def test_where_it_cannot_listen_is_said(host: str, port: int, said: str) -> None:
    with pytest.raises(HimatchError, match=said):
        server._listen(host, port)


def test_other_machines_need_a_token(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tokens: list[str | None] = []
    monkeypatch.setenv(*server.PRIMITIVES)
    monkeypatch.setattr(server, "serve", lambda _catalog, _listening, token: tokens.append(token))
    server.run_studio([RUN], port=0, browser=False)
    assert re.search(r"http://127\.0\.0\.1:\d+/\n", capsys.readouterr().out)
    with pytest.warns(HimatchWarning, match="other machines reach"):
        server.run_studio([RUN], host="0.0.0.0", port=0, browser=False)
    assert tokens[0] is None
    assert f"/?token={tokens[1]}\n" in capsys.readouterr().out
    assert len(str(tokens[1])) >= 32


def test_an_unknown_run_and_a_missing_extra_are_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, said = run("studio", "no-such-run", "--no-browser", "--port", 0)
    assert (code, said.count("\n")) == (2, 1)
    assert "no-such-run is not a run folder" in said
    monkeypatch.setitem(sys.modules, "fastapi", None)
    code, _, said = run("studio", "--no-browser")
    assert code == 2
    assert 'himatch studio needs the extra studio: pip install "himatch[studio]"' in said
