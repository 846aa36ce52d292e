"""Privacy budgets for all releases together, kept for a thread, a process or a file."""

from dpfast.ledger.journal import Charge
from dpfast.ledger.ledger import Ledger

__all__ = [
    "Charge",
    "Ledger",
]
