"""The contestants of ``peers.py``: each is built and warmed up once, then measured as often as it is asked to be.

All have a return-conditioned Decision Transformer of the paper's size: 3 layers, width 128, one head, N = 20, dropout
0.1. All train on the same data by batches of 64 windows, drawn anew for every step unless the name says otherwise.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from harness import ACTION, OBSERVATION, random_policy, rate, their_batch, their_model
from numpy.typing import NDArray
from rollouts import hugging_face, one_environment
from training import dataset, given_batch, make_update, steps_a_second, their_step

import himatch as hm
from himatch._runtime.products import wide_products
from himatch.tasks.notices import quiet_loading

BATCH, CONTEXT, SPEED = 64, 20, 8  # the reward is a column of the observations, the velocity
TRAINING, EVALUATION = "training", "evaluation"


@dataclass(frozen=True)
class Setting:
    """Where is measured, on how many steps of data, with rollouts of what length; a folder for runs."""

    device: str
    folder: Path
    steps: int = 200_000
    length: int = 1000

    @property
    def on(self) -> torch.device:
        """The device for PyTorch."""
        return torch.device(self.device)


@dataclass(frozen=True)
class Contestant:
    """Who is ready: ``measure`` works for so many seconds and says how many steps it makes in one."""

    measure: Callable[[float], float]
    how: str
    precision: str
    parameters: int
    models: int = 1


def single_precision(device: torch.device) -> str:
    """What products of single-precision numbers are rounded to here."""
    if device.type == "cpu":
        return "float32"
    return {"highest": "float32", "high": "TF32", "medium": "bfloat16"}[torch.get_float32_matmul_precision()]


def size(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


# -- training -------------------------------------------------------------------------------------------------------


def our_training(setting: Setting, stack: int) -> Contestant:
    update = make_update(dataset(setting.steps), "dt", "paper", stack, setting.on, compiled=True)
    next(update.run(1))
    precision = "bfloat16, weights float32" if setting.on.type == "cuda" else "float32"
    return Contestant(
        lambda seconds: stack * rate(update, seconds), update.how, precision, update.flat.master.numel(), stack
    )


def their_training(setting: Setting, drawn: bool = True, tuned: bool = False, wide: bool = False) -> Contestant:
    """Hugging Face's model in a plain loop over batches.

    ``tuned``: what a user can gain by two lines of PyTorch; ``wide``: with the products that ours have on a CPU.
    """
    model, device = their_model(setting.on).train(), setting.on
    forward = None
    if tuned:
        forward = torch.autocast(device.type, torch.bfloat16)(torch.compile(model, mode="reduce-overhead"))
    step, kept = their_step(model, forward), given_batch(BATCH, CONTEXT, device)
    episodes, rng = returns_of(dataset(setting.steps)), np.random.default_rng(0)

    def once() -> None:
        if drawn:
            windows, times = their_batch(episodes, BATCH, CONTEXT, rng)
            step(*(array.to(device) for array in (*windows, times)))
        else:
            step(*kept)

    def measure(seconds: float) -> float:
        with wide_products() if wide else nullcontext():
            return steps_a_second(once, device, seconds)

    measure(0)
    if tuned:
        return Contestant(measure, "torch.compile, CUDA graphs", "bfloat16 by autocast", size(model))
    return Contestant(measure, "eager", single_precision(device), size(model))


def returns_of(data: hm.TrajectoryDataset) -> list[tuple[NDArray[Any], ...]]:
    """States of unit size, actions and returns to come divided by 1000, added up once."""
    mean, std = data.observations.mean(0), data.observations.std(0)
    return [
        (
            (episode.observations - mean) / std,
            episode.actions,
            np.cumsum(episode.observations[::-1, SPEED])[::-1, None] / 1000,
        )
        for episode in data
    ]


class _Enough(Exception):  # noqa: N818 - it is no error
    """Ends a fit of d3rlpy, which knows steps but no seconds."""


def d3rlpy_training(setting: Setting, compiled: bool = False) -> Contestant:
    """Its own trainer with the settings of its published runs, without files and progress bar."""
    import d3rlpy

    data = dataset(setting.steps)
    ends = np.zeros(len(data.observations), np.float32)
    ends[np.cumsum([len(episode) for episode in data]) - 1] = 1
    theirs = d3rlpy.dataset.MDPDataset(
        data.observations,
        data.actions,
        rewards=data.observations[:, SPEED].copy(),
        terminals=np.zeros_like(ends),
        timeouts=ends,
    )
    algorithm = d3rlpy_model(setting, data, compiled)

    def measure(seconds: float) -> float:
        ticks: list[float] = []

        def tick(*_: object) -> None:
            ticks.append(time.perf_counter())
            if len(ticks) > 4 and ticks[-1] - ticks[3] >= seconds:
                raise _Enough

        try:
            algorithm.fit(
                theirs,
                n_steps=10**9,
                logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
                show_progress=False,
                callback=tick,
            )
        except _Enough:
            return (len(ticks) - 4) / (ticks[-1] - ticks[3])
        raise AssertionError("unreachable: it has more steps than anybody has time")

    measure(0)
    how = "torch.compile and CUDA graph" if algorithm.compiled else "eager"
    return Contestant(measure, how, single_precision(setting.on), size(algorithm.impl.modules.transformer))


def d3rlpy_model(setting: Setting, data: hm.TrajectoryDataset, compiled: bool = False) -> Any:
    import d3rlpy

    config = d3rlpy.algos.DecisionTransformerConfig(
        batch_size=BATCH,
        context_size=CONTEXT,
        max_timestep=1000,
        learning_rate=1e-4,
        encoder_factory=d3rlpy.models.VectorEncoderFactory([128], exclude_last_activation=True),  # a linear embedding
        optim_factory=d3rlpy.optimizers.AdamWFactory(weight_decay=1e-4, clip_grad_norm=0.25),
        observation_scaler=d3rlpy.preprocessing.StandardObservationScaler(
            mean=data.observations.mean(0), std=data.observations.std(0)
        ),
        reward_scaler=d3rlpy.preprocessing.MultiplyRewardScaler(0.001),
        num_layers=3,
        num_heads=1,
        attn_dropout=0.1,
        resid_dropout=0.1,
        embed_dropout=0.1,
        compile_graph=compiled,
    )
    algorithm = config.create(device="cuda:0" if setting.on.type == "cuda" else "cpu:0")
    algorithm.create_impl((OBSERVATION,), ACTION)
    return algorithm


# -- evaluation: rollouts of HalfCheetah-v5 under a return that counts down -----------------------------------------


def our_rollouts(setting: Setting, episodes: int) -> Contestant:
    """``Policy.match``, whole: simulations, policy and the comparison with the target."""
    folder = setting.folder / f"{episodes}"
    policy = random_policy(hm.DT(), "paper", folder, episodes=2, device=setting.device)[0]
    target = f"return(6000, within={setting.length})"

    def measure(seconds: float) -> float:
        start, steps = time.perf_counter(), 0
        while not steps or time.perf_counter() - start < seconds:
            result = policy.match(target, episodes=episodes, conditioning="remaining")
            steps += int(result.lengths.sum())
        return steps / (time.perf_counter() - start)

    measure(0)
    how = "CUDA graph" if setting.on.type == "cuda" else "last token, eager"
    return Contestant(measure, how, single_precision(setting.on), 0)


def their_rollouts(setting: Setting) -> Contestant:
    """The loop of public Decision Transformers: one environment, one forward pass of Hugging Face's model a step."""
    torch.set_num_threads(1)  # faster than several
    forward = hugging_face(setting.on)

    def measure(seconds: float) -> float:
        rates: list[float] = []
        while sum(setting.length / found for found in rates) < seconds or not rates:
            rates.append(one_environment(forward, CONTEXT, setting.length, setting.on))
        return statistics.harmonic_mean(rates)

    one_environment(forward, CONTEXT, min(100, setting.length), setting.on)
    return Contestant(measure, "eager", single_precision(setting.on), 0)


def d3rlpy_rollouts(setting: Setting) -> Contestant:
    """Its own evaluation of a stateful wrapper in one environment."""
    import d3rlpy

    torch.set_num_threads(1)  # faster than several
    player = d3rlpy_model(setting, dataset(1000)).as_stateful_wrapper(target_return=6000)
    evaluate = d3rlpy.metrics.evaluate_transformer_with_environment

    def measure(seconds: float) -> float:
        start, steps = time.perf_counter(), 0
        while not steps or time.perf_counter() - start < seconds:
            evaluate(player, env, n_trials=1)
            steps += setting.length
        return steps / (time.perf_counter() - start)

    with quiet_loading():
        env = gymnasium.make("HalfCheetah-v5", max_episode_steps=min(100, setting.length))
        evaluate(player, env, n_trials=1)
        env = gymnasium.make("HalfCheetah-v5", max_episode_steps=setting.length)
    return Contestant(measure, "eager", single_precision(setting.on), 0)


Build = Callable[[Setting], Contestant]

PARTS: dict[str, dict[str, Build]] = {
    TRAINING: {
        "himatch": partial(our_training, stack=1),
        "himatch, 4 stacked": partial(our_training, stack=4),
        "himatch, 16 stacked": partial(our_training, stack=16),
        "Hugging Face": their_training,
        "Hugging Face, himatch's products": partial(their_training, wide=True),
        "Hugging Face, one batch given": partial(their_training, drawn=False),
        "Hugging Face, one batch given, compiled": partial(their_training, drawn=False, tuned=True),
        "d3rlpy": d3rlpy_training,
        "d3rlpy, compile_graph": partial(d3rlpy_training, compiled=True),
    },
    EVALUATION: {
        "himatch, 1 episode": partial(our_rollouts, episodes=1),
        "himatch, 64 episodes": partial(our_rollouts, episodes=64),
        "Hugging Face": their_rollouts,
        "d3rlpy": d3rlpy_rollouts,
    },
}
ONLY = {
    "himatch, 16 stacked": "cuda",
    "Hugging Face, himatch's products": "cpu",
    "Hugging Face, one batch given, compiled": "cuda",
    "d3rlpy, compile_graph": "cuda",
}
NEEDS = {"Hugging Face": "transformers", "d3rlpy": "d3rlpy"}
