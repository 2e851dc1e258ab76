"""Inspection: what a dataset holds, as numbers and tables."""

from himatch.data.inspection.report import DatasetReport, FeatureReport, inspect_dataset
from himatch.data.inspection.table import show_report

__all__ = ["DatasetReport", "FeatureReport", "inspect_dataset", "show_report"]
