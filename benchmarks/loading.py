"""Loading a million-step D4RL file: time against bare decompression, peak memory against the arrays.

    python benchmarks/loading.py [--steps 1000000] [--width 17]

The file is written to a temporary folder in D4RL's layout (gzip, small chunks) from smooth random walks.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

LOAD = """
import re, sys, time
from himatch.data import load_dataset

def peak_bytes():  # of this process alone; getrusage would count the parent's
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

before = peak_bytes()
start = time.perf_counter()
data = load_dataset(sys.argv[1], "halfcheetah")
elapsed = time.perf_counter() - start
peak = peak_bytes() - before
arrays = data.observations.nbytes + data.actions.nbytes + data.rewards.nbytes
print(elapsed, peak / arrays, len(data))
"""


def write(path: Path, steps: int, width: int) -> None:
    rng = np.random.default_rng(0)
    ends = np.zeros(steps, dtype=bool)
    ends[999::1000] = True
    with h5py.File(path, "w") as file:
        walk = np.cumsum(rng.normal(size=(steps + 1, width)).astype(np.float32) * 0.05, axis=0).round(3)
        following = walk[1:].copy()
        following[ends] += 1.0  # an episode's last observation is not the next one's first
        columns = {
            "observations": walk[:-1],
            "next_observations": following,
            "actions": rng.uniform(-1, 1, size=(steps, 6)).astype(np.float32).round(2),
            "rewards": rng.normal(size=steps).astype(np.float32),
            "terminals": np.zeros(steps, dtype=bool),
            "timeouts": ends,
        }
        for name, column in columns.items():
            file.create_dataset(name, data=column, compression="gzip", chunks=True)


def bare_read(path: Path) -> float:
    """Everything himatch has to decompress, and nothing else."""
    start = time.perf_counter()
    with h5py.File(path) as file:
        for name in ("observations", "next_observations", "actions", "rewards", "terminals", "timeouts"):
            file[name][...]
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=17)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "halfcheetah_benchmark-v2.hdf5"
        write(path, arguments.steps, arguments.width)
        decompression = min(bare_read(path) for _ in range(2))
        command = [sys.executable, "-c", LOAD, str(path)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    elapsed, memory, episodes = (float(x) for x in result.stdout.split())
    print(
        f"{arguments.steps:,} steps, {episodes:.0f} episodes: loaded in {elapsed:.2f} s, bare decompression "
        f"{decompression:.2f} s; ratio {elapsed / decompression:.2f}; peak memory {memory:.2f}x the arrays"
    )


if __name__ == "__main__":
    main()
