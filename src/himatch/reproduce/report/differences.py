"""What may be said of two numbers, and of two rows target by target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from himatch.divergences import Difference, Summary, leave_one_out, paired_difference
from himatch.reproduce.report.captions import data_hash
from himatch.reproduce.results import JobResult, TargetScore

Verdict = Literal["holds", "too close to call", "does not hold", "not run", "information"]
AS_CLAIMED, OTHER_WAY = "the means are as claimed", "the means are the other way round"
Parts = Sequence[tuple[str, str]]
"""Tasks and groups that a column averages."""
Scorer = Callable[[str, TargetScore], Sequence[float]]
"""What is compared: of a task's target one number for each seed, the lower the better."""


def w1_of(task: str, target: TargetScore) -> Sequence[float]:
    """What claims compare unless they say otherwise."""
    return target.w1


class Episode(NamedTuple):
    """What a target is made of: the shifts of one episode share theirs."""

    number: int
    name: str


def episodes(targets: Sequence[TargetScore]) -> list[Episode]:
    """The episode of every target; suites list the episodes of a group in the same order for every shift."""
    seen: Counter[tuple[str, float | None, str | None]] = Counter()
    numbers: dict[tuple[str, str | None, int], int] = {}
    found = []
    for target in targets:
        kind = target.group, target.shift, target.ordering
        number = numbers.setdefault((target.group, target.ordering, seen[kind]), len(numbers) + 1)
        seen[kind] += 1
        found.append(Episode(number, target.name if target.shift is None else f"{target.group} {number}"))
    return found


@dataclass(frozen=True)
class Paired:
    """Scores of two rows on the same targets: ``(targets, seeds)`` of every part of a column."""

    ours: Sequence[Sequence[Sequence[float]]]
    theirs: Sequence[Sequence[Sequence[float]]]
    tasks: Sequence[str]
    episodes: Sequence[Sequence[Episode]]

    @property
    def difference(self) -> Difference:
        """Ours less theirs, episodes resampled."""
        return paired_difference(self.ours, self.theirs, self.tasks, self.episodes)

    @property
    def without_each(self) -> dict[str, float]:
        """Ours less theirs without each episode in turn, by task and name."""
        rest = leave_one_out(self.ours, self.theirs, self.episodes)
        names = [[f"{task} {e.name}" for e in dict.fromkeys(part)] for task, part in self._parts]
        known = [pair for part in zip(names, rest, strict=True) for pair in zip(*part, strict=True)]
        return {name: without for name, without in known if without == without}  # NaN: the only one of its group

    @property
    def _parts(self) -> list[tuple[str, Sequence[Episode]]]:
        return list(zip(self.tasks, self.episodes, strict=True))


def pair(
    parts: Parts,
    ours: Mapping[str, JobResult],
    theirs: Mapping[str, JobResult],
    factor: float = 1.0,
    scorer: Scorer = w1_of,
) -> Paired | None:
    """Two rows' results by task, theirs times ``factor``; nothing where their targets are not the same."""
    if any(_targets(ours[task]) != _targets(theirs[task]) for task, _ in parts):
        return None
    mine, other = ([_scores(jobs[task], group, scorer) for task, group in parts] for jobs in (ours, theirs))
    scaled = [[[factor * score for score in seeds] for seeds, _ in part] for part in other]
    return _paired([[seeds for seeds, _ in part] for part in mine], scaled, parts, mine)


def pair_with(parts: Parts, ours: Mapping[str, JobResult], given: Callable[[TargetScore], float | None]) -> Paired:
    """A row beside a number of each target that has no seeds, or none."""
    mine = [_scores(ours[task], group, w1_of) for task, group in parts]
    found = [[t for t in ours[task].targets if t.belongs_to(group)] for task, group in parts]
    theirs = [[[given(target) or 0.0] for target in part] for part in found]
    return _paired([[seeds for seeds, _ in part] for part in mine], theirs, parts, mine)


def _paired(
    ours: Sequence[Sequence[Sequence[float]]],
    theirs: Sequence[Sequence[Sequence[float]]],
    parts: Parts,
    scored: Sequence[Sequence[tuple[Sequence[float], Episode]]],
) -> Paired:
    return Paired(ours, theirs, [task for task, _ in parts], [[episode for _, episode in part] for part in scored])


def _scores(job: JobResult, group: str, scorer: Scorer) -> list[tuple[Sequence[float], Episode]]:
    numbered = zip(job.targets, episodes(job.targets), strict=True)
    found = [(scorer(job.task, target), episode) for target, episode in numbered if target.belongs_to(group)]
    return [(scores, episode) for scores, episode in found if scores]


def _targets(job: JobResult) -> tuple[str, list[tuple[str, float | None, str | None]]]:
    return data_hash(job), [(target.name, target.shift, target.ordering) for target in job.targets]


def decide(difference: Difference, *, at_most: bool = False) -> tuple[Verdict, str]:
    """Whether what should lie below does (or is level, with ``at_most``), and a remark.

    An interval with zero in it decides neither way.
    """
    below = difference.mean <= 0 if at_most else difference.mean < 0
    if difference.low is None or difference.high is None:
        return "too close to call", f"{AS_CLAIMED if below else OTHER_WAY}; one seed: noise unknown"
    if difference.low <= 0 <= difference.high:
        return "too close to call", AS_CLAIMED if below else OTHER_WAY
    return ("holds" if below else "does not hold"), ""


def decide_level(difference: Difference, margin: float) -> tuple[Verdict, str]:
    """Whether a difference is at most ``margin`` in size: the whole interval holds, a part of it is noise."""
    if difference.low is None or difference.high is None:
        return decide(Difference(abs(difference.mean) - margin), at_most=True)
    ends = abs(difference.low), abs(difference.high)
    least = 0.0 if difference.low <= 0 <= difference.high else min(ends)
    return decide(Difference(abs(difference.mean) - margin, least - margin, max(ends) - margin), at_most=True)


def compare(ours: Summary, other: Summary, factor: float = 1.0, *, at_most: bool = False) -> tuple[Verdict, str]:
    """As :func:`decide`, of numbers that share no targets: noise is where their intervals overlap."""
    mean = ours.mean - factor * other.mean
    if ours.is_one_seed or other.is_one_seed:
        return decide(Difference(mean), at_most=at_most)
    (low, high), (other_low, other_high) = ours.interval, other.interval
    return decide(Difference(mean, low - factor * other_high, high - factor * other_low), at_most=at_most)
