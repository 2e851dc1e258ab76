"""Training speed: gradient steps a second of himatch, and of Hugging Face's Decision Transformer of the same size.

    python benchmarks/training.py [--device cuda] [--seconds 5] [--stacks 1 4 16] [--methods cdt bdt] [--preset paper]

A preset may have settings of its own: ``cpu:tokens=pairs,batch_size=128``. On a GPU ``--profile`` prints the kernels
that a step spends its time in.

Data are random (HalfCheetah's sizes, a million steps by default): the speed does not depend on what they hold.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import ACTION, OBSERVATION, machine, rate, their_model
from torch import Tensor

import himatch as hm
from himatch.data import named_split
from himatch.methods import make_method
from himatch.tasks import Task
from himatch.training import make_plan
from himatch.training.sampler import make_sampler
from himatch.training.update import Update


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


def make_update(
    data: hm.TrajectoryDataset, name: str, preset: str, stack: int, device: torch.device, *, compiled: bool
) -> Update:
    method = make_method(name, **({"feature": "x_velocity"} if name in ("cdt", "dt") else {}))
    read, out = (lambda: named_split(data, "none")), Path("unused")
    base, _, changes = preset.partition(":")
    given = dict(pair.split("=") for pair in changes.split(",") if pair)
    settings = {key: int(value) if value.isdigit() else value for key, value in given.items()}
    plan = make_plan(method, read, out=out, preset=base, seeds=stack, device=device.type, **settings)
    with plan.relabelled() as (z, _):
        sampler = make_sampler(plan.trained_on, z, plan.spec, plan.normalizers(z), device)
    agent = method.build(plan.model, plan.dims, plan.seeds).to(device)
    return Update(agent, sampler, plan.stages[-1], plan.config, device, compiled=compiled)


def their_step(model: Any, forward: Callable[..., Any] | None = None) -> Callable[..., None]:
    """A gradient step of Hugging Face's model, as a plain training loop has it; ``forward`` may be it, compiled."""
    forward = forward or model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-4)

    def step(states: Tensor, actions: Tensor, returns: Tensor, times: Tensor) -> None:
        output = forward(
            states=states,
            actions=actions,
            rewards=returns,
            returns_to_go=returns,
            timesteps=times,
            attention_mask=torch.ones(times.shape, device=times.device),
            return_dict=False,
        )
        loss = (output[1] - actions).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()

    return step


def given_batch(batch: int, context: int, device: torch.device) -> tuple[Tensor, ...]:
    """States, actions, returns and times of one batch that is on the device already."""
    states = torch.randn(batch, context, OBSERVATION, device=device)
    actions = torch.rand(batch, context, ACTION, device=device) * 2 - 1
    returns = torch.rand(batch, context, 1, device=device)
    return states, actions, returns, torch.arange(context, device=device).expand(batch, -1)


def steps_a_second(step: Callable[[], None], device: torch.device, seconds: float) -> float:
    """How often a step can be made, after three of them."""
    wait = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
    for _ in range(3):
        step()
    wait()
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        step()
        done += 1
    wait()
    return done / (time.perf_counter() - start)


def profile(update: Update, most: int = 20, steps: int = 20) -> None:
    """Print the kernels of a step on a GPU, those that take longest first."""
    update._begin(0, 0)
    kinds = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=kinds) as profiled:
        for _ in range(steps):
            update._run_step()
        torch.cuda.synchronize()
    kernels = [event for event in profiled.key_averages() if event.device_type.name == "CUDA"]
    total = sum(event.self_device_time_total for event in kernels) / steps
    print(f"  {total:.0f} us a step in {sum(event.count for event in kernels) // steps} kernels, of these")
    for event in sorted(kernels, key=lambda event: -event.self_device_time_total)[:most]:
        print(f"  {event.self_device_time_total / steps:7.1f} us  x{event.count // steps}  {event.key[:100]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--steps", type=int, default=1_000_000, help="size of the dataset")
    parser.add_argument("--stacks", type=int, nargs="+", default=[1])
    parser.add_argument("--methods", nargs="+", default=["cdt"])
    parser.add_argument("--preset", nargs="+", default=["paper"])
    parser.add_argument("--eager", action="store_true", help="do not compile")
    parser.add_argument("--profile", action="store_true", help="also print the kernels of a step")
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
                update = make_update(data, method, preset, stack, device, compiled=not arguments.eager)
                next(update.run(1))
                ready = time.perf_counter() - start
                speed = rate(update, arguments.seconds)
                memory = f", {torch.cuda.max_memory_allocated() / 1e9:.2f} GB" if device.type == "cuda" else ""
                print(
                    f"{preset} {method} x{stack}: {speed:,.1f} steps/s, {speed * stack:,.1f} model-steps/s "
                    f"({update.how}{memory}, first step after {ready:.0f} s)",
                    flush=True,
                )
                if arguments.profile:
                    profile(update)
                del update
    if arguments.reference:
        step, batch = their_step(their_model(device).train()), given_batch(64, 20, device)
        speed = steps_a_second(lambda: step(*batch), device, arguments.seconds)
        print(f"Hugging Face DecisionTransformerModel, paper size: {speed:,.1f} steps/s")


if __name__ == "__main__":
    main()
