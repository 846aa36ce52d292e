"""Which code runs while a charge is open: steps of the release, or code that the library does not own.

A release is charged once, and its steps are free: laws, draws, and releases of which it consists. While it reads its
records it also runs code of their containers, and calls functions of the user. These are no steps. What they release is
charged by itself, by two rules, each of which is enough for nearly all code:

- A step is called by the library. The frames from the step up to the one that opened the charge belong to modules of
  dpfast, or to methods of mechanisms and laws that users define.
- The library opens `foreign` where it calls code that it does not own. This covers functions without a Python frame,
  such as `functools.partial` and `map`, and threads, which are refused without a ledger while it is open.

Where an exception becomes a missing value, `swallowed` refuses each release, whatever is left of the budget: otherwise
charges, and what is missing, would depend on the data that decide whether there is a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from inspect import currentframe
from types import CodeType, FrameType
from typing import Any
from weakref import WeakSet

_OURS = frozenset({"dpfast", "contextlib", "functools"})  # modules whose frames may lie between steps
_THREADS = "dpfast._kernels._threads"  # starts threads of the library, which run steps


class Paid:
    """The active marker inside a release. Tasks and contexts that inherit it and outlive the release are charged again.

    Parameters
    ----------
    budget : dpfast.core.spending.Budget or None
        The budget that was charged; None for imagined samples outside of all budgets.
    declared : bool
        Whether the user declared the cost of everything inside (`Ledger.spend`).
    exact : bool
        Whether functions of the user may compute exact functions of the data inside: the scores of a reduction.
    name : function
        Returns the name of the budget in `blocks`.
    foreign : bool
        Whether code runs that the library does not own, of which nothing is a step.
    """

    def __init__(
        self,
        budget: Any,
        declared: bool = False,
        *,
        name: Callable[[], str],
        exact: bool = False,
        foreign: bool = False,
    ) -> None:
        self.budget, self.declared, self.name = budget, declared, name
        self.exact, self.foreign, self.over = exact, foreign, False
        self._frame: FrameType | None = None

    def open(self, frame: FrameType | None) -> None:
        """Note the frame whose block is open, outside of the modules of context managers."""
        while frame is not None and frame.f_globals.get("__name__") == "contextlib":
            frame = frame.f_back
        self._frame = frame

    def close(self) -> None:
        """End the release. Its frame, which may hold records, is no longer kept."""
        self.over, self._frame = True, None

    def covers(self) -> bool:
        """Whether what is being called is a part of what was charged."""
        return not self.over and (self.declared or (not self.foreign and self._is_step()))

    def _is_step(self) -> bool:
        frame: FrameType | None = currentframe()
        module = ""
        while frame is not None:
            if frame is self._frame:
                return True
            above, module = module, str(frame.f_globals.get("__name__"))
            if module.partition(".")[0] not in _OURS and frame.f_code not in _own:
                return above == _THREADS
            frame = frame.f_back
        return False


active: ContextVar[Any] = ContextVar("dpfast_budget", default=None)  # a budget, or a `Paid`
blocks: list[str] = []  # names of the budgets with an open block in any thread or task of this process
_own: WeakSet[CodeType] = WeakSet()


def owned(cls: type) -> None:
    """Let the methods of a class count as steps: a user's mechanism or law, whose guarantee the user states."""
    if cls.__module__.partition(".")[0] == "dpfast":
        return
    for item in list(vars(cls).values()):
        for function in (item, *(getattr(item, name, None) for name in ("__func__", "fget", "func", "__wrapped__"))):
            code = getattr(function, "__code__", None)
            if isinstance(code, CodeType) and (function is item or not isinstance(item, type)):
                _add(code)


def _add(code: CodeType) -> None:
    _own.add(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):  # comprehensions, lambdas and inner functions
            _add(constant)


_NOTHING: AbstractContextManager[None] = nullcontext()


def foreign() -> AbstractContextManager[None]:
    """Charge releases in the block by themselves: code runs that the library does not own.

    Threads without a ledger are refused meanwhile: the code may have started them. Nothing happens outside of releases,
    and where the user declared the cost.
    """
    paid = active.get()
    if not isinstance(paid, Paid) or paid.declared or paid.foreign or paid.budget is None:
        return _NOTHING
    return _opened(paid)


_swallowed: ContextVar[bool] = ContextVar("dpfast_swallowed", default=False)


@contextmanager
def swallowed() -> Iterator[None]:
    """Refuse all releases in the block: code runs that the library does not own, and its exceptions are lost."""
    token = _swallowed.set(True)
    try:
        with foreign():
            yield
    finally:
        _swallowed.reset(token)


def is_heard() -> bool:
    """Whether an exception here is not lost."""
    return not _swallowed.get()


@contextmanager
def _opened(paid: Paid) -> Iterator[None]:
    name = paid.name()
    token = active.set(Paid(paid.budget, name=paid.name, exact=paid.exact, foreign=True))
    blocks.append(name)
    try:
        yield
    finally:
        blocks.remove(name)
        active.reset(token)
