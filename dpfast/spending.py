"""Where releases meet a budget: each one announces itself here, once, before it looks at data.

Everything that releases is wrapped by `charged` (the classes by `hook`, when they are made) or opens `spending` itself.
While no budget is active that costs a look at a context variable. Inside a release everything is free: what a mechanism
draws on its way is part of what was announced.

A context variable is not seen by threads and processes that a block of `with ledger:` starts. So a release that finds
no budget is refused while such a block is open anywhere in the process, and what leaves the process is a `Carrier`: it
takes a `Ticket` along.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Protocol, TypeVar, cast
from weakref import WeakValueDictionary

from dpfast import _checks
from dpfast.errors import BudgetError
from dpfast.privacy import PrivacyProfile
from dpfast.random import bit_generator

_Method = TypeVar("_Method", bound=Callable[..., Any])


class Budget(Protocol):
    """What can be active: `dpfast.Ledger`."""

    def reserve(self, profile: PrivacyProfile, *, times: int, label: str) -> None:
        """Record the spending, or raise a `BudgetError` and record nothing."""

    def _ticket(self) -> Ticket:
        """What finds it from other contexts and processes."""


class _Paid:
    """What is active inside a release; tasks and contexts that inherit it may outlive that, and then pay by themselves.

    Parameters
    ----------
    budget : Budget
        Who paid.
    declared : bool
        Whether somebody answers for everything in it (`Ledger.spend`).
    """

    def __init__(self, budget: Budget, declared: bool) -> None:
        self.budget, self.declared, self.over = budget, declared, False


active: ContextVar[Budget | _Paid | None] = ContextVar("dpfast_budget", default=None)
blocks: list[str] = []  # of `with ledger:`, open in whatever thread or task of this process: the names of their budgets
known: WeakValueDictionary[str, Any] = WeakValueDictionary()  # the budgets of this process by their names

_ELSEWHERE = (
    "a ledger is active in another thread or task of this process, not here: enter it here by `with ledger:`, "
    "use ledger.release, or start what releases with contextvars.copy_context().run"
)
_LEFT_BEHIND = (
    "this was copied or sent while a ledger was active, which cannot be charged from here: give the ledger a path=, "
    "and enter it here by `with ledger:`"
)


class Ticket:
    """Finds a budget outside of its context: in this process itself, in others by its file, if it has one.

    Parameters
    ----------
    name : str
        Its key in `known`; "" for a budget that cannot be found: a release is then refused.
    opening : (function, arguments), optional
        What opens its file.
    """

    def __init__(self, name: str = "", opening: tuple[Callable[..., Budget], tuple[Any, ...]] | None = None) -> None:
        self.name, self._opening = name, opening
        self._budget: Budget | None = known.get(name)

    def __reduce__(self) -> Any:
        return Ticket, (self.name, self._opening)

    def budget(self) -> Budget:
        """The budget, or a BudgetError."""
        if self._budget is None:
            if self._opening is None:
                raise BudgetError(_LEFT_BEHIND)
            function, arguments = self._opening
            self._budget = known.setdefault(self.name, function(*arguments))
        return self._budget


class Carrier:
    """Base class of all that makes releases: a copy or pickle that is made under a budget carries its `Ticket`."""

    _ticket: Ticket | None = None
    _lent: Ticket | None = None  # for copies that are made where no budget is active, while a block of this one is open

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        ticket = claim(self) or (Ticket() if blocks and active.get() is None else None)
        return state if ticket is None else {**(state or {}), "_ticket": ticket}


def _here() -> Budget | _Paid | None:
    """What is active; inside a release that is over, the budget that paid for it."""
    budget = active.get()
    return budget.budget if isinstance(budget, _Paid) and budget.over else budget


def claim(of: Carrier | type[Carrier]) -> Ticket | None:
    """The ticket for copies of it: of the budget of this context, else the one that it carries, or lends."""
    budget = _here()
    if budget is None or isinstance(budget, _Paid):
        return of._ticket or (of._lent if of._lent is not None and of._lent.name in blocks else None)
    return budget._ticket()


def payer(of: object = None) -> Budget | None:
    """The budget that pays for a release by `of` here; None where it is free: outside all budgets, inside a release.

    Raises
    ------
    BudgetError
        A budget is active elsewhere in this process, or `of` carries one that cannot be charged here.
    """
    budget = _here()
    if budget is None:
        # By its type, for it may be private data.
        ticket: Ticket | None = cast(Carrier, of)._ticket if hasattr(type(of), "_ticket") else None
        if ticket is not None:
            return ticket.budget()
        if blocks:
            raise BudgetError(_ELSEWHERE)
        return None
    return None if isinstance(budget, _Paid) else budget


@contextmanager
def spending(
    profile: PrivacyProfile, *, label: str, times: int = 1, of: object = None, declared: bool = False
) -> Iterator[None]:
    """Everything released in here is paid for by `profile`, `times` times, all at once; free where no budget is active.

    `of` is what releases, where that can carry a budget; `declared` says that somebody answers for the cost.
    """
    budget = payer(of)
    if budget is None:
        yield
        return
    budget.reserve(profile, times=times, label=label)
    paid = _Paid(budget, declared)
    token = active.set(paid)
    try:
        yield
    finally:
        paid.over = True
        active.reset(token)


def unpaid(source: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Records as they come. What is released to make them is no part of the release that reads them: it is charged."""
    with _to_be_paid():
        pieces = source()
    while True:
        with _to_be_paid():
            piece = next(pieces, _END)
        if piece is _END:
            return
        yield piece


_END = object()


@contextmanager
def _to_be_paid() -> Iterator[None]:
    """As outside of a release, unless somebody answers for everything in it."""
    paid = active.get()
    if not isinstance(paid, _Paid) or paid.declared:
        yield
        return
    token = active.set(paid.budget)
    try:
        yield
    finally:
        active.reset(token)


def charged(method: _Method) -> _Method:
    """A method that releases: `self.privacy_profile`, for each of `size` releases."""

    @wraps(method)
    def release(self: Any, *args: Any, **options: Any) -> Any:
        if payer(self) is None:
            return method(self, *args, **options)
        # Wrong arguments that can be told without the data cost nothing.
        times = math.prod(_checks.shape(options.get("size")))
        bit_generator(options.get("rng"))
        _checks.threads(options.get("workers", 1))
        with spending(self.privacy_profile, times=times, label=repr(self), of=self):
            return method(self, *args, **options)

    release.charged = True  # type: ignore[attr-defined]
    return cast(_Method, release)


def refused(reason: str) -> Callable[[_Method], _Method]:
    """A function of private data that is no release, or noise whose use is not known: none while a budget is active.

    So is everything that its docstring calls private in capitals, but for states: data on the way to a release.
    """

    def decorate(function: _Method) -> _Method:
        @wraps(function)
        def guarded(*args: Any, **options: Any) -> Any:
            if payer(args[0] if args else None) is not None:
                raise BudgetError(reason)
            return function(*args, **options)

        guarded.refused = True  # type: ignore[attr-defined]
        return cast(_Method, guarded)

    return decorate


LAW = "a law depends on the data, and no budget pays for it: make it outside the ledger"
EXACT = "this is an exact function of the data, and no budget pays for it: call it outside the ledger"
_RELEASES = ("__call__", "release", "finish", "randomize", "respond")
_LAWS = ("law", "law_of")


def hook(cls: type) -> None:
    """Wrap the releases, and the laws, that a class itself defines."""
    for name in _RELEASES:
        if name in vars(cls):
            setattr(cls, name, charged(vars(cls)[name]))
    for name in _LAWS:
        if name in vars(cls):
            setattr(cls, name, refused(LAW)(vars(cls)[name]))
