"""Data larger than memory: time, speed and memory of a training from mapped files, against data in memory.

    python benchmarks/scale.py [--steps 1000000 10000000 100000000] [--train 300] [--folder FOLDER] [--memory-gb 8]

Each dataset is written as a D4RL file (HDF5, HalfCheetah's sizes, episodes of 1000 steps) into a temporary folder,
which is removed. A small CDT (preset ``cpu``) trains on it, in a fresh process each: from memory, where that fits,
from files that are mapped on first use (``mmap``), and from those again. Speed is that of the fastest tenth of all
steps, which other programs disturb least. Memory is the peak of what is not page cache, RssAnon + RssShmem of
``/proc/self/status``, read ten times a second.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from harness import ACTION, OBSERVATION

import himatch as hm
from himatch.training.update import Update

EPISODE = 1000
ROWS = 1_000_000  # written together
BYTES = 4 * (OBSERVATION + ACTION + 1)  # a step
SETTLED = 50  # steps after which the rate is measured


def write(path: Path, steps: int) -> None:
    """Smooth random walks, a million steps at a time."""
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        for name, width in (("observations", OBSERVATION), ("actions", ACTION)):
            file.create_dataset(name, (steps, width), np.float32)
        file.create_dataset("rewards", (steps,), np.float32)
        for name in ("terminals", "timeouts"):
            file.create_dataset(name, (steps,), bool)
        for start in range(0, steps, ROWS):
            rows = slice(start, min(start + ROWS, steps))
            count = rows.stop - rows.start
            noise = rng.standard_normal((count, OBSERVATION), dtype=np.float32) * 0.05
            file["observations"][rows] = np.cumsum(noise.reshape(-1, EPISODE, OBSERVATION), axis=1).reshape(count, -1)
            file["actions"][rows] = rng.random((count, ACTION), dtype=np.float32) * 2 - 1
            file["rewards"][rows] = rng.standard_normal(count, dtype=np.float32)
            file["timeouts"][rows] = np.arange(1, count + 1) % EPISODE == 0


# -- one training, in a process of its own --------------------------------------------------------------------------


def memory() -> int:
    """Bytes of this process that are not page cache."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem")))


@contextmanager
def watched(peaks: dict[str, int], stage: list[str]) -> Iterator[None]:
    """Keep the most memory of every stage, read ten times a second."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            peaks[stage[0]] = max(peaks.get(stage[0], 0), memory())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def train(source: Path, mapped: Path | None, out: Path, steps: int) -> dict[str, Any]:
    """Load and train; seconds, speed and memory."""
    peaks: dict[str, int] = {}
    stage, times = ["start"], [time.perf_counter()]
    run = Update.run

    def timed(self: Update, until: int) -> Iterator[Any]:
        for losses in run(self, until):
            stage[0] = "training"
            times.append(time.perf_counter())
            yield losses

    Update.run = timed  # type: ignore[method-assign]
    with watched(peaks, stage):
        stage[0], before = "loading", memory()
        data = hm.load_dataset(source, "halfcheetah", mmap=mapped)
        loaded, stage[0] = time.perf_counter(), "preparing"
        hm.train(
            hm.CDT("x_velocity"),
            data,
            out=out,
            preset="cpu",
            steps=steps,
            split="paper",
            device="cpu",
            quiet=True,
            temperature=0.0,  # no rollouts select it
        )
    taken = np.sort(np.diff(times[SETTLED:]))
    rate = 1 / taken[: len(taken) // 10].mean()
    seconds = {"load": loaded - times[0], "first": times[1] - loaded}
    return {**seconds, "rate": rate, "before": before, "peaks": peaks, "peak": max(peaks.values())}


# -- all of them ----------------------------------------------------------------------------------------------------


def in_process(*arguments: object) -> dict[str, Any]:
    """One training in a fresh process."""
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def measure(steps: int, trained: int, folder: Path, *, in_memory: bool) -> None:
    """Rows of the table for a dataset of so many steps."""
    source, mapped = folder / "halfcheetah_scale-v0.hdf5", folder / "mapped"
    free = shutil.disk_usage(folder).free
    if free < 2.5 * BYTES * steps:
        print(
            f"| {steps:,} | skipped: {free / 1e9:.0f} GB of disk are free, it takes {2.5 * BYTES * steps / 1e9:.0f} |"
        )
        return
    write(source, steps)
    plain = None
    runs = [("memory", None)] if in_memory else []
    for name, place in [*runs, ("mmap, first use", mapped), ("mmap", mapped)]:
        found = in_process(source, place or "-", folder / f"run {name}", trained)
        plain = found["rate"] if place is None else plain
        size = sum(file.stat().st_size for file in (mapped if place else folder).glob("*.npy" if place else "*.hdf5"))
        ratio = f"{found['rate'] / plain:.2f}" if plain else ""
        print(
            f"| {steps:,} | {name} | {found['load']:.1f} | {found['first']:.1f} | {found['rate']:.0f} | {ratio} | "
            f"{found['peak'] / 1e9:.2f} | {size / 1e9:.2f} |",
            flush=True,
        )
        stages = ", ".join(f"{stage} {peak / 1e9:.2f}" for stage, peak in found["peaks"].items())
        print(f"  GB before {found['before'] / 1e9:.2f}, then at most: {stages}", file=sys.stderr, flush=True)
    shutil.rmtree(mapped)
    source.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--train", type=int, default=300, help="training steps")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made; it must not be in memory")
    parser.add_argument("--memory-gb", type=float, default=8.0, help="what data in memory may take, 4 times its size")
    parser.add_argument("--one", nargs=4, metavar=("SOURCE", "MMAP", "OUT", "STEPS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        source, mapped, out, steps = arguments.one
        print(json.dumps(train(Path(source), None if mapped == "-" else Path(mapped), Path(out), int(steps))))
        return
    print("| steps | data | load, s | first step, s | steps/s | ratio | peak, GB | files, GB |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for steps in arguments.steps:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            fits = 4 * BYTES * steps < arguments.memory_gb * 1e9
            measure(steps, arguments.train, Path(folder), in_memory=fits)


if __name__ == "__main__":
    main()
