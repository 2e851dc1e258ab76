"""Whether an exported file does what the policy does: both act on the same steps, by the same noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from himatch.errors import HimatchError
from himatch.interchange.graph import samples
from himatch.policy import Policy
from himatch.rollout import make_conditioner
from himatch.rollout.limits import Bounds
from himatch.rollout.scoring import actions_on, outputs_on
from himatch.targets import demo
from himatch.types import Trajectory

TOLERANCE = 1e-4  # in units of half the action range
KEPT_EPISODES = 3  # of the run's own, at most
BLOCK = 256  # windows at a time


@dataclass(frozen=True)
class Parity:
    """Largest difference between the actions of both, in units of half the action range.

    Of discrete actions it is how much lower the policy scores, by its logits, what the file chooses.
    """

    random: float
    """Over episodes of random numbers."""
    kept: float | None
    """Over episodes that the run folder keeps; ``None`` where it keeps none."""
    windows: int

    def __str__(self) -> str:
        kept = "no episodes kept" if self.kept is None else f"{self.kept:.1e} on the run's own episodes"
        return f"largest difference {self.random:.1e} on random episodes, {kept} ({self.windows} windows)"


def check_parity(policy: Policy, path: Path, limits: tuple[Bounds, Bounds] | None = None) -> Parity:
    """Compare a file with the one seed it was made from; a difference above 1e-4 is an error.

    ``limits`` are those that the file clips observations to, where it does.
    """
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    held_out = policy.held_out
    kept = [] if held_out is None else [held_out[i] for i in range(min(KEPT_EPISODES, len(held_out)))]
    drawn = random_episodes(policy)
    random = max(_difference(policy, session, episode, drawn[i - 1], limits) for i, episode in enumerate(drawn))
    found_of_kept = (_difference(policy, session, episode, kept[i - 1], limits) for i, episode in enumerate(kept))
    own = max(found_of_kept, default=None)
    found = Parity(random, own, sum(map(len, (*drawn, *kept))))
    if not max(random, own or 0.0) <= TOLERANCE:
        raise HimatchError(
            f"onnxruntime does not agree with himatch: {found}, where {TOLERANCE:g} is allowed; no file was written"
        )
    return found


def random_episodes(policy: Policy) -> list[Trajectory]:
    """Three episodes of random numbers about as large as the data's, long enough that the context is full."""
    rng, dims, normalizers = np.random.default_rng(0), policy.agent.dims, policy.normalizers
    mean, std, middle, half = (
        t.numpy()
        for t in (normalizers.state_mean, normalizers.state_std, normalizers.action_middle, normalizers.action_half)
    )
    std = np.where(np.isfinite(std), std, 1.0)  # also what never moved in the data
    steps = 3 * policy.context + 5

    def actions() -> NDArray[np.float32]:
        drawn = rng.uniform(-1, 1, size=(steps, dims.action))
        if policy.task.discrete is not None:
            drawn = np.eye(dims.action)[drawn.argmax(axis=1)]
        return (middle + half * drawn).astype(np.float32)

    return [
        Trajectory(
            (mean + std * rng.normal(size=(steps, dims.observation))).astype(np.float32),
            actions(),
            rng.normal(size=steps).astype(np.float32),
        )
        for _ in range(3)
    ]


def windows_of(policy: Policy, episode: Trajectory, target: Trajectory) -> dict[str, NDArray[Any]]:
    """The file's inputs at every step of an episode, conditioned on the target; first axis is the step.

    Rows before the episode's start and the latest action are arbitrary: neither may matter.
    """
    steps, n, rng = len(episode), policy.context, np.random.default_rng(1)
    now = np.arange(steps)
    rows = now[:, None] + np.arange(1 - n, 1)

    def window(array: NDArray[np.float32], unknown: NDArray[np.bool_]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = array[np.clip(rows, 0, len(array) - 1)]
        found[unknown] = rng.normal(0, 10, size=(int(unknown.sum()), array.shape[1]))
        return found

    before = rows < 0
    latest = before | (rows == now[:, None])
    inputs: dict[str, NDArray[Any]] = {
        "states": window(episode.observations, before),
        "actions": window(episode.actions, latest),
        "step": now,
    }
    conditioner = make_conditioner("nominal", policy.run, policy.agent, [demo(target)], np.zeros((1, steps), np.int64))
    clock = torch.from_numpy(now)
    z, states = conditioner.z(clock[None]), conditioner.target_states(torch.zeros_like(clock), clock)
    if states is not None:
        inputs["target_states"] = states.numpy()
    if z is not None:
        inputs["z"] = window(z[0].numpy(), before)
    if samples(policy):
        inputs["noise"] = rng.standard_normal((steps, policy.agent.dims.action), np.float32)
    return inputs


def _difference(
    policy: Policy,
    session: Any,
    episode: Trajectory,
    target: Trajectory,
    limits: tuple[Bounds, Bounds] | None,
) -> float:
    inputs = windows_of(policy, episode, target)
    blocks = [
        session.run(["action"], {name: array[i : i + BLOCK] for name, array in inputs.items()})[0]
        for i in range(0, len(episode), BLOCK)
    ]
    if limits is not None:
        episode = replace(episode, observations=np.clip(episode.observations, *limits))
    noise, found = (
        np.float32(policy.temperature) * inputs["noise"] if "noise" in inputs else None,
        np.concatenate(blocks),
    )
    if policy.task.discrete is not None:
        drawn = None if noise is None else torch.from_numpy(noise)
        logits = outputs_on(policy.run, policy.agent, episode, target)[0]
        scores = policy.agent.policy.scores(logits, drawn, policy.temperature).numpy()
        return float((scores.max(axis=1) - (scores * found).sum(axis=1)).max())
    expected = actions_on(policy.run, policy.agent, episode, target, noise, policy.temperature)[0]
    half = policy.normalizers.action_half.numpy()
    return float(np.abs((found - expected) / half).max())
