"""An exported policy in onnxruntime beside himatch's own controller: latency of one action on one core.

    python benchmarks/export.py [--calls 400] [--presets cpu fast paper]

HalfCheetah, CDT on the x-velocity and BDT with random weights, which are as fast as any. Both sides keep their own
context and get the same observations, in turns of 20, so that whatever else the machine does meets both.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from harness import OBSERVATION, random_policy
from numpy.typing import NDArray

import himatch as hm

ROUNDS, TURN = 5, 20  # of calls
Act = Callable[[int, NDArray[np.float32]], NDArray[np.float32]]


def exported(policy: hm.Policy, episode: hm.Trajectory, path: Path) -> Act:
    """The loop a robot would run."""
    print(f"  {hm.export_onnx(policy, path)}, {path.stat().st_size / 1e6:.1f} MB", flush=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    shapes = {port["name"]: port["shape"] for port in json.loads(session.get_modelmeta().custom_metadata_map["inputs"])}
    windows = {name: np.zeros((1, *shape), np.float32) for name, shape in shapes.items() if shape}
    rng = np.random.default_rng(0)
    table = policy.statistic(episode) if isinstance(policy.statistic, hm.InformationStatistic) else None

    def act(step: int, seen: NDArray[np.float32]) -> NDArray[np.float32]:
        for name, window in windows.items():
            if name == "target_states":
                window[0] = episode.observations[np.minimum(step + np.arange(window.shape[1]), len(episode) - 1)]
            elif name == "noise":
                window[0] = rng.standard_normal(window.shape[1])
            else:
                window[:, :-1] = window[:, 1:]
        windows["states"][:, -1], windows["actions"][:, -1] = seen, 0.0
        if table is not None:
            windows["z"][:, -1] = table[min(step, len(table) - 1)]
        found: NDArray[np.float32] = session.run(["action"], {**windows, "step": np.array([step])})[0][0]
        windows["actions"][:, -1] = found
        return found

    return act


def latencies(sides: dict[str, Act], calls: int) -> dict[str, NDArray[np.float64]]:
    """Medians of one call in milliseconds, one for each of ``ROUNDS`` stretches of turns."""
    rows = np.random.default_rng(0).normal(3, 3, (TURN, OBSERVATION)).astype(np.float32)
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(-1, ROUNDS * calls // TURN):
        for name, act in sides.items():
            for i, row in enumerate(rows):
                start = time.perf_counter()
                act((turn + 1) * TURN + i, row)
                if turn >= 0:  # the first one warms up
                    taken[name].append((time.perf_counter() - start) * 1e3)
    return {name: np.median(np.array(found).reshape(ROUNDS, -1), axis=1) for name, found in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", default=["cpu", "fast", "paper"])
    parser.add_argument("--calls", type=int, default=400, help="of each side in each of five rounds")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"one core, torch {torch.__version__}, onnxruntime {onnxruntime.__version__}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for method in (hm.CDT("x_velocity"), hm.BDT()):
            for preset in arguments.presets:
                policy, episode = random_policy(method, preset, Path(folder), episodes=20)
                print(f"{method.name} {preset}", flush=True)
                controller = policy.controller(episode)
                sides: dict[str, Act] = {
                    "himatch": lambda _, seen, controller=controller: controller.act(seen),  # type: ignore[misc]
                    "onnxruntime": exported(policy, episode, Path(folder) / "policy.onnx"),
                }
                medians = latencies(sides, arguments.calls)
                ratios = medians["himatch"] / medians["onnxruntime"]
                for name, found in medians.items():
                    print(f"  {name}: {np.median(found):.3f} ms ({found.min():.3f} to {found.max():.3f})")
                print(f"  ratio {np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})", flush=True)


if __name__ == "__main__":
    main()
