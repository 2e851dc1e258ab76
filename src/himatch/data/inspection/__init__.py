"""Inspection: what a dataset holds, as numbers and tables."""

from himatch.data.inspection.report import DatasetReport, FeatureReport, show_report
from himatch.data.inspection.summary import inspect_dataset

__all__ = ["DatasetReport", "FeatureReport", "inspect_dataset", "show_report"]
