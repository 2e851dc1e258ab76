"""The loop: simulations and policy in turn, everything that happens kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from himatch.rollout.player import Player
from himatch.statistics.features import Feature, Stepwise
from himatch.types import Trajectory

if TYPE_CHECKING:  # which needs Gymnasium
    from himatch.simulation import Simulator


@dataclass(frozen=True)
class Rollouts:
    """What K seeds did in B rollouts each, ``(K, B, T, ...)``; beyond ``lengths (K, B)`` the arrays hold nothing."""

    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    rewards: NDArray[np.float32]
    final_observations: NDArray[np.float32]
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]

    def trajectory(self, seed: int, rollout: int) -> Trajectory:
        """One rollout as an episode."""
        steps = int(self.lengths[seed, rollout])
        return Trajectory(
            self.observations[seed, rollout, :steps],
            self.actions[seed, rollout, :steps],
            self.rewards[seed, rollout, :steps],
            self.final_observations[seed, rollout],
            bool(self.terminated[seed, rollout]),
        )


def roll_out(
    player: Player,
    simulator: Simulator,
    lengths: NDArray[np.int64],
    reset_seeds: NDArray[np.int64],
    feature: Feature | None = None,
    progress: Callable[[int], None] | None = None,
) -> Rollouts:
    """Play rollouts ``(K, B)`` of the given lengths from the given reset seeds; ``simulator`` has K x B simulations.

    ``feature`` is needed by remaining conditioning, which counts what was achieved. ``progress`` is called at every
    step with the number of rollouts that go on. Of longer observations the policy sees the leading part it was trained
    on.
    """
    stack, batch = lengths.shape
    shape, device = (stack, batch), player.device
    longest = int(min(lengths.max(), simulator.task.horizon))
    width = player.agent.dims.observation
    observations = np.zeros((stack * batch, longest, width), np.float32)
    actions = np.zeros((stack * batch, longest, player.agent.dims.action), np.float32)
    rewards = np.zeros((stack * batch, longest), np.float32)
    limit = np.minimum(lengths.ravel(), longest)
    played = np.zeros(stack * batch, np.int64)
    terminated = np.zeros(stack * batch, bool)
    pinned = device.type == "cuda"
    given = torch.zeros(*shape, width, pin_memory=pinned)
    chosen = torch.zeros(*shape, actions.shape[2], pin_memory=pinned)
    player.reset()
    seen = simulator.reset(reset_seeds.ravel().tolist())
    watched = Stepwise(feature) if feature is not None and player.conditioner.wants_features else None
    with player.threads():
        for step in range(longest):
            active = simulator.active
            if not active.any():
                break
            observations[:, step] = seen[:, :width]
            given.copy_(torch.from_numpy(observations[:, step]).view(given.shape))
            chosen.copy_(player.act(given, active))  # a GPU is waited for here and nowhere else
            actions[:, step] = chosen.flatten(0, 1).numpy()
            after = simulator.step(actions[:, step])
            rewards[:, step] = after.rewards
            played[active] += 1
            terminated |= active & after.terminated
            if watched is not None:
                phi = watched(observations[:, step], actions[:, step], rewards[:, step])
                player.conditioner.achieved(phi.reshape(*shape, -1))
            seen = after.observations
            finished = np.flatnonzero(active & (played >= limit))
            if finished.size:
                simulator.rest(finished.tolist())
            if progress is not None:
                progress(int(simulator.active.sum()))
    return Rollouts(
        observations.reshape(*shape, longest, width),
        actions.reshape(*shape, longest, -1),
        rewards.reshape(*shape, longest),
        seen[:, :width].astype(np.float32).reshape(*shape, width),
        played.reshape(shape),
        terminated.reshape(shape),
    )
