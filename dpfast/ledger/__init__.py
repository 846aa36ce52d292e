"""Privacy budgets for all releases together, kept for a thread, a process or a file."""

from dpfast.ledger.journal import Charge, Note
from dpfast.ledger.ledger import Ledger
from dpfast.ledger.notes import SpentBy

__all__ = [
    "Charge",
    "Ledger",
    "Note",
    "SpentBy",
]
