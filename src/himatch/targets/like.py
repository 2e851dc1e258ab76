"""Whatever a user hands over as a target."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike

from himatch.data.facts import Facts
from himatch.errors import TargetError
from himatch.targets.expression import ColumnNames, HeldOut, parse_target
from himatch.targets.target import Demonstration, Samples, Target
from himatch.tasks import Task
from himatch.types import Trajectory

TargetLike = Target | Trajectory | str | ArrayLike
"""One target: an expression, an episode, samples of the feature, or a target already."""


def as_target(
    target: TargetLike,
    task: Task | str | None = None,
    held_out: HeldOut | None = None,
    columns: ColumnNames | None = None,
    facts: Facts | None = None,
    files: Collection[str] | None = None,
) -> Target:
    """Whatever a user hands over as a target: an expression, an episode, samples, or a target already.

    In an expression no others than ``files`` may be named, where these are given.
    """
    if isinstance(target, Target):
        return target
    if isinstance(target, str):
        return parse_target(target, task, held_out, columns, facts, files)
    if isinstance(target, Trajectory):
        return demo(target)
    try:
        samples = np.asarray(target, dtype=np.float32)
    except (TypeError, ValueError):
        samples = np.zeros((), np.float32)
    if samples.ndim == 0:
        raise TargetError(
            f"a target is an expression, an episode, numbers or a Target, not {type(target).__name__}; several of them "
            "go to match_all"
        )
    return Samples(samples)


def demo(trajectory: Trajectory) -> Demonstration:
    """One episode as a demonstration to imitate or a distribution to match."""
    return Demonstration(trajectory)
