"""Conditional rollouts: seconds for a whole evaluation, beside a loop over one environment; a controller's latency.

    python benchmarks/rollouts.py [--device cuda] [--targets 10] [--episodes 20] [--steps 1000] [--preset paper]
                                  [--reference] [--latency] [--mkl]

HalfCheetah, CDT on the x-velocity with random weights, which are as fast as any. ``--steps`` is the length of targets
and rollouts; all of matching is timed, from the targets to W1. ``--reference`` times, in the same run, the evaluation
loop of public Decision Transformers: one Gymnasium environment, histories that grow by concatenation, one forward pass
of a model of paper size for every step (Hugging Face's where ``transformers`` is installed, else ours). ``--latency``
is the time of one ``controller.act`` on one core. ``--mkl`` evaluates once more with products by MKL alone.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import torch
from harness import ACTION, OBSERVATION, machine, random_policy, their_model
from torch import Tensor

import himatch as hm
from himatch.methods.batch import Dims
from himatch.tasks.notices import quiet_loading
from himatch.training import configure

Forward = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def make_policy(preset: str, folder: str, device: str = "cpu") -> hm.Policy:
    return random_policy(hm.CDT("x_velocity"), preset, Path(folder), episodes=100, device=device)[0]


def whole_evaluation(policy: hm.Policy, targets: int, episodes: int, steps: int, threads: int) -> float:
    """Seconds for matching that many targets."""
    rng = np.random.default_rng(0)
    targeted = [rng.normal(mean, 1, steps) for mean in np.linspace(0, 6, targets)]
    start = time.perf_counter()
    results = policy.match_all(targeted, episodes=episodes, threads=threads)
    assert np.isfinite([result.w1 for result in results]).all()
    return time.perf_counter() - start


def hugging_face(device: torch.device) -> Forward:
    model = their_model(device).eval()

    def forward(states: Tensor, actions: Tensor, returns: Tensor, times: Tensor, mask: Tensor) -> Tensor:
        found: Tensor = model(
            states=states,
            actions=actions,
            rewards=returns,
            returns_to_go=returns,
            timesteps=times,
            attention_mask=mask,
            return_dict=False,
        )[1][0, -1]
        return found

    return forward


def our_model(device: torch.device) -> Forward:
    method = hm.DT()
    model, _ = configure("paper", method)
    agent = method.build(model, Dims(OBSERVATION, ACTION, 1, 1000), (0,)).to(device).eval()

    def forward(states: Tensor, actions: Tensor, returns: Tensor, times: Tensor, mask: Tensor) -> Tensor:
        return torch.tanh(agent.policy(returns[None], states[None], actions[None], times[None])[0, 0, -1])

    return forward


def one_environment(forward: Forward, context: int, steps: int, device: torch.device) -> float:
    """Steps a second of the loop of public Decision Transformers (kzl's ``evaluate_episode_rtg``)."""
    with quiet_loading():
        env = gymnasium.make("HalfCheetah-v5")
    mean, std = torch.zeros(OBSERVATION, device=device), torch.ones(OBSERVATION, device=device)

    def cut(rows: Tensor, width: int) -> Tensor:
        """The last N rows, padded on the left."""
        kept = rows.reshape(1, -1, width)[:, -context:]
        return torch.cat([torch.zeros(1, context - kept.shape[1], width, device=device, dtype=rows.dtype), kept], dim=1)

    seen, _ = env.reset(seed=0)
    states = torch.from_numpy(seen).reshape(1, OBSERVATION).to(device, torch.float32)
    actions = torch.zeros((0, ACTION), device=device)
    returns = torch.full((1, 1), 6.0, device=device)
    times = torch.zeros((1, 1), device=device, dtype=torch.int64)
    warm_up = min(20, steps // 4)
    start = time.perf_counter()
    with torch.no_grad():
        for step in range(steps):
            if step == warm_up:
                start = time.perf_counter()
            actions = torch.cat([actions, torch.zeros((1, ACTION), device=device)])
            known = min(step + 1, context)
            mask = torch.cat([torch.zeros(context - known), torch.ones(known)]).to(device, torch.int64).reshape(1, -1)
            action = forward(
                cut((states - mean) / std, OBSERVATION),
                cut(actions, ACTION),
                cut(returns, 1),
                cut(times, 1)[..., 0],
                mask,
            )
            actions[-1] = action
            seen, reward, *_ = env.step(action.cpu().numpy())
            row = torch.from_numpy(seen).reshape(1, OBSERVATION).to(device, torch.float32)
            states = torch.cat([states, row])
            returns = torch.cat([returns, returns[-1:] - float(reward) / 1000])
            times = torch.cat([times, torch.full((1, 1), step + 1, device=device)])
    return (steps - warm_up) / (time.perf_counter() - start)


def latencies(policy: hm.Policy, conditioning: str, calls: int) -> tuple[float, float]:
    """Median and 99th percentile of one call, in milliseconds."""
    controller = policy.controller("normal(3,1)", conditioning=conditioning)  # type: ignore[arg-type]
    rows = np.random.default_rng(0).normal(3, 3, (calls + 100, OBSERVATION))
    taken = []
    for row in rows:
        start = time.perf_counter()
        controller.act(row)
        taken.append(time.perf_counter() - start)
    p50, p99 = np.percentile(np.array(taken[100:]) * 1e3, [50, 99])
    return float(p50), float(p99)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=0, help="of the simulations; 0 takes every CPU")
    parser.add_argument("--reference", action="store_true", help="also time the loop over one environment")
    parser.add_argument("--reference-steps", type=int, default=400)
    parser.add_argument("--mkl", action="store_true", help="also time products by MKL alone (a CPU)")
    parser.add_argument("--latency", action="store_true", help="time the controller instead")
    parser.add_argument("--calls", type=int, default=2000)
    arguments = parser.parse_args()
    if arguments.reference and arguments.preset != "paper":
        parser.error("--reference is of paper size; leave --preset as it is")
    device = torch.device(arguments.device)
    print(f"{machine(device)}, torch {torch.__version__}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.latency:
            torch.set_num_threads(1)
            for preset in ("cpu", "fast", "paper"):
                policy = make_policy(preset, folder)
                for conditioning in ("nominal", "remaining"):
                    p50, p99 = latencies(policy, conditioning, arguments.calls)
                    print(f"{preset} {conditioning}: p50 {p50:.2f} ms, p99 {p99:.2f} ms", flush=True)
            return
        policy = make_policy(arguments.preset, folder, arguments.device)
        size = (arguments.targets, arguments.episodes)
        whole_evaluation(policy, *size, min(25, arguments.steps), arguments.threads)
        seconds = whole_evaluation(policy, *size, arguments.steps, arguments.threads)
        ours = arguments.targets * arguments.episodes * arguments.steps / seconds
        print(
            f"{arguments.targets} targets x {arguments.episodes} episodes x {arguments.steps} steps: {seconds:.1f} s, "
            f"{ours:,.0f} policy steps/s",
            flush=True,
        )
        if arguments.mkl:
            torch.backends.mkldnn.matmul.fp32_precision = "ieee"
            alone = whole_evaluation(policy, *size, arguments.steps, arguments.threads)
            print(f"products by MKL alone: {alone:.1f} s; ours is {alone / seconds:.2f}x")
            torch.backends.mkldnn.matmul.fp32_precision = "none"
    if arguments.reference:
        try:
            forward, model = hugging_face(device), "Hugging Face's DecisionTransformerModel"
        except ImportError:
            forward, model = our_model(device), "our model"
        theirs = one_environment(forward, 20, arguments.reference_steps, device)
        print(f"one environment, {model} of paper size: {theirs:,.0f} steps/s; ours is {ours / theirs:.1f}x")


if __name__ == "__main__":
    main()
