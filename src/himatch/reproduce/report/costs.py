"""What the results took: machines, dates, versions, and seconds of training and of rollouts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

from himatch.reproduce.report.captions import DataUsed, data_used
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.results import JobResult

SHARED = (
    "Seconds are what each job took while other jobs may have shared its machine: their sums are no wall-clock time. "
    "All seeds of a model are trained at once, in one stack. A model that serves several suites is counted in each of "
    "them, and once in the total; so is a search for programs, but where suites share "
    "a part of it. CPU is what all cores did together, as far as results say it (since 2026-11-20), without compilers."
)

HEADS = ("Suite", "Results", "Models", "Training", "Rehearsal", "Rollouts", "CPU")
ROW_HEADS = ("Row", "Training", "Rehearsal", "Rollouts", "CPU", "Machine")


@dataclass(frozen=True)
class Seconds:
    """Where the time went: by the clock of the machine named, and of all its cores as far as that was counted."""

    training: float = 0.0
    rehearsal: float = 0.0
    rollouts: float = 0.0
    cpu: float | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """Four durations; nothing where none was spent, or counted."""
        return tuple(duration(found) if (found := getattr(self, one.name)) else "" for one in fields(self))


@dataclass(frozen=True)
class Cost:
    """Of a suite, or of everything."""

    name: str
    results: int
    models: int
    spent: Seconds

    @property
    def texts(self) -> tuple[str, ...]:
        """Under :data:`HEADS`."""
        return self.name, str(self.results), str(self.models), *self.spent.texts


@dataclass(frozen=True)
class RowCost:
    """Of a row of a table, all its tasks together."""

    table: str
    title: str
    row: str
    spent: Seconds
    machine: str

    @property
    def texts(self) -> tuple[str, ...]:
        """Under :data:`ROW_HEADS`."""
        return self.row, *self.spent.texts, self.machine


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
    rows: tuple[RowCost, ...]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What is known, each with its name."""
        known = (
            ("Machine", "; ".join(self.machines)),
            ("Dates", " to ".join(self.dates)),
            ("Versions", ", ".join(self.versions)),
            ("Data", "; ".join(map(str, self.data))),
        )
        return [(name, text) for name, text in known if text]


def costs_of(results: Sequence[JobResult], tables: Sequence[ResultTable]) -> Costs:
    """Everything that the results say of themselves, each once."""
    dates = sorted(_said(results, "date"))
    suites = [
        _cost(suite, [r for r in results if r.suite == suite]) for suite in dict.fromkeys(r.suite for r in results)
    ]
    return Costs(
        machines=tuple(sorted(filter(None, {_machine(result) for result in results}))),
        dates=tuple(dict.fromkeys((*dates[:1], *dates[-1:]))),
        versions=tuple(_versions(results)),
        data=tuple(data_used(results)),
        suites=(*suites, _cost("all", results)),
        rows=tuple(_row_costs(tables)),
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
    models = len({_model(result) for result in results if _training(result)})
    return Cost(name, len(results), models, _spent(results))


def _row_costs(tables: Sequence[ResultTable]) -> Iterable[RowCost]:
    for table in tables:
        for row in table.methods:
            jobs = list(row.jobs.values())
            machines = sorted(filter(None, {_machine(job) for job in jobs}))
            if jobs:
                yield RowCost(table.label, table.layout.title, row.name, _spent(jobs), " and ".join(machines))


def _spent(results: Sequence[JobResult]) -> Seconds:
    """Models and searches that several results share are counted once."""
    models = {_model(result): _training(result) for result in results if _training(result)}
    searches = {json.dumps(found, sort_keys=True): found for r in results if (found := r.provenance.get("rehearsal"))}
    said = [r.provenance for r in results]
    rollouts = [{"seconds": p.get("rollout_seconds"), "cpu_seconds": p.get("rollout_cpu_seconds")} for p in said]
    parts = [*models.values()], [*searches.values()], rollouts
    training, rehearsal, played = (sum(float(part.get("seconds") or 0.0) for part in some) for some in parts)
    cpu = [part.get("cpu_seconds") for part in chain(*parts) if part.get("seconds")]
    return Seconds(training, rehearsal, played, None if None in cpu else sum(map(float, cpu)))


def _machine(result: JobResult) -> str:
    """What computed it; of a GPU with the cores beside it."""
    device, cores = result.provenance.get("device") or "", result.provenance.get("cores")
    return f"{device} with {cores} cores" if device and cores and "core" not in device else str(device)


def _training(result: JobResult) -> dict[str, Any]:
    return result.provenance.get("training") or {}


def _model(result: JobResult) -> str:
    """The same for all results of one model: its data, settings, seeds, and how long it took to train."""
    data = (result.provenance.get("data") or {}).get("hash")
    parts = (result.task, data, result.budget, result.seeds, result.provenance.get("method"), _training(result))
    return json.dumps(parts, sort_keys=True, default=str)
