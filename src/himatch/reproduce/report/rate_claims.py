"""Claims about success rates: that a row reaches its goals at least so often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from himatch.reproduce.report import text as wording
from himatch.reproduce.report.claimed import ClaimedRow, Gap, find_row, missing
from himatch.reproduce.report.differences import AS_CLAIMED, OTHER_WAY, Verdict
from himatch.reproduce.report.findings import Finding, Side, Source
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.suites import TABLES


@dataclass(frozen=True)
class RateClaim:
    """That a rate in a column is at least so high; too close to call where that lies in its interval over seeds."""

    text: str
    table: str
    ours: ClaimedRow
    column: str
    least: float
    source: Source = "himatch"

    def judge(self, tables: Mapping[str, ResultTable], budget: str) -> Finding:
        """The verdict on some tables."""
        if self.table not in tables:
            return Finding(self.text, "not run", remark=f"suite {TABLES[self.table][0].name} missing")
        table = tables[self.table]
        found = find_row(table, self.ours, budget, self.column)
        if isinstance(found, Gap):
            return Finding(self.text, "not run", remark=missing([found]))
        low, high = found.score.interval
        verdict: Verdict = (
            "holds" if low >= self.least else "does not hold" if high < self.least else "too close to call"
        )
        remark = "" if verdict != "too close to call" else AS_CLAIMED if found.score.mean >= self.least else OTHER_WAY
        ours = Side(found.row.name, f"{wording.with_interval(found.score, table)} %")
        limit = Side("at least", f"{100 * self.least:g} %")
        return Finding(self.text, verdict, ours, limit, remark)
