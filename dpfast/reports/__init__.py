"""Private tables, and reports of what is released from them."""

from dpfast.reports.facts import Facts
from dpfast.reports.report import Report
from dpfast.reports.table import Table

__all__ = ["Facts", "Report", "Table"]
