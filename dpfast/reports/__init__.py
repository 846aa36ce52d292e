"""Private tables, and reports of what is released from them."""

from dpfast.reports.columns import TableColumns
from dpfast.reports.facts import Facts
from dpfast.reports.plans import DryRun, ReportPlan
from dpfast.reports.report import Report, TableRelease
from dpfast.reports.table import Table

__all__ = ["DryRun", "Facts", "Report", "ReportPlan", "Table", "TableColumns", "TableRelease"]
