"""Whose stride is it? How well the codes of DT-X tell the two agents of a medium-expert set apart.

    python benchmarks/codes.py walker2d-medium-expert --episodes 400 [--steps 5000] [--seeds 2] [--mode joint]

Encoders that learn without the policy (DT-AE and DT-CPC, mode `frozen`), beside its loss (`joint`) and by its loss
alone (DT-E2E), `cpu` preset.
Then the codes of windows of 20 states: of how many windows of other episodes a linear fit, and the 15 nearest codes,
name the agent rightly. A medium-expert set that himatch made begins with the medium agent's episodes.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from scipy.spatial import cKDTree

import himatch as hm
from himatch.datagen.cache import cached_dataset
from himatch.methods.dtx import EncoderMethod

EVERY = 17  # steps between windows, a number that strides are no multiple of
NEIGHBOURS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a medium-expert set that himatch makes")
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--m", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--methods", nargs="+", default=["dt-ae", "dt-cpc", "dt-e2e"])
    parser.add_argument("--mode", choices=["frozen", "joint"], default="frozen", help="of DT-AE and DT-CPC")
    arguments = parser.parse_args()
    data = hm.load_dataset(cached_dataset(arguments.data, episodes=arguments.episodes))
    split = hm.random_split(data)
    print(f"{Path(data.source).name}, training side sha256 {split.train.content_hash[:16]}, torch {torch.__version__}")
    for name in arguments.methods:
        for m in arguments.m:
            mode = {} if name == "dt-e2e" else {"mode": arguments.mode, "pretrain_steps": arguments.steps}
            method = hm.make_method(name, m=m, **mode)
            with tempfile.TemporaryDirectory() as folder:
                steps = 1 if mode.get("mode") == "frozen" else arguments.steps  # the policy does not matter
                policy = hm.train(
                    method,
                    split,
                    out=Path(folder) / "run",
                    preset="cpu",
                    steps=steps,
                    seeds=arguments.seeds,
                    quiet=True,
                    temperature=0.0,  # nor does how it acts
                )
                shown = codes_of(policy, [data[i] for i in split.train_index], split.train_index >= len(data) // 2)
                queried = codes_of(policy, list(split.held_out), split.held_out_index >= len(data) // 2)
            constant = max(queried[1].mean(), 1 - queried[1].mean())
            found = np.array([accuracies(k, shown, queried) for k in range(arguments.seeds)])
            linear, nearest = found.mean(0)
            title = " ".join([name, *([] if name == "dt-e2e" else [arguments.mode]), f"m={m}"])
            print(f"{title}: linear {linear:.2f}, nearest {nearest:.2f} (always the same: {constant:.2f})", flush=True)


def codes_of(policy: hm.Policy, episodes: list[hm.Trajectory], expert: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes ``(K, windows, m)`` and whether the window is the expert's."""
    method, normalizers = policy.method, policy.normalizers
    assert isinstance(method, EncoderMethod)
    codes, labels = [], []
    for episode, label in zip(episodes, expert, strict=True):
        states = (torch.tensor(episode.observations) - normalizers.state_mean) / normalizers.state_std
        if len(states) < method.target_window:
            continue
        windows = states.unfold(0, method.target_window, EVERY).transpose(1, 2)
        with torch.no_grad():
            codes.append(policy.agent.codes(windows.expand(len(policy.seeds), -1, -1, -1), 1)[:, :, 0].numpy())
        labels.append(np.full(len(windows), label))
    return np.concatenate(codes, axis=1), np.concatenate(labels)


def accuracies(
    model: int, shown: tuple[np.ndarray, np.ndarray], queried: tuple[np.ndarray, np.ndarray]
) -> tuple[float, float]:
    mean, std = shown[0][model].mean(0), np.maximum(shown[0][model].std(0), 1e-9)
    (x, labels), (other, truth) = (((codes[model] - mean) / std, known) for codes, known in (shown, queried))
    fit = np.linalg.lstsq(np.c_[x, np.ones(len(x))], 2.0 * labels - 1.0, rcond=None)[0]
    linear = np.c_[other, np.ones(len(other))] @ fit > 0
    near = labels[cKDTree(x).query(other, NEIGHBOURS)[1]].mean(1) > 0.5
    return float((linear == truth).mean()), float((near == truth).mean())


if __name__ == "__main__":
    main()
