"""Where a policy is rehearsed: rollouts of programs in its environment, and how far they are from their targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from himatch._runtime.shapes import Array64
from himatch.divergences import wasserstein_marginal
from himatch.evaluation.distances import charged, exact_w1, in_order, stretches_of, whole_range
from himatch.methods import Agent
from himatch.rollout import Player, roll_out
from himatch.rollout.conditioners import of_programs
from himatch.rollout.environment import STARTS, Environment, environment_name, replay_for, simulator_for
from himatch.rollout.programs import Program
from himatch.runs.programs import Circumstances
from himatch.runs.run import Run
from himatch.statistics.features import resolve_feature
from himatch.targets import EpisodeReference, Target
from himatch.targets.sequence import Successive
from himatch.types import Array, Trajectory

SEED = 3  # of initial states; evaluations have 0, the selection of a temperature 1 and 2
AT_ONCE = 2048  # rollouts played together; more are played in turn


class Achieved(NamedTuple):
    """What a rollout achieved: the matched feature, ``(T, d)``; the share of its steps within the target's bounds."""

    phi: Array
    held: float = 1.0


def phis(episodes: Sequence[Achieved]) -> list[Array]:
    """What they achieved of the feature."""
    return [episode.phi for episode in episodes]


Played = list[list[list[Achieved]]]
"""Every episode: ``played[n][k][e]`` of program n, seed k."""
Steps = Callable[[int], None]
"""Told at every step how many rollouts make it."""


@dataclass(frozen=True)
class Arena:
    """A policy, and the environment that it is rehearsed in."""

    run: Run
    agent: Agent
    temperature: float = 0.0
    env: Environment | None = None
    threads: int = 0

    @property
    def now(self) -> Circumstances:
        """What a rehearsal here is of."""
        return Circumstances(self.temperature, environment_name(self.run, self.env), self.agent.digests())

    @property
    def reference(self) -> EpisodeReference:
        """The training episodes."""
        return self.run.reference()

    @property
    def starts(self) -> range:
        """Seeds of the initial states of rehearsals; no evaluation begins with them."""
        first = replay_for(self.run, self.env, SEED).seed
        return range(first, first + STARTS)

    def play(
        self,
        programs: Sequence[Sequence[Program]],
        targets: Sequence[Target],
        episodes: int,
        start: int,
        step: Steps | None = None,
    ) -> Played:
        """Roll out ``programs[n][k]`` for ``targets[n]``, each so many times; ``start`` counts initial states."""
        stack = len(self.agent.seeds)
        each = max(1, AT_ONCE // (stack * episodes))
        played: Played = []
        for first in range(0, len(targets), each):
            part = slice(first, first + each)
            played += self._play(programs[part], targets[part], episodes, start, step)
        return played

    def _play(
        self,
        programs: Sequence[Sequence[Program]],
        targets: Sequence[Target],
        episodes: int,
        start: int,
        step: Steps | None,
    ) -> Played:
        stack, count = len(self.agent.seeds), len(targets)
        target_of = np.tile(np.repeat(np.arange(count), episodes), (stack, 1))
        on_device = torch.from_numpy(target_of).to(self.run.normalizers.state_mean.device)
        conditioner = of_programs(self.run, programs, targets, on_device, feedback=False)
        steps = np.array([[sum(part.steps for part in one) for one in program] for program in programs])
        lengths = steps.T[np.arange(stack)[:, None], target_of]
        first = self.starts[start]
        starts = np.tile(first + np.tile(np.arange(episodes), count), (stack, 1))
        player = Player(self.agent, self.run.normalizers, conditioner, target_of.shape[1], first, self.temperature)
        simulator = simulator_for(self.run, self.agent.dims, target_of.size, self.env, self.threads)
        try:
            rollouts = roll_out(player, simulator, lengths, starts, self.run.statistic.matched, step)
        finally:
            simulator.close()
        return [
            [
                [self._achieved(rollouts.trajectory(k, n * episodes + e), targets[n]) for e in range(episodes)]
                for k in range(stack)
            ]
            for n in range(count)
        ]

    def _achieved(self, trajectory: Trajectory, target: Target) -> Achieved:
        features = [resolve_feature(bound.feature, self.run.task) for bound in target.bounds]
        within = [bound.holds(phi(trajectory)) for bound, phi in zip(target.bounds, features, strict=True)]
        held = float(np.all(within, axis=0).mean()) if within else 1.0
        return Achieved(self.reference.frame.feature(trajectory), held)


class Judge:
    """How far episodes are from one target, charged for time that was not played, or not within the target's bounds.

    Targets one after another are compared one by one, each with what was played in its steps. Of several features it
    takes the marginals, each in its spread: a joint transport for every candidate is slow.
    """

    def __init__(self, target: Target, reference: EpisodeReference) -> None:
        frame = reference.frame
        self.target, self.reference, self._spread = target, reference, reference.spread
        self.steps = min(len(target.values(frame)), frame.horizon)
        self._wanted, self._grid = target.compared(frame), reference.grid
        self._stretches = stretches_of(target, frame)

    def episodes(self, played: Sequence[Achieved]) -> Array64:
        """Of every episode by itself."""
        return np.array([self.pooled([episode]) for episode in played])

    def pooled(self, episodes: Sequence[Achieved]) -> float:
        """Of some episodes together."""
        played = phis(episodes)
        lasted = np.array([self.lasted(episode) * episode.held for episode in episodes])
        if self.target.matches == "distribution":
            distance, box = self.distance(played), whole_range(self._spread, in_spreads=True)
            return float(charged(np.array(distance), np.array(lasted.mean()), box))
        missed = self._missed(played)
        if self.target.matches == "return":
            return float(missed.mean())
        return float(charged(missed, lasted, whole_range(self._spread, in_spreads=False)).mean())

    def lasted(self, episode: Achieved) -> float:
        """The part of the target's steps that it lasted."""
        return min(len(episode.phi) / self.steps, 1.0)

    def distance(self, played: Sequence[Array]) -> float:
        """The same for what was played alone: W1 of a distribution, the mean error of a return or goal."""
        if self.target.matches != "distribution":
            return float(self._missed(played).mean())
        return in_order(played, self._stretches, self._apart)

    def reported(self, played: Sequence[Array]) -> float:
        """What a match result calls its W1 or its error: pooled, of several features joint."""
        if self.target.matches != "distribution":
            return float(self._missed(played).mean())
        return exact_w1(np.concatenate(played), self._wanted, self._grid, self._spread)

    def of(self, target: Target) -> Judge:
        """The same for another target."""
        return Judge(target, self.reference)

    def nearest(self, played: Sequence[Sequence[Array]]) -> Target | None:
        """The target of the same form that is nearest to what was played, where it has a form."""
        frame, episodes = self.reference.frame, [phi for own in played for phi in own]
        if self.target.matches != "distribution":
            return self.target.alike(self._reached(episodes), frame)
        stretches = self.target.stretches(frame)
        if len(stretches) == 1:
            return self.target.alike(np.concatenate(episodes), frame)
        parts = []
        for one, (_, steps) in zip(stretches, self._stretches, strict=True):
            rows = np.concatenate([phi[steps] for phi in episodes])
            found = one.alike(rows, frame) if len(rows) else None
            if found is None:
                return None
            parts.append(found)
        return Successive(tuple(parts))

    def _apart(self, rows: Array, wanted: Array) -> float:
        marginal = wasserstein_marginal(rows, wanted)
        return float(marginal[0] if len(marginal) == 1 else np.linalg.norm(marginal / self._spread))

    def _missed(self, played: Sequence[Array]) -> Array64:
        wanted = self._wanted.astype(np.float64)
        whole = wanted.sum(axis=0) if self.target.matches == "return" else wanted[-1]
        missed: Array64 = np.linalg.norm(self._reached(played) - whole, axis=1)
        return missed

    def _reached(self, played: Sequence[Array]) -> Array64:
        """The total or the last value of every episode."""
        if self.target.matches == "return":
            return np.array([phi.sum(axis=0, dtype=np.float64) for phi in played])
        return np.array([phi[-1] for phi in played], dtype=np.float64)
