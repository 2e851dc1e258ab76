"""Report: the paper's tables and figures from the results of a benchmark, the paper's figures beside ours."""

from himatch.report.paper import PaperFigure, PaperTable, paper_tables
from himatch.report.tables import Cell, Row, Table, build_tables
from himatch.report.writing import Written, read_failures, write_report

__all__ = [
    "Cell",
    "PaperFigure",
    "PaperTable",
    "Row",
    "Table",
    "Written",
    "build_tables",
    "paper_tables",
    "read_failures",
    "write_report",
]
