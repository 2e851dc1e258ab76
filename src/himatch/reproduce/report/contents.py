"""Everything that a report shows, before it is put into a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from himatch.reproduce.report.claims import judge_claims
from himatch.reproduce.report.costs import Costs, costs_of
from himatch.reproduce.report.figures import Picture, draw, draw_datasets
from himatch.reproduce.report.findings import Finding
from himatch.reproduce.report.orderings import Orderings, judge_orderings
from himatch.reproduce.report.overview import overview_pictures
from himatch.reproduce.report.rows import policy_of
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.report.tables import build_tables
from himatch.reproduce.report.target_returns import with_returns
from himatch.reproduce.results import JobResult
from himatch.reproduce.specification import display_name
from himatch.reproduce.suite import Suite, TableLayout
from himatch.reproduce.suites import TABLES


@dataclass(frozen=True)
class Contents:
    """What the formats share."""

    title: str
    results: Sequence[JobResult]
    findings: Sequence[Finding]
    orderings: Sequence[Orderings]
    tables: Sequence[ResultTable]
    pictures: Mapping[str, Sequence[Picture]]
    """By the label of their table; those of the suite ``data`` under ``dataset``."""
    overview: Sequence[Picture]
    """Of the first screen."""
    failures: Mapping[str, str]
    costs: Costs

    @property
    def every_picture(self) -> list[Picture]:
        """Wherever it is shown."""
        return [*self.overview, *(picture for some in self.pictures.values() for picture in some)]

    @property
    def not_run(self) -> list[tuple[Suite, TableLayout]]:
        """Tables without any result."""
        shown = {table.label for table in self.tables}
        return [TABLES[label] for label in TABLES if label not in shown]


def _place(result: JobResult) -> tuple[str, ...]:
    method = display_name(result.method), policy_of(result)
    return result.suite, result.task, result.feature, *method, result.conditioning, result.budget


def gather(results: Sequence[JobResult], failures: Mapping[str, str], title: str) -> Contents:
    """Arrange, judge and draw."""
    ordered = with_returns(sorted(results, key=_place))
    tables = build_tables(ordered)
    pictures = {table.label: draw(table) for table in tables} | {"dataset": draw_datasets(ordered)}
    findings, orderings = judge_claims(tables), judge_orderings(tables)
    overview = overview_pictures(tables)
    return Contents(title, ordered, findings, orderings, tables, pictures, overview, failures, costs_of(ordered))
