"""How many messages a second a view of ``himatch studio`` sends, and whether its robots keep their time.

    python benchmarks/studio.py [--robots 8] [--seconds 10] [--views 1] [--runs halfcheetah-cdt hopper-cdt walker2d-cdt]

Starts the studio, opens views as a page does (one WebSocket each, everything is read), and counts for some seconds what
arrives: pictures (poses of all robots) and states (scores, charts), at real time and as fast as it goes. ``steps/s`` is
what the robots really made, ``real time`` what they should make at that speed. The claim is 30 messages a second from
eight robots on two cores. Then a view whose browser reads nothing: its robots must be as quick.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.request import urlopen

from websockets.sync.client import ClientConnection, connect

FASTEST = 50.0
CLAIM = 30.0  # messages a second


def started(runs: list[str]) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "himatch", "studio", *runs, "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r":(\d+)/", line)
    if found is None:
        sys.exit(f"the studio did not start: {line}")
    return process, int(found[1])


@contextmanager
def started_view(port: int, run: dict[str, Any], robots: int, speed: float) -> Iterator[ClientConnection]:
    with connect(f"ws://127.0.0.1:{port}/ws/view", max_size=None, compression=None) as view:
        expression = run["default"]["expression"]
        start = {"type": "start", "run": run["name"], "expression": expression, "robots": robots, "speed": speed}
        view.send(json.dumps(start))
        while json.loads(text(view))["type"] != "ready":
            pass
        yield view


def text(view: ClientConnection) -> str:
    """The next message that is no picture."""
    while isinstance(message := view.recv(), bytes):
        pass
    return message


def watched(view: ClientConnection, seconds: float) -> tuple[Counter[str], float, int]:
    """What arrives, in how many seconds, and the steps that were made meanwhile; it begins again when it ends."""
    found: Counter[str] = Counter()
    began, steps, last = time.perf_counter(), 0, 0
    while (now := time.perf_counter()) - began < seconds:
        message = view.recv()
        if isinstance(message, bytes):
            found["pictures"] += 1
            continue
        content = json.loads(message)
        found[content["type"]] += 1
        if content["type"] == "state":
            steps += max(0, content["step"] - last)
            last = content["step"]
        elif content["type"] == "end":
            last = 0
            view.send(json.dumps({"type": "reset"}))
    return found, now - began, steps


def measured(port: int, run: dict[str, Any], robots: int, speed: float, views: int, seconds: float) -> float:
    """Messages a second of the slowest of some views at once; prints a line."""
    with ExitStack() as stack, ThreadPoolExecutor(views) as pool:
        opened = [stack.enter_context(started_view(port, run, robots, speed)) for _ in range(views)]
        results = list(pool.map(lambda view: watched(view, seconds), opened))
    rates = [sum(found.values()) / took for found, took, _ in results]
    slowest = rates.index(min(rates))
    found, took, steps = results[slowest]
    due = speed / run["dt"]
    what = "real time" if speed == 1.0 else f"speed {speed:g}"
    print(
        f"{run['name']:16} {what:9} {views} view(s) of {robots} robots: {rates[slowest]:5.1f} messages/s "
        f"({found['pictures'] / took:.1f} pictures, {found['state'] / took:.1f} states), {steps / took:6.1f} steps/s "
        f"of {due:.0f}",
        flush=True,
    )
    return rates[slowest]


def unread(port: int, run: dict[str, Any], robots: int) -> None:
    """Two views as fast as they go, one after the other: one is read, the other only when its time is over."""
    lasted = {}
    for name in ("read", "unread"):
        with started_view(port, run, robots, FASTEST) as view:
            began = time.perf_counter()
            if name == "unread":
                time.sleep(lasted["read"])
                began = time.perf_counter()
            received = 0
            while json.loads(text(view))["type"] != "end":
                received += 1
            lasted[name] = time.perf_counter() - began
    read, rest = lasted["read"], lasted["unread"]
    print(f"{run['name']:16} played in {read:.1f} s; left unread for as long, it ended {rest:.1f} s later")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--views", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", nargs="+", default=["halfcheetah-cdt", "hopper-cdt", "walker2d-cdt"])
    options = parser.parse_args()
    process, port = started(options.runs)
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/runs") as answer:
            runs = json.load(answer)["runs"]
        print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
        rates = [
            measured(port, run, options.robots, speed, views, options.seconds)
            for run in runs
            for views in options.views
            for speed in (1.0, FASTEST)
        ]
        unread(port, runs[0], options.robots)
        reached = sum(rate >= CLAIM for rate in rates)
        print(f"{CLAIM:.0f} messages a second or more: {reached} of {len(rates)}")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


if __name__ == "__main__":
    main()
