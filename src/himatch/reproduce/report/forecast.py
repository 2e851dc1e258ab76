"""What was expected before the results were there: ``expected.toml`` beside them, and what came of it.

It names the source tree that the results are to be of. What other results say is no answer to it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from himatch.errors import DataError
from himatch.reproduce.report.claimed import ClaimedRow, Found, budget_of, find_row
from himatch.reproduce.report.differences import Verdict
from himatch.reproduce.report.findings import Finding
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.results import JobResult
from himatch.reproduce.specification import Specification
from himatch.reproduce.suite import AVERAGE
from himatch.reproduce.suites import TABLES

FILE = "expected.toml"
VERDICTS: tuple[Verdict, ...] = ("holds", "too close to call", "does not hold")


@dataclass(frozen=True)
class Expectation:
    """Which verdict a claim was expected to get, and why."""

    verdict: Verdict
    because: str = ""


@dataclass(frozen=True)
class Aim:
    """An average that was aimed at, and what was expected of it."""

    table: str
    row: ClaimedRow
    aim: float
    expected: float
    because: str = ""


@dataclass(frozen=True)
class Came:
    """An aim, and the average that it came to; ``None`` as long as that row was not run."""

    aim: Aim
    title: str
    name: str
    mean: float | None

    @property
    def reached(self) -> bool:
        """Whether the average is at most what was aimed at."""
        return self.mean is not None and self.mean <= self.aim.aim

    @property
    def score(self) -> str:
        """The average, as tables have it."""
        return "" if self.mean is None else f"{self.mean:.3f}"

    @property
    def verdict(self) -> str:
        """In words."""
        return "not run yet" if self.mean is None else "reached" if self.reached else "not reached"


@dataclass(frozen=True)
class Forecast:
    """Everything that was expected; without a file, nothing."""

    source: str = ""
    """The name of the source tree, as results have it."""
    claims: Mapping[str, Expectation] = field(default_factory=dict)
    aims: Sequence[Aim] = ()

    def of(self, finding: Finding) -> Expectation | None:
        """What was expected of a claim, where all that decided it is of that source tree."""
        return (
            self.claims.get(finding.claim) if finding.results and all(map(self._is_answer, finding.results)) else None
        )

    def came(self, tables: Sequence[ResultTable]) -> list[Came]:
        """What came of every aim."""
        budget, by_label = budget_of(tables), {table.label: table for table in tables}
        found = []
        for aim in self.aims:
            table = by_label.get(aim.table)
            row = None if table is None else find_row(table, aim.row, budget, AVERAGE)
            ran = isinstance(row, Found) and all(map(self._is_answer, row.row.jobs.values()))
            mean = row.score.mean if isinstance(row, Found) and ran else None
            name = row.row.name if isinstance(row, Found) else aim.row.missing_name
            found.append(Came(aim, TABLES[aim.table][1].title, name, mean))
        return found

    def _is_answer(self, result: JobResult) -> bool:
        return result.provenance.get("source") == self.source


def read_forecast(folders: Sequence[str | Path]) -> Forecast:
    """The ``expected.toml`` of the first folder that has one."""
    path = next((found for folder in folders if (found := Path(folder) / FILE).is_file()), None)
    if path is None:
        return Forecast()
    try:
        content = tomllib.loads(path.read_text())
        return Forecast(
            content["source"],
            {one["text"]: _expectation(one) for one in content.get("claim", ())},
            [_aim(one) for one in content.get("average", ())],
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as reason:
        raise DataError(f"{path} cannot be read: {type(reason).__name__}: {reason}") from None


def _expectation(given: Mapping[str, Any]) -> Expectation:
    if given["verdict"] not in VERDICTS:
        raise ValueError(f"unknown verdict {given['verdict']!r} of {given['text']!r}; known are {', '.join(VERDICTS)}")
    return Expectation(given["verdict"], given.get("because", ""))


def _aim(given: Mapping[str, Any]) -> Aim:
    if given["table"] not in TABLES:
        raise ValueError(f"unknown table {given['table']!r}")
    row = ClaimedRow(
        Specification.of(**given["method"]), given.get("conditioning", "nominal"), policy=given.get("policy", "paper")
    )
    return Aim(given["table"], row, float(given["aim"]), float(given["expected"]), given.get("because", ""))
