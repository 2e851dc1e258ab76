"""Targets: what a rollout must match, however a person wants to say it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from himatch.errors import TargetError
from himatch.targets.distribution import Component, Distribution
from himatch.targets.expression import HeldOut, parse_target, read_histogram, read_samples
from himatch.targets.reference import EpisodeReference, Mixture, Nearest, Support
from himatch.targets.target import (
    Context,
    Demonstration,
    Drawn,
    Goal,
    Patched,
    Return,
    Samples,
    Shifted,
    Synthetic,
    Target,
)
from himatch.tasks import Task
from himatch.types import Trajectory

__all__ = [
    "Component",
    "Context",
    "Demonstration",
    "Distribution",
    "Drawn",
    "EpisodeReference",
    "Goal",
    "Mixture",
    "Nearest",
    "Patched",
    "Return",
    "Samples",
    "Shifted",
    "Support",
    "Synthetic",
    "Target",
    "as_target",
    "demo",
    "parse_target",
    "read_histogram",
    "read_samples",
]


def as_target(
    target: Target | Trajectory | str | ArrayLike, task: Task | str | None = None, held_out: HeldOut | None = None
) -> Target:
    """Whatever a user hands over as a target: an expression, an episode, samples, or a target already."""
    if isinstance(target, Target):
        return target
    if isinstance(target, str):
        return parse_target(target, task, held_out)
    if isinstance(target, Trajectory):
        return demo(target)
    try:
        samples = np.asarray(target, dtype=np.float32)
    except (TypeError, ValueError):
        raise TargetError(
            f"a target is an expression, an episode, numbers or a Target, not {type(target).__name__}; several of them "
            "go to match_all"
        ) from None
    return Samples(samples)


def demo(trajectory: Trajectory) -> Demonstration:
    """One episode as a demonstration to imitate or a distribution to match."""
    return Demonstration(trajectory)
