"""What is left when a process is killed? SIGKILL at random moments, the same command again, the same bits at the end.

    python benchmarks/kills.py [--kills 100] [--seed 0] [--only training data benchmark]

Every chain begins a command in a folder of its own, kills it at random moments, each time after the same command was
given again, lets it end, and compares what lies there with what an undisturbed process left. Prints a table and ends
with 1 if anything differs, any restart is refused, or any half-written file stays. Processes are forked, so that a kill
costs no imports; training saves all the time, so that kills fall into saving too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import himatch as hm
from himatch.cli.main import main as himatch_command
from himatch.runs.folder import RunFolder
from himatch.training import train as train_module

MOST_KILLS = 4  # in a chain
VARYING = ("seconds", "steps_per_second", "date", "rollout_seconds")  # what no two runs have in common
SMALL = "--preset cpu --steps 40 --width 16 --layers 1 --context 5 --batch-size 8 --device cpu --seeds 2"


@dataclass(frozen=True)
class Work:
    """A command that is given again and again; ``resumed`` are words that go on with what was saved."""

    name: str
    words: Callable[[Path], list[str]]
    content: Callable[[Path], Any]
    resumed: tuple[str, ...] = ()


@dataclass
class Tally:
    """How the chains of one command went."""

    chains: int = 0
    kills: int = 0
    before: int = 0
    """Kills at which nothing had been saved yet."""
    failures: list[str] = field(default_factory=list)


def begin(words: list[str], log: Path) -> int:
    """The command in a process of its own; its number."""
    process = os.fork()
    if process == 0:
        with log.open("ab") as said:
            for stream in (1, 2):
                os.dup2(said.fileno(), stream)
        code = 1
        try:
            himatch_command(words)
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            os._exit(code)
    return process


def finished(words: list[str], log: Path) -> int:
    """Run the command to its end; its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(begin(words, log), 0)[1])


def killed(words: list[str], after: float, log: Path) -> int | None:
    """Kill the command after so many seconds; its exit code if it had ended by then."""
    process = begin(words, log)
    until = time.perf_counter() + after
    while time.perf_counter() < until:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def chain(work: Work, out: Path, usual: float, draw: random.Random, tally: Tally, wanted: Any) -> None:
    """Kill, begin again, let it end, compare."""
    log, kills = out.with_suffix(".log"), draw.randint(1, MOST_KILLS)
    tally.chains += 1
    for number in range(kills + 1):
        saved = RunFolder(out).saved
        # Where nothing is saved both commands must begin; where something is, the plain one may ask for --resume.
        words = work.words(out) + (list(work.resumed) if saved or draw.random() < 0.5 else [])
        if number < kills:
            code = killed(words, draw.uniform(0, usual), log)
            tally.kills += code is None
            tally.before += code is None and not RunFolder(out).saved
            if code is None:
                continue
        else:
            code = finished(words, log)
        if code != 0:
            said = log.read_text(errors="replace").strip().splitlines()[-1:]
            tally.failures.append(f"{out.name}: exit code {code} ({' '.join(said)})")
            return
        if number < kills and not work.resumed and work.name != "benchmark":
            break  # it is done, and the command would refuse to write over it
    left = [str(path.relative_to(out.parent)) for path in out.parent.rglob(".*himatch-*")]
    if left:
        tally.failures.append(f"{out.name}: {left[0]} is left over")
    if work.content(out) != wanted:
        tally.failures.append(f"{out.name}: differs from the undisturbed {work.name}")


def plain(value: Any) -> Any:
    """JSON content without what no two runs have in common."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items() if not any(word in key for word in VARYING)}
    return [plain(entry) for entry in value] if isinstance(value, list) else value


def run_content(out: Path) -> dict[str, Any]:
    """Files of a run: weights and constants to the last byte, rows of metrics without times."""
    files = [path for path in out.rglob("*.safetensors") if path.name != "training.safetensors"]
    files += [out / "run.json", *out.glob("held_out/data/*")]
    content: dict[str, Any] = {str(path.relative_to(out)): path.read_bytes() for path in files}
    for path in out.glob("seed-*/metrics.jsonl"):
        content[str(path.relative_to(out))] = [plain(json.loads(line)) for line in path.read_text().splitlines()]
    return content


def data_content(out: Path) -> tuple[str, bytes]:
    return hm.load_dataset(out).content_hash, (out / "data" / "main_data.hdf5").read_bytes()


def benchmark_content(out: Path) -> dict[str, Any]:
    """Result files, and the weights they come from."""
    weights = {str(p.relative_to(out)): p.read_bytes() for p in out.glob("models/*/seed-*/*.safetensors")}
    scores = {path.name: plain(json.loads(path.read_text())) for path in (out / "scores").glob("*.json")}
    return weights | scores


def works(logs: Path) -> list[Work]:
    small = SMALL.split()
    make = ["data", "make", "hopper-medium-expert", "--episodes", "12", "--threads", "1", "--out"]
    suite = f"benchmark xvel --budget smoke --tasks hopper --methods cdt --steps 20 --episodes 1 --data {logs}".split()
    return [
        Work(
            "training",
            lambda out: ["train", "cdt", "--data", str(logs), "--out", str(out), *small],
            run_content,
            ("--resume",),
        ),
        Work("data", lambda out: [*make, str(out)], data_content),
        Work(
            "benchmark", lambda out: [*suite, "--device", "cpu", "--threads", "1", "--out", str(out)], benchmark_content
        ),
    ]


def measure(work: Work, kills: int, place: Path, draw: random.Random) -> Tally:
    """An undisturbed process, then chains of disturbed ones until there were so many kills."""
    tally, place = Tally(), place / work.name
    place.mkdir()
    began = time.perf_counter()
    if finished(work.words(place / "whole" / "x-v0"), place / "whole.log"):
        sys.exit((place / "whole.log").read_text())
    usual, wanted = time.perf_counter() - began, work.content(place / "whole" / "x-v0")
    while tally.kills < kills:
        folder = place / f"chain{tally.chains}"
        folder.mkdir()
        chain(work, folder / "x-v0", usual, draw, tally, wanted)
    print(f"{work.name}: {usual:.1f} s undisturbed", file=sys.stderr, flush=True)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=["training", "data", "benchmark"])
    parser.add_argument("--data", help="a Minari folder of Hopper; by default one is made")
    given = parser.parse_args()
    torch.set_num_threads(1)  # threads do not survive a fork
    sys.modules[train_module.__module__].SAVE_EVERY = 0.02  # type: ignore[attr-defined]
    shares, failed = {"training": 0.6, "data": 0.2, "benchmark": 0.2}, False
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(given.data) if given.data else Path(folder) / "hopper-v0"
        if not given.data:
            make = f"data make hopper-medium-expert --episodes 24 --threads 1 --out {logs}".split()
            if finished(make, Path(folder) / "make.log"):
                sys.exit((Path(folder) / "make.log").read_text())
        print("| command | chains | kills | before anything was saved | wrong |\n|---|---|---|---|---|")
        for work in works(logs):
            if work.name in given.only:
                kills = round(given.kills * shares[work.name] / sum(shares[name] for name in given.only))
                tally = measure(work, max(1, kills), Path(folder), random.Random(given.seed))
                wrong = len(tally.failures)
                print(f"| {work.name} | {tally.chains} | {tally.kills} | {tally.before} | {wrong} |", flush=True)
                for line in tally.failures:
                    print(line, file=sys.stderr)
                failed |= bool(wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
