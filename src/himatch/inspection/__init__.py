"""Inspection: what a dataset holds, as numbers, tables and a picture."""

from himatch.inspection.plot import plot_report
from himatch.inspection.report import DatasetReport, FeatureReport, inspect_dataset
from himatch.inspection.table import show_report

__all__ = ["DatasetReport", "FeatureReport", "inspect_dataset", "plot_report", "show_report"]
