"""Budgets: what all releases together may tell about one record, kept for a thread, a process or a file."""

from dpfast.ledger.journal import Charge
from dpfast.ledger.ledger import Ledger

__all__ = [
    "Charge",
    "Ledger",
]
