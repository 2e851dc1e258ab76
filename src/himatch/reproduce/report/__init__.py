"""Report: the paper's tables and figures from the results of a benchmark, the paper's figures beside ours."""

from himatch.reproduce.paper import PaperFigure, PaperTable, paper_tables
from himatch.reproduce.report.claims import CLAIMS, judge_claims
from himatch.reproduce.report.findings import Finding
from himatch.reproduce.report.forecast import Forecast, read_forecast
from himatch.reproduce.report.table import Cell, ResultRow, ResultTable
from himatch.reproduce.report.tables import build_tables
from himatch.reproduce.report.verdicts import Claim
from himatch.reproduce.report.writer import Written, read_failures, report_on, write_report

__all__ = [
    "CLAIMS",
    "Cell",
    "Claim",
    "Finding",
    "Forecast",
    "PaperFigure",
    "PaperTable",
    "ResultRow",
    "ResultTable",
    "Written",
    "build_tables",
    "judge_claims",
    "paper_tables",
    "read_failures",
    "read_forecast",
    "report_on",
    "write_report",
]
