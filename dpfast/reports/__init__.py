"""Private tables, and reports of what is released from them."""

from dpfast.reports.columns import Columns
from dpfast.reports.facts import Facts
from dpfast.reports.plans import DryRun, Plan
from dpfast.reports.report import Report
from dpfast.reports.table import Table

__all__ = ["Columns", "DryRun", "Facts", "Plan", "Report", "Table"]
