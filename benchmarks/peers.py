"""himatch beside its peers, in one run: training and evaluation of a Decision Transformer of the paper's size.

    python benchmarks/peers.py [--device cuda] [--seconds 2] [--rounds 3] [--without d3rlpy] [--out FILE.json]

Every contestant (``contestants.py``) has a process of its own, for libraries change PyTorch's settings. All are built
and warmed up first, which is not measured. Then they take turns, one at a time: a round measures each for so many
seconds, an evaluation for at least one call. Ratios are of medians over the rounds. What is not installed or does not
run here is left out, with a line that says so. ``--without`` takes the beginning of names.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import torch
from contestants import EVALUATION, NEEDS, ONLY, PARTS, TRAINING, Setting
from harness import machine

TITLES = {
    TRAINING: "training, steps of one model a second (N = 20, batches of 64, dropout 0.1)",
    EVALUATION: "rollouts of HalfCheetah-v5, policy steps a second",
}
PACKAGES = ("torch", "numpy", "transformers", "d3rlpy", "gymnasium", "mujoco")


@dataclass
class Row:
    """What was found about one contestant."""

    part: str
    name: str
    how: str = ""
    precision: str = ""
    parameters: int = 0
    rates: list[float] = field(default_factory=list)


class Worker:
    """A contestant in its process."""

    def __init__(self, row: Row, setting: Setting) -> None:
        self.row = row
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(row.part, row.name, setting, theirs))
        self._process.start()
        theirs.close()

    def ready(self, patience: float) -> bool:
        """Wait until it is built."""
        found = self._answer(patience)
        if found is not None:
            self.row.how, self.row.precision, self.row.parameters = found
        return found is not None

    def measure(self, seconds: float) -> bool:
        """One more rate."""
        self._pipe.send(seconds)
        found = self._answer(None)
        self.row.rates = [] if found is None else [*self.row.rates, found]
        return found is not None

    def end(self, patience: float = 2.0) -> None:
        """Its process is over after this."""
        self._pipe.close()
        self._process.join(patience)
        self._process.terminate()
        self._process.join()

    def _answer(self, patience: float | None) -> Any:
        """What it sends; if that is no result, a line says so, and it is over."""
        found: Any = "not ready in time"
        if self._pipe.poll(patience):
            try:
                found = self._pipe.recv()
            except EOFError:
                found = "its process ended"
        if not isinstance(found, str):
            return found
        print(f"{self.row.part}, {self.row.name}: left out, {found}", flush=True)
        self.end(0)
        return None


def serve(part: str, name: str, setting: Setting, pipe: Connection) -> None:
    """Build a contestant, then measure it whenever seconds come."""
    warnings.simplefilter("ignore")
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        try:
            contestant = PARTS[part][name](setting)
            pipe.send((contestant.how, contestant.precision, contestant.parameters))
            while True:
                pipe.send(contestant.measure(pipe.recv()))
        except EOFError:
            return
        except Exception as error:  # whatever another library may say
            pipe.send(f"{type(error).__name__}: {error}".splitlines()[0])


def wanted(device: torch.device, without: list[str]) -> Iterator[Row]:
    """The contestants that are measured here."""
    missing = [name for name, package in NEEDS.items() if importlib.util.find_spec(package) is None]
    for name in missing:
        print(f"{name}: left out, {NEEDS[name]} is not installed", flush=True)
    for part, builds in PARTS.items():
        for name in builds:
            if not name.startswith((*missing, *without)) and ONLY.get(name, device.type) == device.type:
                yield Row(part, name)


@contextmanager
def workers(rows: list[Row], setting: Setting, patience: float) -> Iterator[list[Worker]]:
    """Those that are ready, built side by side."""
    started: list[Worker] = []
    try:
        for row in rows:
            started.append(Worker(row, setting))
        until = time.monotonic() + patience
        yield [worker for worker in started if worker.ready(max(0.0, until - time.monotonic()))]
    finally:
        for worker in started:
            worker.end()


def table(part: str, rows: list[Row]) -> str:
    """A part's rates as Markdown, with how many times as fast as each peer everything is."""
    rows = [row for row in rows if row.part == part and row.rates]
    peers = [row for row in rows if row.name in NEEDS]
    head = ["what", "how", "precision", "rounds", "median", *(f"x {peer.name}" for peer in peers)]
    lines = [TITLES[part], "", " | ".join(["", *head, ""]).strip(), "|---" * len(head) + "|"]
    for row in rows:
        middle = median(row.rates)
        cells = [row.name, row.how, row.precision, ", ".join(map(short, row.rates)), short(middle)]
        cells += [f"{middle / median(peer.rates):.2f}" for peer in peers]
        lines.append(" | ".join(["", *cells, ""]).strip())
    return "\n".join(lines)


def short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seconds", type=float, default=2.0, help="of every measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200_000, help="size of the dataset")
    parser.add_argument("--length", type=int, default=1000, help="of the rollouts")
    parser.add_argument("--without", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds until all must be built")
    parser.add_argument("--out", type=Path, help="also write everything as JSON")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    where, what = machine(device), versions()
    print(f"{date.today()}, {where}, {', '.join(map(' '.join, what.items()))}", flush=True)
    rows = list(wanted(device, arguments.without))
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(arguments.device, Path(folder), arguments.steps, arguments.length)
        with workers(rows, setting, arguments.patience) as ready:
            for number in range(arguments.rounds):
                ready = [worker for worker in ready if worker.measure(arguments.seconds)]
                print(f"round {number + 1} of {arguments.rounds} done", file=sys.stderr, flush=True)
    for part in PARTS:
        print("\n" + table(part, rows), flush=True)
    if arguments.out is not None:
        run = {"date": f"{date.today()}", "machine": where, "versions": what, "command": " ".join(sys.argv)}
        arguments.out.write_text(
            json.dumps({**run, "rows": [asdict(row) for row in rows if row.rates]}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
