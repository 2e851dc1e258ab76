"""Everything that a report shows, before it is put into a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from himatch.reproduce.report.claims import judge_claims
from himatch.reproduce.report.costs import Costs, costs_of
from himatch.reproduce.report.figures import Picture, draw, draw_datasets
from himatch.reproduce.report.findings import Finding
from himatch.reproduce.report.forecast import VERDICTS, Came, Expectation, Forecast
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
    expected: Mapping[str, Expectation]
    """By claim, of those whose results can answer."""
    aims: Sequence[Came]

    @property
    def every_picture(self) -> list[Picture]:
        """Wherever it is shown."""
        return [*self.overview, *(picture for some in self.pictures.values() for picture in some)]

    @property
    def forecast(self) -> str:
        """How much came as expected; nothing where nothing was expected, or nothing can answer yet."""
        judged = [f for f in self.findings if f.claim in self.expected and f.verdict in VERDICTS]
        ran = [came for came in self.aims if came.mean is not None]
        met = sum(self.expected[f.claim].verdict == f.verdict for f in judged)
        parts = [f"{met} of {len(judged)} verdicts are as expected before the runs"] if judged else []
        parts += [f"{sum(came.reached for came in ran)} of {len(ran)} averages reach what was aimed at"] if ran else []
        return f"{'; '.join(parts)}." if parts else ""

    @property
    def not_run(self) -> list[tuple[Suite, TableLayout]]:
        """Tables without any result."""
        shown = {table.label for table in self.tables}
        return [TABLES[label] for label in TABLES if label not in shown]


def _place(result: JobResult) -> tuple[str, ...]:
    method = display_name(result.method), policy_of(result)
    return result.suite, result.task, result.feature, *method, result.conditioning, result.budget


def gather(
    results: Sequence[JobResult], failures: Mapping[str, str], title: str, forecast: Forecast | None = None
) -> Contents:
    """Arrange, judge and draw."""
    forecast = forecast or Forecast()
    ordered = with_returns(sorted(results, key=_place))
    tables = build_tables(ordered)
    pictures = {table.label: draw(table) for table in tables} | {"dataset": draw_datasets(ordered)}
    findings, orderings = judge_claims(tables), judge_orderings(tables)
    overview, costs = overview_pictures(tables), costs_of(ordered, tables)
    answers = {found.claim: forecast.of(found) for found in findings}
    expected = {claim: answer for claim, answer in answers.items() if answer is not None}
    judged = findings, orderings, tables, pictures, overview, failures, costs
    return Contents(title, ordered, *judged, expected, forecast.came(tables))
