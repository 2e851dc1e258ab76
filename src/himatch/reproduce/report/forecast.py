"""What was expected before the results were there: ``expected.toml`` beside them, and what came of it.

It names the source tree that the results are to be of. What other results say is no answer to it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from himatch.errors import DataError
from himatch.reproduce.report.claimed import ClaimedRow, Found, budget_of, find_row
from himatch.reproduce.report.differences import Verdict
from himatch.reproduce.report.findings import Finding
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.results import JobResult
from himatch.reproduce.specification import Specification
from himatch.reproduce.suite import AVERAGE
from himatch.reproduce.suites import TABLES

Kind = TypeVar("Kind")
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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise DataError(f"{path} is no TOML file: {reason}") from None
    claims = [_expectation(one, f"{path}, {where}") for where, one in _tables(content, "claim", path)]
    aims = [_aim(one, f"{path}, {where}") for where, one in _tables(content, "average", path)]
    return Forecast(_entry(content, "source", str, str(path)), dict(claims), aims)


def _tables(content: Mapping[str, Any], name: str, path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Those of a kind, each with where it stands."""
    found = content.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise DataError(f"{path}: write each {name} below a line [[{name}]]")
    return [(f"{name} {number}", one) for number, one in enumerate(found, start=1)]


def _entry(given: Mapping[str, Any], name: str, kind: type[Kind], where: str) -> Kind:
    if name not in given:
        raise DataError(f"{where} has no {name}")
    if not isinstance(given[name], kind):
        words = {str: "text", float: "a number", dict: 'a table like { name = "cdt" }'}
        raise DataError(f"{where}: {name} must be {words[kind]}, got {given[name]!r}")
    found: Kind = given[name]
    return found


def _expectation(given: Mapping[str, Any], where: str) -> tuple[str, Expectation]:
    verdict = _entry(given, "verdict", str, where)
    known = next((one for one in VERDICTS if one == verdict), None)
    if known is None:
        raise DataError(f"{where}: unknown verdict {verdict!r}; known are {', '.join(VERDICTS)}")
    return _entry(given, "text", str, where), Expectation(known, str(given.get("because", "")))


def _aim(given: Mapping[str, Any], where: str) -> Aim:
    table = _entry(given, "table", str, where)
    if table not in TABLES:
        raise DataError(f"{where}: unknown table {table!r}; known are {', '.join(TABLES)}")
    method = _entry(given, "method", dict, where)
    _entry(method, "name", str, f"{where}, method")
    row = ClaimedRow(
        Specification.of(**method), given.get("conditioning", "nominal"), policy=given.get("policy", "paper")
    )
    aim, expected = (_number(given, name, where) for name in ("aim", "expected"))
    return Aim(table, row, aim, expected, str(given.get("because", "")))


def _number(given: Mapping[str, Any], name: str, where: str) -> float:
    found = given.get(name)
    value = _entry({**given, name: float(found)} if isinstance(found, int) else given, name, float, where)
    if not math.isfinite(value):
        raise DataError(f"{where}: {name} must be finite, got {value}")
    return value
