"""Requests and messages that nobody sends who means well: is every one answered, and does the studio stay as it was?

    python tests/studio/hostile.py [--count 10000] [--seed 0]

Starts ``himatch studio`` with a bundled model, sends that many hostile requests and messages (fuzzed JSON, huge
numbers, wrong types, path tricks, half-open sockets, targets that no robot could match), and prints what was answered
and how much memory the server has as it goes. Ends with 1 if anything was answered by a 5xx or not at all, if the
server printed anything, grew by more than ``GROWTH`` in the second half, or does not end when it is interrupted.
"""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

RUN = "halfcheetah-cdt"
GROWTH = 0.05  # of the memory that the server has after the first half

# -- what is sent ---------------------------------------------------------------------------------------------------

GOOD = (
    "normal(5,1)",
    "0.5*normal(4,1)+0.5*normal(9,1)",
    "uniform(2,6)",
    "normal(4,1) for 20 then normal(9,1)",
    "shuffled(0.25*uniform(2,3)+0.75*uniform(6,8))",
    "x_velocity ~ normal(5,1) & reward > 0",
)
BAD = (
    "",
    " ",
    "(",
    "(" * 2000,
    "normal",
    "normal(",
    "normal(5)",
    "normal(5,-1)",
    "normal(5,1))",
    "normal(nan,1)",
    "normal(1e999,1)",
    "normal(1e308,1e308)",
    "normal(1e39,1)",
    "normal(3e38,1e37)",
    "normal(0,1e-320)",
    "uniform(-1e308,1e308)",
    "uniform(-3e38,3e38)",
    "point(3.4e38)",
    "point(-1e38)",
    "0.5*point(3e38)+0.5*point(-3e38)",
    "shift(normal(5,1), 1e300)",
    "shift(normal(5,1), 1e38)",
    "shuffled(normal(5,1), 1e300)",
    "shuffled(normal(5,1), 123456789012345678901234567890)",
    "normal(5,1) for 1e300",
    "normal(5,1) for 0.5",
    "normal(5,1) for 999999 then normal(5,1)",
    "patch(normal(5,1), normal(9,1), 1e18)",
    "patch(normal(5,1), normal(9,1), 0)",
    "return(1e308)",
    "return(5000)",
    "goal(1e308, within=1)",
    "goal(3, within=1e300)",
    "joint(normal(1,1), normal(2,1))",
    "heldout(0)",
    "heldout(123456789012345678901234567890)",
    "heldout(-1)",
    "demo(/etc/passwd, 0)",
    "demo('/etc/passwd', 0)",
    "demo(../../../../etc/passwd, 0)",
    "demo(halfcheetah-medium-v2, 0)",
    "demo(minari:D4RL/hopper/medium-v0, 0)",
    "samples(/etc/passwd)",
    "samples(\\\\host\\share\\x.npy)",
    "histogram(/proc/self/environ)",
    "histogram(http://localhost:1/x)",
    "y ~ normal(5,1)",
    "x_velocity ~ normal(5,1) & x_velocity > 1e308",
    "x_velocity ~ normal(5,1) & nothing < 3",
    "normal(5,1) & normal(5,1)",
    "0*normal(5,1)",
    "1e-300*normal(5,1)+1*normal(3,1)",
    "normal(5,1)\x00",
    "normal(5,1)\n\n\n",
    "нормаль(5,1)",
    "💥(5,1)",
    "\ud800",
    "+".join(["0.0005*normal(5,1)"] * 2000),
    "A" * 70_000,
)


def hostile_expression(rng: random.Random) -> str:
    """One that is bad in itself, or a good one with characters changed."""
    if rng.random() < 0.5:
        return rng.choice(BAD)
    text = list(rng.choice(GOOD))
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(text) + 1)
        what = rng.choice(("cut", "insert", "double", "replace"))
        if what == "cut":
            del text[place : place + rng.randint(1, 3)]
        elif what == "insert":
            text.insert(place, rng.choice("()+*,.&~<>=e-0123456789 \t\"'x"))
        elif what == "double":
            text[place:place] = text[: rng.randint(1, 12)]
        elif text:
            text[rng.randrange(len(text))] = chr(rng.choice((0, 9, 39, 40, 41, 43, 57, 101, 0x1F600, 0xFFFF)))
        text = text or list("n")
    return "".join(text)


def hostile_value(rng: random.Random, depth: int = 0) -> Any:
    """Something that JSON can hold and no field wants."""
    found: list[Callable[[], Any]] = [
        lambda: None,
        lambda: rng.choice((True, False)),
        lambda: rng.choice((0, -1, 1, 33, 2**31, 2**63, -(2**64), 10**400)),
        lambda: rng.choice((0.5, -0.0, 1e-320, 1e308, -1e308, 7.0)),
        lambda: rng.choice((float("nan"), float("inf"), -float("inf"))),
        lambda: rng.choice(("", "x", "8", "nominal ", "../..", "/etc/passwd", "\x00", "\ud800", "'; --", "x" * 5000)),
        lambda: hostile_expression(rng),
        lambda: [hostile_value(rng, depth + 1) for _ in range(rng.randrange(4))] if depth < 3 else [],
        lambda: {rng.choice(("a", "__class__", "")): hostile_value(rng, depth + 1)} if depth < 3 else {},
        lambda: [0.0] * rng.choice((0, 1, 30, 31, 32, 1001)),
        lambda: [[1.0] * 31] * rng.choice((1, 31, 40)),
    ]
    return rng.choice(found)()


FIELDS = ("run", "feature", "expression", "heights", "conditioning", "seed", "robots", "temperature", "steps", "speed")


def hostile_content(rng: random.Random) -> dict[str, Any]:
    """A message with something wrong in it, or much."""
    content: dict[str, Any] = {"run": RUN, "expression": rng.choice(GOOD), "robots": 2, "steps": 5}
    if rng.random() < 0.5:
        content["expression"] = hostile_expression(rng)
    for _ in range(rng.randrange(4)):
        content[rng.choice((*FIELDS, "other"))] = hostile_value(rng)
    if rng.random() < 0.1:
        content = {name: value for name, value in content.items() if rng.random() < 0.5}
    return content


def hostile_json(rng: random.Random, content: Any) -> bytes:
    """A content as text, or text that is hardly one."""
    text = json.dumps(content)
    chance = rng.random()
    if chance < 0.06:
        return text[: rng.randrange(len(text) + 1)].encode()
    if chance < 0.09:
        return b"[" * rng.choice((10, 100_000))
    if chance < 0.11:
        return b'{"seed": ' + b"9" * 6000 + b"}"
    if chance < 0.13:
        return b"\xff\xfe" + text.encode("utf-16-le")
    if chance < 0.14:
        return b"{" + b" " * 300_000 + b"}"
    if chance < 0.16:
        return rng.randbytes(rng.randrange(200))
    if chance < 0.18:
        return json.dumps(hostile_value(rng)).encode()
    return text.encode()


class Request(NamedTuple):
    """An HTTP request."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]


PATHS = (
    "/page/../../../../../../etc/passwd",
    "/page/%2e%2e/%2e%2e/app.py",
    "/page/..%2f..%2fapp.py",
    "/page/....//....//app.py",
    "/page/",
    "/page/index.html/",
    "/page//etc/passwd",
    "//etc/passwd",
    "/page/%00",
    "/page/index.html%00.js",
    "/..",
    "/api/runs/../../etc/chart",
    "/api/runs/%2e%2e%2f%2e%2e/geometry",
    f"/api/runs/{RUN}/chart?feature=" + "x" * 3000,
    f"/api/runs/{RUN}/chart?feature=..%2f..%2fetc",
    f"/api/runs/{RUN}/chart?feature=%ff%fe",
    f"/api/runs/{RUN}/chart?token=" + "&".join(["a=b"] * 100),
    f"/api/runs/{RUN}/nothing",
    "/api/runs/%F0%9F%92%A5/chart",
    "/api/runs//chart",
    "/api/",
    "/docs",
    "/ws/view",
    "/" + "a" * 20_000,
    "*",
)
METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE")
ODD_HEADERS: tuple[dict[str, str], ...] = (
    {"Host": "evil.example"},
    {"Host": "localhost.evil.example:8450"},
    {"Host": "[::1"},
    {"Host": ""},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://[::1"},
    {"Content-Length": "-1"},
    {"Content-Length": "99999999999999999999"},
    {"Content-Type": "text/plain"},
    {"Content-Type": "multipart/form-data; boundary=x"},
    {"Content-Type": "application/json; charset=utf-16"},
    {"Cookie": "himatch-studio=x; \x01=;;=,"},
    {"Authorization": "Bearer é"},
    {"Range": "bytes=-99999999999999,5-1"},
    {"If-None-Match": "W/" + '"' * 50},
    {"Accept-Encoding": "x" * 2000},
)


def hostile_request(rng: random.Random) -> Request:
    """A path, a body or headers that should not be."""
    chance, headers = rng.random(), {}
    if rng.random() < 0.15:
        headers = dict(rng.choice(ODD_HEADERS))
    if chance < 0.25:
        return Request(rng.choice(METHODS), rng.choice(PATHS), b"", headers)
    path = rng.choice(("/api/target", "/api/target", "/api/target", "/api/match", "/api/runs"))
    content = hostile_content(rng)
    if path == "/api/target":
        content.pop("steps", None)
        if rng.random() < 0.3:
            content.pop("expression", None)
            content["heights"] = rng.choice(
                ([rng.choice((0, 1, 1e308, 5e-324, -1)) for _ in range(31)], hostile_value(rng))
            )
    return Request("POST", path, hostile_json(rng, content), {"Content-Type": "application/json", **headers})


def hostile_command(rng: random.Random) -> str:
    """A message for a view."""
    kind = rng.choice(("start", "start", "target", "speed", "pause", "play", "reset", "stop", "end", "", "__init__"))
    content: dict[str, Any] = {"type": kind}
    if kind == "start":
        decent = {"run": RUN, "expression": rng.choice(GOOD), "robots": rng.randint(1, 8)}
        content |= (decent if rng.random() < 0.5 else hostile_content(rng)) | {"speed": 50.0}
    elif kind == "target":
        content["expression"] = hostile_expression(rng) if rng.random() < 0.5 else rng.choice(GOOD)
    elif kind == "speed":
        content["value"] = hostile_value(rng)
    if rng.random() < 0.1:
        content[rng.choice(("type", "extra", "value"))] = hostile_value(rng)
    return hostile_json(rng, content).decode("utf-8", "replace")


# -- sending it -----------------------------------------------------------------------------------------------------


class Studio:
    """``himatch studio`` in a process of its own."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "himatch", "studio", RUN, "--port", "0", "--no-browser"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r":(\d+)/", line)
        if found is None:
            raise RuntimeError(f"the studio did not start: {line}{self.process.communicate()}")
        self.port = int(found[1])

    @property
    def memory(self) -> int:
        """Resident bytes."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def threads(self) -> int:
        """How many there are."""
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    def request(self, one: Request) -> int:
        """The status of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(one.method, one.path, skip_host="Host" in one.headers, skip_accept_encoding=True)
            if "Content-Length" not in one.headers:
                connection.putheader("Content-Length", str(len(one.body)))
            for name, value in one.headers.items():
                connection.putheader(name, value.encode("latin-1", "replace"))
            connection.endheaders(one.body)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()

    def half_open(self, rng: random.Random) -> socket.socket:
        """A connection that says half of something, and waits."""
        opened = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        said = rng.choice(
            (
                b"",
                b"G",
                b"GET / HTTP/1.1\r\nHost: localhost\r\n",
                b"POST /api/target HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
                b"GET /ws/view HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
                rng.randbytes(64),
            )
        )
        with suppress(OSError):
            opened.sendall(said)
        return opened

    def interrupt(self) -> tuple[int, str, float]:
        """Ctrl-C: how it ended, what it had printed besides its address, and after how many seconds."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        try:
            out, err = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
        return self.process.returncode, out.replace("Ctrl-C ends it", "").strip() + err, time.monotonic() - began


def end_of_frames(record: logging.LogRecord) -> bool:
    """Whether the client's reading thread found its own queue closed: it does where pictures arrive as it leaves."""
    return record.exc_info is not None and isinstance(record.exc_info[1], EOFError)


SAID_BY_CLIENT = logging.getLogger("hostile")
SAID_BY_CLIENT.addFilter(lambda record: not end_of_frames(record))


def converse(studio: Studio, rng: random.Random, count: int, answers: Counter[str]) -> None:
    """A view that is sent hostile commands, and left in the middle of something."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    try:
        address = f"ws://127.0.0.1:{studio.port}/ws/view"
        with connect(address, max_size=None, close_timeout=1, logger=SAID_BY_CLIENT) as view:
            for _ in range(count):
                message = hostile_command(rng)
                view.send(message if rng.random() < 0.95 else message.encode())
                with suppress(TimeoutError):
                    while True:
                        said = view.recv(timeout=0.0)
                        answers["frame" if isinstance(said, bytes) else json.loads(said)["type"]] += 1
            with suppress(TimeoutError):
                while True:
                    said = view.recv(timeout=0.3)
                    answers["frame" if isinstance(said, bytes) else json.loads(said)["type"]] += 1
    except ConnectionClosed as reason:
        code = reason.rcvd.code if reason.rcvd is not None else 1006
        answers[f"closed {code}"] += 1


def rounds(count: int, rng: random.Random) -> Iterator[str]:
    """What to send next; a conversation counts for its messages."""
    left = count
    while left > 0:
        kind = rng.choices(("request", "half-open", "view"), (0.9, 0.07, 0.03))[0]
        left -= 10 if kind == "view" else 1
        yield kind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, answers, sent, bad = random.Random(options.seed), Counter[str](), 0, []
    studio, kept, memory = Studio(), [], list[int]()
    began = time.monotonic()
    for kind in rounds(options.count, rng):
        if kind == "half-open":
            kept.append(studio.half_open(rng))
            if len(kept) > 50:
                kept.pop(0).close()
            sent += 1
        elif kind == "view":
            converse(studio, rng, 10, answers)
            sent += 10
        else:
            one = hostile_request(rng)
            try:
                status = studio.request(one)
            except (OSError, http.client.HTTPException) as reason:
                status = 0
                if "Content-Length" not in one.headers:  # of a lie the rest may be cut off before the answer is read
                    bad.append((repr(reason), one))
            answers[str(status)] += 1
            if status >= 500:
                bad.append((str(status), one))
            sent += 1
        if sent // (options.count // 10) > len(memory):
            memory.append(studio.memory)
            seconds = time.monotonic() - began
            print(f"{sent:6d} sent, {seconds:5.0f} s, {memory[-1] / 1e6:.0f} MB, {studio.threads} threads", flush=True)
    for one in kept:
        one.close()
    code, printed, seconds = studio.interrupt()
    printed = printed.replace("himatch studio: closed", "").strip()
    print("answers:", dict(sorted(answers.items())))
    print(f"interrupted: exit code {code} after {seconds:.1f} s; printed: {printed or 'nothing'}")
    for reason, one in bad[:20]:
        print("BAD", reason, one.method, one.path[:100], one.body[:200], one.headers)
    grown = memory[-1] / memory[len(memory) // 2] - 1.0
    print(f"memory from the middle to the end: {grown:+.1%}; {len(bad)} bad answers")
    sys.exit(int(bool(bad) or bool(printed) or grown > GROWTH or code != 0))


if __name__ == "__main__":
    main()
