"""How far one has to read: files and functions of himatch that a piece of work enters, counted while it runs.

    python benchmarks/step_files.py            one eager training step of a CDT, and the three walks

The walks: from a batch to a gradient, from a target to its W1, from a row of a suite to the cell of a table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import torch

import himatch as hm

PACKAGE = str(Path(hm.__file__).parent)


def entered(work: Callable[[], Any]) -> tuple[list[str], int]:
    """Files of himatch whose functions ``work`` calls, and how many different functions those are."""
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            seen.add(frame.f_code)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    files = {str(Path(code.co_filename).relative_to(PACKAGE)) for code in seen}
    return sorted(files), len({code for code in seen if not code.co_name.startswith("<")})


def episodes(count: int = 40) -> hm.TrajectoryDataset:
    """Random steps in the shape of Hopper's."""
    rng = np.random.default_rng(0)
    made = [
        hm.Trajectory(rng.normal(size=(60, 11)), rng.uniform(-1, 1, size=(60, 3)), rng.normal(size=60))
        for _ in range(count)
    ]
    return hm.load_dataset(made, "hopper")


def training_step(folder: Path) -> Callable[[], Any]:
    """The third step of a training: sampled and updated, without what the loop around it logs."""
    from himatch.api import as_split
    from himatch.training import make_plan
    from himatch.training.sampler import make_sampler
    from himatch.training.update import Update

    plan = make_plan(
        hm.CDT("x_velocity"), lambda: as_split(episodes(), None, None), out=folder, preset="cpu", device="cpu"
    )
    with plan.relabelled() as (z, _):
        sampler = make_sampler(plan.trained_on, z, plan.spec, plan.normalizers(z), plan.device)
    agent = plan.method.build(plan.model, plan.dims, plan.seeds)
    steps = Update(agent, sampler, plan.stages[-1], plan.config, plan.device).run(10)
    next(steps), next(steps)
    return lambda: next(steps)


def batch_to_gradient(folder: Path) -> Callable[[], Any]:
    """From a file of logs to the first gradient step of a CDT."""
    source = folder / "logs.npz"
    data = episodes()
    np.savez(
        source,
        observations=data.observations,
        actions=data.actions,
        rewards=data.rewards if data.rewards is not None else [],
        lengths=data.lengths,
    )
    return lambda: hm.train(
        hm.CDT("x_velocity"),
        source,
        task="hopper",
        out=folder / "run",
        preset="cpu",
        steps=1,
        device="cpu",
        quiet=True,
        temperature=0.0,
    )


def target_to_w1() -> Callable[[], Any]:
    """From the text of a target to the W1 of two rollouts."""
    policy = hm.load("hopper-cdt")
    return lambda: policy.match("normal(2, 0.3)", episodes=2).w1


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files, functions = entered(training_step(folder / "step"))
        print(f"one eager training step: {len(files)} files, {functions} functions")
        print("  " + "  ".join(files))
        for name, work in {
            "logs to gradient": batch_to_gradient(folder),
            "target to W1": target_to_w1(),
        }.items():
            files, functions = entered(work)
            print(f"{name}: {len(files)} files, {functions} functions")


if __name__ == "__main__":
    main()
