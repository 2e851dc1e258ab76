"""The harness of several of these scripts: the machine, the rate of a training, policies of a size, others' batches."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import himatch as hm
from himatch.training import configure
from himatch.training.update import Update

OBSERVATION, ACTION = 17, 6  # HalfCheetah's sizes


def machine(device: torch.device) -> str:
    """What runs here, in words."""
    return torch.cuda.get_device_name() if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"


def rate(update: Update, seconds: float) -> float:
    """Steps a second, after compilation and warm-up."""
    running = update.run(10**9)
    for _ in range(2):
        next(running)
    start, first = time.perf_counter(), update.step
    while time.perf_counter() - start < seconds:
        next(running)
    return (update.step - first) / (time.perf_counter() - start)


def random_policy(
    method: hm.methods.Method, preset: str, folder: Path, *, episodes: int, device: str = "cpu"
) -> tuple[hm.Policy, hm.Trajectory]:
    """A policy for HalfCheetah, one step after its random start, and one of the random episodes it has seen."""
    rng, steps = np.random.default_rng(0), 1000 * episodes
    arrays = {
        "observations": rng.normal(3, 3, size=(steps, OBSERVATION)).astype(np.float32),
        "actions": rng.uniform(-1, 1, size=(steps, ACTION)).astype(np.float32),
        "rewards": rng.normal(size=steps).astype(np.float32),
        "lengths": np.full(episodes, 1000),
    }
    data, out = hm.load_dataset(arrays, "halfcheetah"), folder / f"{method.name}-{preset}"
    stochastic = configure(preset, method)[0].head != "tanh"
    temperature = 1.0 if stochastic else None  # given, so that no rollouts select it
    hm.train(method, data, out=out, preset=preset, steps=1, temperature=temperature, device="cpu", quiet=True)
    return hm.load(out, device=device), data[0]


def their_model(device: torch.device) -> Any:
    """Hugging Face's Decision Transformer of the paper's size, for HalfCheetah."""
    from transformers import DecisionTransformerConfig, DecisionTransformerModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tokens that it does not have
        config = DecisionTransformerConfig(
            state_dim=OBSERVATION,
            act_dim=ACTION,
            hidden_size=128,
            max_ep_len=1000,
            n_layer=3,
            n_head=1,
            n_positions=1024,
            bos_token_id=None,
            eos_token_id=None,
        )
    return DecisionTransformerModel(config).to(device)


def their_batch(
    episodes: Sequence[tuple[NDArray[Any], ...]], batch: int, context: int, rng: np.random.Generator
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Windows as training loops of theirs draw them, with NumPy: of every array of an episode, and their times."""
    lengths = np.array([len(arrays[0]) for arrays in episodes])
    chosen = rng.choice(len(episodes), batch, p=lengths / lengths.sum())
    rows = rng.integers(lengths[chosen] - context + 1)[:, None] + np.arange(context)
    columns = range(len(episodes[0]))
    windows = [np.stack([episodes[e][i][r] for e, r in zip(chosen, rows, strict=True)]) for i in columns]
    return [torch.tensor(window, dtype=torch.float32) for window in windows], torch.from_numpy(rows)
