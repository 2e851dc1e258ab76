"""Report: the paper's tables and figures from the results of a benchmark, the paper's figures beside ours."""

from himatch.report.claims import CLAIMS, judge_claims
from himatch.report.judging import Claim, Finding
from himatch.report.paper import PaperFigure, PaperTable, paper_tables
from himatch.report.tables import Cell, Row, Table, build_tables
from himatch.report.writing import Written, read_failures, write_report

__all__ = [
    "CLAIMS",
    "Cell",
    "Claim",
    "Finding",
    "PaperFigure",
    "PaperTable",
    "Row",
    "Table",
    "Written",
    "build_tables",
    "judge_claims",
    "paper_tables",
    "read_failures",
    "write_report",
]
