"""Histogram relabelling of a million steps against the paper's step-by-step recursion.

    python benchmarks/relabelling.py [--steps 1000000] [--episode 1000]

The recursion is timed on a part of the data and scaled up; both run in this process, on one thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import himatch as hm
from himatch.statistics.aggregators import Histogram
from himatch.statistics.features import Coordinates
from himatch.tasks import Task


def recursion(phi: np.ndarray, aggregator: Histogram) -> np.ndarray:
    """z(t) proportional to onehot(phi_t) + z(t + 1), one step at a time, each step binned by NumPy."""
    edges = aggregator.bins.edges[0]
    z = np.zeros((len(phi), aggregator.count), dtype=np.float32)
    rest = np.zeros(aggregator.count)
    for t in range(len(phi) - 1, -1, -1):
        rest = np.histogram(phi[t], bins=edges)[0] + rest
        z[t] = rest / rest.sum()
    return z


def lean_recursion(phi: np.ndarray, aggregator: Histogram) -> np.ndarray:
    """The same with all steps binned beforehand: the fastest that a loop over steps in Python gets."""
    indices = aggregator.bins.indices(phi)[:, 0]
    z = np.zeros((len(phi), aggregator.count), dtype=np.float32)
    rest = np.zeros(aggregator.count, dtype=np.float32)
    for t in range(len(phi) - 1, -1, -1):
        rest[indices[t]] += 1.0
        z[t] = rest
        z[t] /= len(phi) - t
    return z


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--episode", type=int, default=1000)
    arguments = parser.parse_args()
    episodes = arguments.steps // arguments.episode
    rng = np.random.default_rng(0)
    arrays = {
        "observations": rng.normal(size=(episodes * arguments.episode, 1)).astype(np.float32),
        "actions": np.zeros((episodes * arguments.episode, 1), dtype=np.float32),
        "lengths": np.full(episodes, arguments.episode),
    }
    data = hm.load_dataset(arrays, Task("benchmark", arguments.episode))
    statistic = hm.InformationStatistic(Coordinates("x", (0,)), Histogram()).fit(data)

    times = []
    for _ in range(3):
        start = time.perf_counter()
        z = statistic.relabel(data)
        times.append(time.perf_counter() - start)
    fast = min(times)

    part = max(1, min(episodes, 20_000 // arguments.episode))
    print(f"{data.steps:,} steps x 31 bins in episodes of {arguments.episode}: {fast:.3f} s")
    for loop in (recursion, lean_recursion):
        start = time.perf_counter()
        slow = np.concatenate([loop(t.observations, statistic.aggregator) for t in data[:part]])  # type: ignore[arg-type]
        scaled = (time.perf_counter() - start) * episodes / part
        # NumPy's edges and ours may differ by rounding, so a few values in a million may change bins.
        assert np.mean(np.abs(z[: len(slow)] - slow) > 1e-6) < 1e-3
        print(f"{loop.__name__.replace('_', ' ')}: {scaled:.1f} s, ratio {scaled / fast:.0f}x")


if __name__ == "__main__":
    main()
