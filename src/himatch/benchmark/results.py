"""What a job of the benchmark leaves behind: one small JSON file with every target's scores and its provenance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from himatch.divergences import Summary, summarize
from himatch.errors import DataError
from himatch.files import reading, write_json

RESULTS = "results"  # folder of the result files below a benchmark's own


@dataclass(frozen=True)
class TargetScore:
    """One target: lists are per seed, means over the rollouts of that seed.

    ``histograms`` hold bin edges per dimension, and the target's and the rollouts' shares (all seeds pooled): lists of
    ``bins`` numbers in one dimension, lists of lists in two.
    """

    name: str
    group: str
    w1: list[float]
    energy: list[float]
    returns: list[float]
    lengths: list[float]
    target_return: float | None = None
    reference: float | None = None
    """W1 of the nearest mixture of training episodes."""
    outside: float = 0.0
    shift: float | None = None
    """By how many bin widths the target was moved (suite ``shift``)."""
    ordering: str | None = None
    """``listed`` or ``shuffled`` (suite ``synthetic``)."""
    histograms: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobResult:
    """One method on one task in one suite."""

    suite: str
    task: str
    method: str
    """The paper's name with what distinguishes it: ``Categorical DT``, ``BDT (m=16, N=20)``."""
    feature: str
    conditioning: str
    budget: str
    seeds: list[int]
    episodes: int
    targets: list[TargetScore]
    provenance: dict[str, Any]
    """Command, data (name, hash, episodes, steps, where from), training settings, environment id, versions, dates,
    seconds of training and of rollouts."""

    @property
    def key(self) -> str:
        """Name of the file."""
        text = "-".join((self.suite, self.task, self.method, self.feature, self.conditioning))
        return "".join(c if c.isalnum() or c in "-_." else "_" for c in text.lower())

    def scores(self, group: str | None = None) -> list[list[float]]:
        """W1 of every target (of a group), per seed."""
        return [t.w1 for t in self.targets if group is None or t.group == group]

    def summary(self, group: str | None = None) -> Summary:
        """Mean, deviation, interquartile mean and interval over targets and seeds, one stratum a target."""
        return summarize(self.scores(group))

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups of targets in order of appearance."""
        return tuple(dict.fromkeys(t.group for t in self.targets))


def write_result(folder: Path, result: JobResult) -> Path:
    """Write a result, whole or not at all."""
    path = folder / RESULTS / f"{result.key}.json"
    write_json(path, asdict(result))
    return path


def read_result(path: Path) -> JobResult:
    """Read a result back."""
    with reading(str(path)):
        content = json.loads(path.read_text())
        targets = [TargetScore(**target) for target in content.pop("targets")]
        return JobResult(**content, targets=targets)


def read_results(folders: Sequence[str | Path]) -> list[JobResult]:
    """All results below some folders."""
    found = [path for folder in folders for path in sorted(Path(folder).rglob(f"{RESULTS}/*.json"))]
    if not found:
        raise DataError(f"no results in {', '.join(map(str, folders))}; run himatch benchmark first")
    return [read_result(path) for path in found]
