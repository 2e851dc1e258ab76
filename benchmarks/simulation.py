"""Environment steps a second: one Gymnasium environment, Gymnasium's SyncVectorEnv, and himatch's simulator.

    python benchmarks/simulation.py [--count 64] [--seconds 2] [--threads 0] [--tasks halfcheetah hopper]

Random actions; episodes that end are started again, which is part of the time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import gymnasium
import numpy as np

from himatch.simulation import make_simulator
from himatch.tasks import Task, get_task
from himatch.tasks.notices import quiet_loading

TASKS = ("halfcheetah", "hopper", "walker2d", "ant")


def rate(step: Callable[[], int], seconds: float) -> float:
    """Steps a second of something that says how many it has done."""
    for _ in range(5):
        step()
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        done += step()
    return done / (time.perf_counter() - start)


def make_env(task: Task) -> gymnasium.Env:
    assert task.env_id is not None
    with quiet_loading():
        return gymnasium.make(task.env_id, **task.env_kwargs)


def single(task: Task) -> Callable[[], int]:
    env, rng = make_env(task), np.random.default_rng(0)
    width = env.action_space.shape[0]
    env.reset(seed=0)

    def step() -> int:
        for action in rng.uniform(-1, 1, (64, width)).astype(np.float32):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return 64

    return step


def vector(task: Task, count: int) -> Callable[[], int]:
    envs = gymnasium.vector.SyncVectorEnv([lambda: make_env(task)] * count)
    rng, shape = np.random.default_rng(0), envs.action_space.shape
    envs.reset(seed=0)

    def step() -> int:
        envs.step(rng.uniform(-1, 1, shape).astype(np.float32))
        return count

    return step


def batched(task: Task, count: int, threads: int) -> Callable[[], int]:
    simulator = make_simulator(task, count, threads=threads)
    rng, shape = np.random.default_rng(0), (count, simulator.action_width)
    simulator.reset(range(count))

    def step() -> int:
        _, _, terminated, truncated = simulator.step(rng.uniform(-1, 1, shape).astype(np.float32))
        ended = np.flatnonzero(terminated | truncated)
        if ended.size:
            simulator.reset(ended.tolist(), ended.tolist())
        return count

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    arguments = parser.parse_args()
    print(f"{'task':12} {'one env':>9} {'SyncVectorEnv':>14} {'himatch':>9}   himatch / one, / SyncVectorEnv")
    for name in arguments.tasks:
        task = get_task(name)
        one = rate(single(task), arguments.seconds)
        sync = rate(vector(task, arguments.count), arguments.seconds)
        ours = rate(batched(task, arguments.count, arguments.threads), arguments.seconds)
        print(f"{name:12} {one:9,.0f} {sync:14,.0f} {ours:9,.0f}   {ours / one:.2f}x, {ours / sync:.2f}x")


if __name__ == "__main__":
    main()
