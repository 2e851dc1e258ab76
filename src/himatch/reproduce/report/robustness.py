"""Whether one target decides the direction of a difference, and what is left of it without those that stumble."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from himatch.divergences import Difference
from himatch.reproduce.report import text as wording
from himatch.reproduce.report.differences import Paired, Parts, Scorer, pair, w1_of
from himatch.reproduce.report.stumbles import steady, stumbling
from himatch.reproduce.results import JobResult

READING = (
    "Each claim that compares averages over targets, without each target in turn: the range of the difference, the "
    "target that moves it most, and whether the direction of the verdict is another without one of them. Against "
    "several methods the range is that of the one shown above, the direction that of all; of trends it is whether any "
    "is clear. Shifted targets are left out by episode, with all their shifts; a slope's difference is that to 1. "
    "Where a claim is about two sets of targets, one of either is left out. On the right the two averages without the "
    "medium targets that stumble, where there are such, and their difference with its interval. Verdicts are from all "
    "targets. `without.csv` has the difference without each."
)
MOST_NAMES = 3
HEADS = ("Claim", "Difference", "Without one target", "Moved most by", "Direction", "Without stumbling")


@dataclass(frozen=True)
class Steady:
    """Our average and the other's without targets that stumble, and the difference."""

    ours: float
    other: float
    less: Difference

    def __str__(self) -> str:
        return f"{self.ours:.3f} against {self.other:.3f}: {wording.difference(self.less)}"


@dataclass(frozen=True)
class Robustness:
    """The difference without each target in turn."""

    low: float
    high: float
    mover: str
    """Whose absence moves the difference most."""
    turning: tuple[str, ...]
    """Those without which the direction is another."""
    steady: Steady | None = None
    """Nothing where no target stumbles."""
    each: Mapping[str, float] = field(default_factory=dict)
    """The difference without each target, by its name."""

    @property
    def span(self) -> str:
        """``-0.061 to +0.020``."""
        return f"{self.low:+.3f} to {self.high:+.3f}"

    @property
    def direction(self) -> str:
        """Whether it depends on one target, and on which; of many, on how many."""
        if not self.turning:
            return "the same without any one"
        many = len(self.turning) > MOST_NAMES
        return "depends on " + (f"{len(self.turning)} targets, each alone" if many else ", ".join(self.turning))

    @property
    def without_stumbling(self) -> str:
        """``0.122 against 0.135: -0.013 [-0.024, -0.002]``."""
        return "" if self.steady is None else str(self.steady)


def robustness(
    paired: Paired,
    right: Callable[[float], bool],
    steadily: Steady | None = None,
    rivals: Sequence[Paired] = (),
) -> Robustness | None:
    """Of a difference whose direction is ``right`` or not; nothing where no target can be left out.

    Against several ``rivals`` the direction is right where it is against each of them.
    """
    every = [(each.difference.mean, each.without_each) for each in rivals or (paired,)]
    was_right = all(right(mean) for mean, _ in every)
    rest = paired.without_each
    turning = [name for name in rest if all(right(without[name]) for _, without in every) != was_right]
    return left_out(paired.difference.mean, rest, turning, steadily)


def left_out(
    whole: float, rest: Mapping[str, float], turning: Iterable[str], steadily: Steady | None
) -> Robustness | None:
    """Of a difference, and what it is without each target; nothing where no target can be left out."""
    if not rest:
        return None
    mover = max(rest, key=lambda name: abs(rest[name] - whole))
    return Robustness(min(rest.values()), max(rest.values()), mover, tuple(turning), steadily, rest)


def steady_averages(
    parts: Parts,
    ours: Mapping[str, JobResult],
    theirs: Mapping[str, JobResult],
    scorer: Scorer = w1_of,
) -> Steady | None:
    """The averages of two rows without targets that stumble; nothing where none does."""
    if not any(stumbling(ours[task].targets) for task, _ in parts):
        return None
    mine, other = ({task: steady(jobs[task]) for task, _ in parts} for jobs in (ours, theirs))
    paired = pair(parts, mine, other, scorer=scorer)
    if paired is None or not all((*paired.ours, *paired.theirs)):
        return None
    mean, theirs_mean = (float(np.mean([np.mean(part) for part in side])) for side in (paired.ours, paired.theirs))
    return Steady(mean, theirs_mean, paired.difference)
