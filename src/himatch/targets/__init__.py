"""Targets: what a rollout must match, however a person wants to say it."""

from himatch.targets.bound import Bound
from himatch.targets.conditions import Bounded, OfFeatures
from himatch.targets.distribution import Component, Distribution
from himatch.targets.expression import parse_target
from himatch.targets.files import read_histogram, read_samples
from himatch.targets.like import TargetLike, as_target, demo
from himatch.targets.reference import EpisodeReference, Mixture, Nearest, Support
from himatch.targets.sequence import Lasting, Successive
from himatch.targets.served import ServedTask
from himatch.targets.stretches import far_apart, some_episodes, some_stretches
from himatch.targets.target import (
    Demonstration,
    Drawn,
    Frame,
    Goal,
    Patched,
    Return,
    Samples,
    Shifted,
    Synthetic,
    Target,
    checked_values,
)

__all__ = [
    "Bound",
    "Bounded",
    "Component",
    "Demonstration",
    "Distribution",
    "Drawn",
    "EpisodeReference",
    "Frame",
    "Goal",
    "Lasting",
    "Mixture",
    "Nearest",
    "OfFeatures",
    "Patched",
    "Return",
    "Samples",
    "ServedTask",
    "Shifted",
    "Successive",
    "Support",
    "Synthetic",
    "Target",
    "TargetLike",
    "as_target",
    "checked_values",
    "demo",
    "far_apart",
    "parse_target",
    "read_histogram",
    "read_samples",
    "some_episodes",
    "some_stretches",
]
