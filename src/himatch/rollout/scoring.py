"""A policy beside logged episodes, without any environment: its actions, their error, and whether z matters to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch.data import TrajectoryDataset
from himatch.errors import HimatchError
from himatch.methods import Agent
from himatch.rollout.checks import check_target
from himatch.rollout.conditioners import make_conditioner
from himatch.rollout.episodes import check_episode, logged_episodes
from himatch.rollout.logged import logged_outputs
from himatch.runs.run import Run
from himatch.targets import TargetLike
from himatch.types import Trajectory

OTHERS = 5  # episodes whose statistics a logged one is scored under, to see whether the conditioning matters

Errors = NDArray[np.float64]


def actions_on(
    run: Run,
    agent: Agent,
    trajectory: Trajectory,
    target: TargetLike,
    noise: NDArray[np.float32] | None = None,
    temperature: float = 1.0,
) -> NDArray[np.float32]:
    """What every seed would do at every step of a logged episode under a target, ``(K, T, act)``.

    A stochastic head gives its mean or likeliest action, or a sample by ``noise`` ``(T, act)``, which the
    ``temperature`` scaled already.
    """
    outputs = outputs_on(run, agent, trajectory, target)
    drawn = None if noise is None else torch.tensor(noise, device=outputs.device).expand(len(outputs), -1, -1)
    return run.normalizers.raw_actions(agent.policy.action(outputs, drawn, temperature)).cpu().numpy()


def outputs_on(run: Run, agent: Agent, trajectory: Trajectory, target: TargetLike) -> Tensor:
    """Head outputs of every seed at every step of a logged episode under a target, ``(K, T, outputs)``."""
    check_episode(trajectory)
    expected = (agent.dims.observation, agent.dims.action)
    found = (trajectory.observations.shape[1], trajectory.actions.shape[1])
    if found != expected:
        rows = " (one-hot rows: himatch.Discrete(...).rows(numbers))" if run.task.discrete is not None else ""
        raise HimatchError(f"the episode has steps of {found} numbers, this policy reads {expected}{rows}")
    wanted = run.target(target)
    check_target(run, agent.dims, wanted)
    target_of = np.zeros((1, len(trajectory) + agent.config.context), np.int64)
    conditioner = make_conditioner("nominal", run, agent, [wanted], target_of)
    return logged_outputs(agent, run.normalizers, trajectory, conditioner)


def action_error(
    run: Run, agent: Agent, trajectories: Sequence[Trajectory], targets: Sequence[TargetLike] | None
) -> Errors:
    """Action error of each seed over logged episodes under their targets, by default themselves.

    The mean square in units of half the action range; of discrete actions half the squared error of the probabilities,
    which is the share of wrong actions where a policy has no doubts.
    """
    episodes = logged_episodes(run, trajectories)
    if isinstance(targets, TrajectoryDataset):
        targets = logged_episodes(run, targets)
    given = episodes if targets is None else targets
    if len(given) != len(episodes):
        raise HimatchError(f"{len(episodes)} episodes but {len(given)} targets")
    return _error(run, agent, episodes, given)


def score(run: Run, agent: Agent, given: Sequence[Trajectory]) -> dict[str, Errors]:
    """Action error of each seed, and the factor by which it rises under the statistics of other episodes."""
    episodes = logged_episodes(run, given)
    own, count = _error(run, agent, episodes, episodes), len(episodes)
    if not agent.dims.z:
        return {"action_error": own, "sensitivity": np.ones_like(own)}
    if count < 2:
        return {"action_error": own, "sensitivity": np.full_like(own, np.nan)}
    # Neighbours are often alike, and logs often alternate, so the others are drawn.
    rng, drawn = np.random.default_rng(0), min(OTHERS, count - 1)
    others = [(i + 1 + rng.permutation(count - 1)[:drawn]) % count for i in range(count)]
    errors = [_error(run, agent, episodes, [episodes[other[k]] for other in others]) for k in range(drawn)]
    return {"action_error": own, "sensitivity": np.mean(errors, axis=0) / np.maximum(own, 1e-12)}


def _error(run: Run, agent: Agent, trajectories: Sequence[Trajectory], given: Sequence[TargetLike]) -> Errors:
    half, discrete = run.normalizers.action_half.cpu().numpy(), run.task.discrete is not None
    total, steps = np.zeros(len(agent.seeds)), 0
    for trajectory, target in zip(trajectories, given, strict=True):
        said = run.normalizers.raw_actions(agent.policy.mean(outputs_on(run, agent, trajectory, target)))
        squares = np.square((said.cpu().numpy() - trajectory.actions) / half, dtype=np.float64)
        total += (squares.sum(-1) / 2 if discrete else squares.mean(-1)).sum(-1)
        steps += len(trajectory)
    return total / steps
