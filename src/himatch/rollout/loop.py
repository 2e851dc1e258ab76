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


class OngoingRollouts:
    """Rollouts ``(K, B)`` while they are played: :meth:`step` until ``over``, and ``so_far`` at any time.

    ``lengths`` say how long each may last, ``reset_seeds`` how it begins; ``simulator`` has K x B simulations.
    ``feature`` is needed by remaining conditioning, which counts what was achieved. Of longer observations the policy
    sees the leading part it was trained on. Whoever steps does so inside ``player.threads()``.
    """

    def __init__(
        self,
        player: Player,
        simulator: Simulator,
        lengths: NDArray[np.int64],
        reset_seeds: NDArray[np.int64],
        feature: Feature | None = None,
    ) -> None:
        self.player, self.simulator = player, simulator
        self._shape = lengths.shape
        rows, dims, pinned = lengths.size, player.agent.dims, player.device.type == "cuda"
        self._width = dims.observation
        self._observations = np.zeros((rows, 0, dims.observation), np.float32)
        self._actions = np.zeros((rows, 0, dims.action), np.float32)
        self._rewards = np.zeros((rows, 0), np.float32)
        self._make_room(lengths)
        self._played = np.zeros(rows, np.int64)
        self._terminated = np.zeros(rows, bool)
        self._given = torch.zeros(*self._shape, dims.observation, pin_memory=pinned)
        self._chosen = torch.zeros(*self._shape, dims.action, pin_memory=pinned)
        self._watched = None if feature is None else Stepwise(feature)
        player.reset()
        self._seen = simulator.reset(reset_seeds.ravel().tolist())
        self.steps = 0
        """How many have been made."""

    @property
    def longest(self) -> int:
        """How many steps the longest may last."""
        return int(self._limit.max())

    @property
    def over(self) -> bool:
        """Whether no rollout goes on."""
        return self.steps >= self.longest or not self.simulator.active.any()

    def step(self) -> None:
        """One step of every rollout that goes on."""
        step, active, conditioner = self.steps, self.simulator.active, self.player.conditioner
        observations, actions, rewards = self._observations[:, step], self._actions[:, step], self._rewards[:, step]
        observations[:] = self._seen[:, : self._width]
        self._given.copy_(torch.from_numpy(observations).view(self._given.shape))
        self._chosen.copy_(self.player.act(self._given, active))  # a GPU is waited for here and nowhere else
        actions[:] = self._chosen.flatten(0, 1).numpy()
        after = self.simulator.step(actions)
        rewards[:] = after.rewards
        self._played[active] += 1
        self._terminated |= active & after.terminated
        if self._watched is not None and conditioner.wants_features:
            phi = self._watched(observations, actions, rewards)
            conditioner.achieved(phi.reshape(*self._shape, -1))
        self._seen = after.observations
        self.steps += 1
        self._rest_finished()

    def last(self, lengths: NDArray[np.int64]) -> None:
        """From now on these are how long each rollout may last; those that have ended stay so."""
        self._make_room(lengths)
        self._rest_finished()

    @property
    def so_far(self) -> Rollouts:
        """What was played; further steps are written into its arrays, beyond its lengths."""
        shape = self._shape
        return Rollouts(
            self._observations.reshape(*shape, -1, self._width),
            self._actions.reshape(*shape, *self._actions.shape[1:]),
            self._rewards.reshape(*shape, -1),
            self._seen[:, : self._width].astype(np.float32).reshape(*shape, self._width),
            self._played.reshape(shape).copy(),
            self._terminated.reshape(shape).copy(),
        )

    def _make_room(self, lengths: NDArray[np.int64]) -> None:
        longest = int(min(lengths.max(), self.simulator.task.horizon))
        self._limit = np.minimum(lengths.ravel(), longest)
        more = longest - self._rewards.shape[1]
        if more > 0:
            self._observations, self._actions, self._rewards = (
                np.concatenate([kept, np.zeros((len(kept), more, *kept.shape[2:]), np.float32)], axis=1)
                for kept in (self._observations, self._actions, self._rewards)
            )

    def _rest_finished(self) -> None:
        finished = np.flatnonzero(self.simulator.active & (self._played >= self._limit))
        if finished.size:
            self.simulator.rest(finished.tolist())


def roll_out(
    player: Player,
    simulator: Simulator,
    lengths: NDArray[np.int64],
    reset_seeds: NDArray[np.int64],
    feature: Feature | None = None,
    progress: Callable[[int], None] | None = None,
) -> Rollouts:
    """Play rollouts ``(K, B)`` to their end; what is handed over is that of :class:`OngoingRollouts`.

    ``progress`` is called at every step with the number of rollouts that go on.
    """
    ongoing = OngoingRollouts(player, simulator, lengths, reset_seeds, feature)
    with player.threads():
        while not ongoing.over:
            ongoing.step()
            if progress is not None:
                progress(int(simulator.active.sum()))
    return ongoing.so_far
