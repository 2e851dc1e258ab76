"""Training speed: gradient steps a second of himatch, and of Hugging Face's Decision Transformer of the same size.

    python benchmarks/training.py [--device cuda] [--seconds 5] [--stacks 1 4 16] [--methods cdt bdt] [--preset paper]

Data are random (HalfCheetah's widths, a million steps by default): the speed does not depend on what they hold.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from measuring import ACTION, OBSERVATION, machine, rate, their_model

import himatch as hm
from himatch.methods.making import make_agent
from himatch.methods.paper import make_method
from himatch.tasks import Task
from himatch.training.config import configure
from himatch.training.engine import Engine
from himatch.training.job import Job
from himatch.training.windows import make_windows


def dataset(steps: int) -> hm.TrajectoryDataset:
    rng = np.random.default_rng(0)
    episodes = steps // 1000
    arrays = {
        "observations": rng.normal(size=(episodes * 1000, OBSERVATION)).astype(np.float32),
        "actions": rng.uniform(-1, 1, size=(episodes * 1000, ACTION)).astype(np.float32),
        "lengths": np.full(episodes, 1000),
    }
    task = Task("benchmark", 1000, OBSERVATION, ACTION, -1.0, 1.0, features={"x_velocity": 8})
    return hm.load_dataset(arrays, task)


def engine(data: hm.TrajectoryDataset, name: str, preset: str, stack: int, device: torch.device, **how: bool) -> Engine:
    method = make_method(name, **({"feature": "x_velocity"} if name in ("cdt", "dt") else {}))
    config = configure(preset)
    job = Job.prepare(method, hm.data.named_split(data, "none"), config, tuple(range(stack)), Path("unused"))
    with job.relabelled() as (z, _):
        windows = make_windows(job.train, z, job.shape, job.normalizers(z), device)
    agent = make_agent(method, config.model, job.widths, job.seeds).to(device)
    return Engine(agent, windows, config.train, device, **how)


def hugging_face(batch: int, context: int, device: torch.device, seconds: float) -> float:
    """The reference implementation in a plain training loop, batch already on the device."""
    model = their_model(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-4)
    states = torch.randn(batch, context, OBSERVATION, device=device)
    actions = torch.rand(batch, context, ACTION, device=device) * 2 - 1
    returns = torch.rand(batch, context, 1, device=device)
    times = torch.arange(context, device=device).expand(batch, -1)
    mask = torch.ones(batch, context, device=device)

    def step() -> None:
        output = model(
            states=states,
            actions=actions,
            rewards=returns,
            returns_to_go=returns,
            timesteps=times,
            attention_mask=mask,
            return_dict=False,
        )
        loss = (output[1] - actions).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()

    for _ in range(3):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        step()
        done += 1
    if device.type == "cuda":
        torch.cuda.synchronize()
    return done / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--steps", type=int, default=1_000_000, help="size of the dataset")
    parser.add_argument("--stacks", type=int, nargs="+", default=[1])
    parser.add_argument("--methods", nargs="+", default=["cdt"])
    parser.add_argument("--preset", nargs="+", default=["paper"])
    parser.add_argument("--eager", action="store_true", help="do not compile")
    parser.add_argument("--reference", action="store_true", help="also time Hugging Face's model")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    print(f"{machine(device)}, torch {torch.__version__}, dataset of {arguments.steps:,} steps", flush=True)
    data = dataset(arguments.steps)
    for preset in arguments.preset:
        for method in arguments.methods:
            for stack in arguments.stacks:
                if device.type == "cuda":
                    torch.cuda.reset_peak_memory_stats()
                start = time.perf_counter()
                made = engine(data, method, preset, stack, device, compiled=not arguments.eager)
                next(made.run(1))
                ready = time.perf_counter() - start
                speed = rate(made, arguments.seconds)
                memory = f", {torch.cuda.max_memory_allocated() / 1e9:.2f} GB" if device.type == "cuda" else ""
                print(
                    f"{preset} {method} x{stack}: {speed:,.1f} steps/s, {speed * stack:,.1f} model-steps/s "
                    f"({made.how}{memory}, first step after {ready:.0f} s)",
                    flush=True,
                )
                del made
    if arguments.reference:
        speed = hugging_face(64, 20, device, arguments.seconds)
        print(f"Hugging Face DecisionTransformerModel, paper size: {speed:,.1f} steps/s")


if __name__ == "__main__":
    main()
