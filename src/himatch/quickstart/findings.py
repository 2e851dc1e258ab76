"""What the quickstart found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from himatch.evaluation.result import MatchResult
from himatch.policy import Policy
from himatch.rollout import Conditioning

HELD_OUT = 2  # the first targets


@dataclass(frozen=True)
class Entry:
    """A policy and how it is conditioned on its targets."""

    name: str
    policy: Policy
    conditioning: Conditioning


@dataclass(frozen=True)
class Findings:
    """Results of every policy, by its name, in the order of the targets."""

    entries: tuple[Entry, ...]
    targets: tuple[str, ...]
    results: dict[str, list[MatchResult]]

    def mixture(self, target: int) -> float:
        """W1 of the episode mixture."""
        mixture = next(iter(self.results.values()))[target].mixture
        assert mixture is not None
        return mixture.w1

    def played(self, name: str) -> float:
        """The share of all targets' steps that a policy's rollouts lasted."""
        return float(np.mean([result.played for result in self.results[name]]))

    def held_out_mean(self, name: str) -> float:
        """A policy's mean W1 over the held-out episodes."""
        return float(np.mean([result.w1 for result in self.results[name][:HELD_OUT]]))
