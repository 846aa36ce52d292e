"""States of which there must be only one: a copy would answer the same question again, with other noise."""

from __future__ import annotations

import os
import threading
from typing import NoReturn, SupportsIndex

from dpfast.core.spending import STEP, Budget, budget_here, refuse
from dpfast.errors import BudgetError
from dpfast.running.files import StateFile


class Sole:
    """Base class of states that cannot be copied, pickled or used after a fork.

    The difference of two answers with other noise is free of charge: their mean has less noise than was paid for. Other
    data with the same noise would be worse, since their difference has no noise at all. So there is one state, in the
    process that started it, and one answer of each kind. With a file, another process goes on when this one has ended.
    """

    def __init__(self, mechanism: object, file: StateFile | None = None) -> None:
        if file is None or file.ended:  # not by `Started.start`, which charges a state or opens its file
            refuse(STEP, mechanism)
        self._process, self._file, self._ended = os.getpid(), file, ""
        self._label: str = repr(mechanism)
        self._payer: Budget | None = None  # the ledger that is known to have paid
        self._lock = threading.Lock()  # two threads must not answer the same question with other noise

    def close(self) -> None:
        """Close the file, if there is one, so that another process can go on; the state does not answer any more."""
        self.check_process()
        with self._lock:
            self.end("closed")

    def end(self, reason: str) -> None:
        """Answer no more; the first reason stays."""
        self._ended = self._ended or reason
        if self._file is not None and not self._file.ended:
            self._file.end(reason)

    def check_open(self) -> None:
        """Raise a ValueError after the end: an answer that nobody counts would be free, if only by its kind."""
        if self._file is not None and self._file.ended:
            raise ValueError(f"the state {self._file.path} is {self._file.ended}: start it again from its file")
        if self._ended:
            raise ValueError(f"the state is {self._ended}: start another state")

    def check_paid(self) -> None:
        """Raise a BudgetError in the block of a ledger that did not pay for the state, unless it has before."""
        budget = budget_here()
        if budget is not None and budget is not self._payer:
            check_charged(budget, self._label)
            self._payer = budget

    def check_process(self) -> None:
        """Raise a RuntimeError in another process than the one that started the state: a fork copies it."""
        if os.getpid() != self._process:
            raise RuntimeError(f"{self._refusal()}: it answers in the process that started it, not after a fork")

    def _refusal(self) -> str:
        return (
            f"a {type(self).__name__} cannot be copied or pickled, because a copy would answer again with other noise"
        )

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(self._refusal())


def check_charged(budget: Budget, label: str) -> None:
    """Raise a BudgetError if the ledger has no charge for a state of these parameters."""
    if not budget.has(label):
        raise BudgetError(
            f"the state was not charged to this ledger, which answers for all releases in its block: start it in the "
            f"block, use it outside, or charge it with ledger.reserve(profile, label={label!r})"
        )
