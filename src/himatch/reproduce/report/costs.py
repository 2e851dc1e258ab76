"""What the results took: machines, dates, versions, and seconds of training and of rollouts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from himatch.reproduce.report.captions import DataUsed, data_used
from himatch.reproduce.results import JobResult

SHARED = (
    "Seconds are what each job took while other jobs may have shared its machine: their sums are no wall-clock time. "
    "All seeds of a model are trained at once, in one stack. A model that serves several suites is counted in each of "
    "them, and once in the total."
)

HEADS = ("Suite", "Results", "Models", "Training", "Rollouts")


@dataclass(frozen=True)
class Cost:
    """Of a suite, or of everything."""

    name: str
    results: int
    models: int
    training: float
    rollouts: float

    @property
    def texts(self) -> tuple[str, ...]:
        """Under :data:`HEADS`."""
        return self.name, str(self.results), str(self.models), duration(self.training), duration(self.rollouts)


@dataclass(frozen=True)
class Costs:
    """What stands at the foot of the report."""

    machines: tuple[str, ...]
    dates: tuple[str, ...]
    """First and last day, or the only one."""
    versions: tuple[str, ...]
    data: tuple[DataUsed, ...]
    suites: tuple[Cost, ...]
    """The last is the total."""

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What is known, each with its name."""
        known = (
            ("Machine", ", ".join(self.machines)),
            ("Dates", " to ".join(self.dates)),
            ("Versions", ", ".join(self.versions)),
            ("Data", "; ".join(map(str, self.data))),
        )
        return [(name, text) for name, text in known if text]


def costs_of(results: Sequence[JobResult]) -> Costs:
    """Everything that the results say of themselves, each once."""
    dates = sorted(_said(results, "date"))
    suites = [
        _cost(suite, [r for r in results if r.suite == suite]) for suite in dict.fromkeys(r.suite for r in results)
    ]
    return Costs(
        machines=tuple(sorted(_said(results, "device"))),
        dates=tuple(dict.fromkeys((*dates[:1], *dates[-1:]))),
        versions=tuple(_versions(results)),
        data=tuple(data_used(results)),
        suites=(*suites, _cost("all", results)),
    )


def duration(seconds: float) -> str:
    """``3 h 05 min``, ``12 min``, ``48 s``."""
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def _said(results: Iterable[JobResult], name: str) -> set[str]:
    return {str(result.provenance[name]) for result in results if result.provenance.get(name)}


def _versions(results: Iterable[JobResult]) -> list[str]:
    found: dict[str, set[str]] = {}
    for result in results:
        for part in ("versions", "trained_with"):
            for name, version in (result.provenance.get(part) or {}).items():
                found.setdefault(name, set()).add(str(version))
    return [f"{name} {' and '.join(sorted(versions))}" for name, versions in found.items()]


def _cost(name: str, results: Sequence[JobResult]) -> Cost:
    models = {_model(result): _training(result) for result in results if _training(result)}
    training = sum(float(entry.get("seconds") or 0.0) for entry in models.values())
    rollouts = sum(float(result.provenance.get("rollout_seconds") or 0.0) for result in results)
    return Cost(name, len(results), len(models), training, rollouts)


def _training(result: JobResult) -> dict[str, Any]:
    return result.provenance.get("training") or {}


def _model(result: JobResult) -> str:
    """The same for all results of one model: its data, settings, seeds, and how long it took to train."""
    data = (result.provenance.get("data") or {}).get("hash")
    parts = (result.task, data, result.budget, result.seeds, result.provenance.get("method"), _training(result))
    return json.dumps(parts, sort_keys=True, default=str)
