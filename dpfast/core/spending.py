"""Charging of releases to the active budget: each release is charged once, before it reads data.

Chunks of unknown length are counted before: their first pass precedes the charge.

`charged` wraps every function that releases (`hook` wraps the methods of a class when it is defined), or the function
opens `spending` itself. If no budget is active, this costs one lookup of a context variable. Steps inside a release
are free: they are part of the charged release. Code of containers and users that runs meanwhile is no step, and what it
releases is charged by itself: `dpfast.core.foreign` tells one from the other.

Threads and processes started in a `with ledger:` block do not inherit its context variable. Therefore a release without
a budget is refused while such a block is open anywhere in the process, and objects that leave the process are
`Carrier` objects, which carry a `Ticket`.
"""

from __future__ import annotations

import inspect
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial, wraps
from typing import Any, NamedTuple, Protocol, TypeVar, cast
from weakref import WeakValueDictionary

from dpfast.core import checks
from dpfast.core.foreign import Paid, active, blocks, foreign, is_heard, owned
from dpfast.core.privacy import PrivacyProfile
from dpfast.errors import BudgetError
from dpfast.random import bit_generator

_Method = TypeVar("_Method", bound=Callable[..., Any])


class Cost(NamedTuple):
    """The cost of a number of releases, and what they are."""

    label: str
    profile: PrivacyProfile
    times: int = 1


class Budget(Protocol):
    """The protocol of a budget that can be active: `dpfast.Ledger`."""

    @property
    def sums_epsilons(self) -> bool:
        """Whether the cost of a release is its epsilon and delta alone."""

    def reserve_all(self, costs: Sequence[Cost]) -> None:
        """Record all costs, or raise a `BudgetError` without recording any of them."""

    def has(self, label: str) -> bool:
        """Whether a release of this label was charged."""

    def _ticket(self) -> Ticket:
        """Return a handle that finds the budget from other contexts and processes."""


known: WeakValueDictionary[str, Any] = WeakValueDictionary()  # the budgets of this process by name
_opened = threading.RLock()  # all threads find one budget of a name, whichever opened it: `setdefault` is not atomic
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_opened.acquire, after_in_parent=_opened.release, after_in_child=_opened.release)

_ELSEWHERE = (
    "a ledger is active in another thread or task of this process, not here: enter it here by `with ledger:`, "
    "use ledger.release, or start the code that releases with contextvars.copy_context().run"
)
_LEFT_BEHIND = (
    "this was copied or sent while a ledger was active, which cannot be charged from here: give the ledger a path=, "
    "and enter it here by `with ledger:`"
)
_APART = "these were copied or sent under different ledgers: a call is charged to one, enter it here by `with ledger:`"


def check_heard() -> None:
    """Raise a BudgetError where exceptions are lost. Every charge calls this first."""
    if not is_heard():
        raise BudgetError(
            "a release in a cell, or in the estimator of a block, is refused whatever is left: an exception there "
            "counts as a missing value; release before, and use the result"
        )


class Ticket:
    """A handle that finds a budget outside of its context: in this process by name, in others by its file, if any.

    Parameters
    ----------
    name : str
        The key in `known`; "" for a budget that cannot be found, which refuses releases.
    opening : (function, arguments), optional
        The call that opens its file.
    """

    def __init__(self, name: str = "", opening: tuple[Callable[..., Budget], tuple[Any, ...]] | None = None) -> None:
        self.name, self._opening = name, opening
        self._budget: Budget | None = known.get(name)

    def __reduce__(self) -> Any:
        return Ticket, (self.name, self._opening)

    def budget(self) -> Budget:
        """Return the budget, or raise a BudgetError."""
        if self._budget is None:
            if self._opening is None:
                raise BudgetError(_LEFT_BEHIND)
            function, arguments = self._opening
            budget = function(*arguments)
            with _opened:
                self._budget = known.setdefault(self.name, budget)
        return self._budget


class Bearer:
    """Base class of all objects that may have a ticket."""

    @property
    def _ticket(self) -> Ticket | None:
        return None


class Carrier(Bearer):
    """Base class of all objects that release: a copy or pickle made under a budget carries its `Ticket`."""

    _ticket: Ticket | None = None
    _lent: Ticket | None = None  # for copies made without an active budget, while a block of this budget is open

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        ticket = claim(self) or (Ticket() if blocks and active.get() is None else None)
        if ticket is None:
            return state
        own, *slots = state if isinstance(state, tuple) else (state,)  # a pair in subclasses with slots
        own = {**(own or {}), "_ticket": ticket}
        return (own, *slots) if slots else own


def budget_here() -> Budget | None:
    """Return the budget that is charged for a release here; None for a step of a release, and if no
    budget is active.
    """
    marker = active.get()
    if isinstance(marker, Paid):
        return None if marker.covers() else cast("Budget | None", marker.budget)
    return cast("Budget | None", marker)


def sums_epsilons() -> bool:
    """Whether the cost of a release here is its epsilon and delta alone: no budget is active, or one that sums both."""
    budget = active.get()
    if isinstance(budget, Paid):
        budget = budget.budget
    return budget is None or bool(budget.sums_epsilons)


def claim(of: Carrier | type[Carrier]) -> Ticket | None:
    """Return the ticket for copies of the object: that of the context's budget, else the one that
    it carries or lends.
    """
    budget = budget_here()
    if budget is None:
        return of._ticket or (of._lent if of._lent is not None and of._lent.name in blocks else None)
    return budget._ticket()


def payer(of: object = None) -> Budget | None:
    """Return the budget to charge for a release by `of` here; None if it is free, outside all budgets or inside a
    release.

    Raises
    ------
    BudgetError
        If a budget is active elsewhere in this process, or `of` carries one that cannot be charged here.
    """
    marker: Any = active.get()
    if isinstance(marker, Paid):
        if marker.covers():
            return None
        marker = marker.budget
    if marker is None:
        ticket = of._ticket if isinstance(of, Bearer) else None  # `of` may be private data
        if ticket is not None:
            return ticket.budget()
        if blocks:
            raise BudgetError(_ELSEWHERE)
    budget: Budget | None = marker
    return budget


def spending(
    profile: PrivacyProfile,
    *,
    label: str,
    times: int = 1,
    of: object = None,
    declared: bool = False,
    exact: bool = False,
) -> AbstractContextManager[None]:
    """Charge `profile`, `times` times, for all releases in the block; free if no budget is active.

    `of` is the object that releases, if it can carry a budget; `declared` means that the user declared the cost, and
    `exact` that functions of the user may compute exact functions of the data.
    """
    return spending_together((Cost(label, profile, times),), of=(of,), declared=declared, exact=exact)


def spending_together(
    costs: Sequence[Cost], *, of: Sequence[object], declared: bool = False, exact: bool = False
) -> AbstractContextManager[None]:
    """Charge all costs for the releases of the objects `of` in the block, or none of them if one does not fit."""
    return _Spending(costs, of, declared=declared, exact=exact)


def imagined() -> AbstractContextManager[None]:
    """Allow the laws of imagined samples in the block, and draws from them: they depend on no record."""
    return _Imagined()


class _Inside:
    """A block with an active marker. A class, because generators with `contextmanager` take a tenth of a release."""

    __slots__ = ("_paid", "_token")

    def __enter__(self) -> None:
        paid = self._paid = self._opened()
        if paid is not None:
            frame = inspect.currentframe()
            paid.open(frame and frame.f_back)  # the frame whose block it is
            del frame  # a frame that holds itself keeps the records of its callers until a search for cycles
            before = active.get()
            try:
                self._token = active.set(paid)
            except BaseException:  # an interrupt: the block is not entered, and `__exit__` not called
                active.set(before)
                raise

    def __exit__(self, *exception: object) -> None:
        if self._paid is not None:
            try:
                self._paid.close()
            finally:
                active.reset(self._token)

    def _opened(self) -> Paid | None:
        """Return the marker, or None if there is no budget."""
        raise NotImplementedError


class _Spending(_Inside):
    """See `spending_together`."""

    __slots__ = ("_costs", "_declared", "_exact", "_of")

    def __init__(self, costs: Sequence[Cost], of: Sequence[object], *, declared: bool, exact: bool) -> None:
        self._costs, self._of, self._declared, self._exact = costs, of, declared, exact

    def _opened(self) -> Paid | None:
        budget = _common_payer(self._of)
        if budget is None:
            return None
        budget.reserve_all(self._costs)
        return Paid(budget, self._declared, name=partial(_name, budget), exact=self._exact)


class _Imagined(_Inside):
    """See `imagined`."""

    __slots__ = ()

    def _opened(self) -> Paid | None:
        marker = active.get()
        budget = marker.budget if isinstance(marker, Paid) else marker
        declared = isinstance(marker, Paid) and marker.declared and not marker.over
        return Paid(budget, declared, name=partial(_name, budget))


def _name(budget: Budget) -> str:
    return budget._ticket().name


def unpaid(source: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Yield records. A release that makes them is not part of the release that reads them: it is charged separately."""
    with foreign():
        pieces = source()
    while True:
        with foreign():
            piece = next(pieces, _END)
        if piece is _END:
            return
        yield piece


_END = object()


def _common_payer(of: Sequence[object]) -> Budget | None:
    """Return the one budget to charge for releases by all these objects."""
    if len(of) == 1:
        return payer(of[0])
    budgets = [payer(item) for item in of]
    if any(budget is not budgets[0] for budget in budgets):
        raise BudgetError(_APART)
    return budgets[0]


def charged(method: _Method) -> _Method:
    """Decorate a method that releases: charge `self.privacy_profile` for each of `size` releases."""

    @wraps(method)
    def release(self: Any, *args: Any, **options: Any) -> Any:
        if payer(self) is None:
            return method(self, *args, **options)
        # Wrong arguments that are detected without the data cost nothing. Each is converted once: the method gets what
        # was charged.
        shape = checks.shape(options.get("size"))
        if options.get("size") is not None:
            options["size"] = shape
        bit_generator(options.get("rng"))
        if "workers" in options:
            options["workers"] = checks.threads(options["workers"])
        times = math.prod(shape)
        with spending(self.privacy_profile, times=times, label=repr(self), of=self):
            return method(self, *args, **options)

    return charging(cast(_Method, release))


def charging(method: _Method) -> _Method:
    """Mark a method as one that charges its releases."""
    method.charged = True  # type: ignore[attr-defined]
    return method


def refuse(reason: str, of: object = None) -> None:
    """Raise a BudgetError while a budget is active, or if `of` carries one; the first step of noise of unknown use."""
    may_pay = blocks or active.get() is not None or (of is not None and isinstance(of, Bearer))
    if may_pay and payer(of) is not None:
        marker = active.get()
        if not (reason is EXACT and isinstance(marker, Paid) and marker.exact and not marker.over):
            raise BudgetError(reason)


def refused(reason: str) -> Callable[[_Method], _Method]:
    """Decorate an exact function of private data: it is refused while a budget is active.

    Every function whose docstring says private in capitals is refused, except those of states, which are data on the
    way to a release.
    """

    def decorate(function: _Method) -> _Method:
        @wraps(function)
        def guarded(*args: Any, **options: Any) -> Any:
            of = args[0] if args else None
            if blocks or active.get() is not None or (isinstance(of, Bearer) and of._ticket is not None):
                refuse(reason, of)
            return function(*args, **options)

        guarded.refused = True  # type: ignore[attr-defined]
        return cast(_Method, guarded)

    return decorate


NOISE = "the privacy cost of noise is unknown: draw it inside `with ledger.spend(dpf.Privacy(...)):`"
LAW = "a law depends on the data, and no budget covers it: make it outside the ledger"
DRAW = "a draw from a law is a release, and no budget covers it: release by the mechanism, or draw outside the ledger"
STEP = "a step of a release needs a budget, and none covers it: release by the mechanism, or outside the ledger"
EXACT = "this is an exact function of the data, and no budget covers it: call it outside the ledger"
_RELEASES = ("__call__", "release", "finish", "randomize", "respond")
_LAWS = ("law", "law_of")
_STEPS = ("draw", "draw_from", "draws", "groups", "law_of", "read")


def hook(cls: type) -> None:
    """Wrap the releases, the laws and the draws from summaries that a class itself defines."""
    owned(cls)
    for name in _RELEASES:
        if name in vars(cls):
            setattr(cls, name, charged(vars(cls)[name]))
    for name in _LAWS:
        if name in vars(cls):
            setattr(cls, name, refused(LAW)(vars(cls)[name]))


def hook_plan(cls: type) -> None:
    """Refuse the steps of a release that a class of plans itself defines, unless they are paid for."""
    owned(cls)
    for name in _STEPS:
        if name in vars(cls):
            setattr(cls, name, _step(vars(cls)[name]))


def _step(method: _Method) -> _Method:
    """Return a method of a plan that is refused while a budget is active that did not pay for it."""

    @wraps(method)
    def guarded(self: Any, *args: Any, **options: Any) -> Any:
        if blocks or active.get() is not None or self.mechanism._ticket is not None:
            refuse(STEP, self.mechanism)
        return method(self, *args, **options)

    guarded.refused = True  # type: ignore[attr-defined]
    return cast(_Method, guarded)


def guard_noise(cls: type) -> None:
    """Refuse the noise that a class itself draws while a budget is active, except as steps of releases."""
    owned(cls)
    for name in ("fill", "draw"):
        method = vars(cls).get(name)
        if method is not None and not getattr(method, "__isabstractmethod__", False):
            setattr(cls, name, _noise(method))


def _noise(method: _Method) -> _Method:
    """Return a method that draws noise and is refused while a budget is active that did not pay for it."""

    @wraps(method)
    def guarded(self: Any, *args: Any) -> Any:
        if blocks or active.get() is not None:
            refuse(NOISE)
        return method(self, *args)

    guarded.refused = True  # type: ignore[attr-defined]
    return cast(_Method, guarded)


def paid_before(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that would be refused, for a step of a release that was charged earlier."""
    return partial(method.__wrapped__, method.__self__)  # type: ignore[attr-defined]


def guard(cls: type) -> None:
    """Refuse the draws from a law that a class itself defines while a budget is active, except as steps of releases."""
    owned(cls)
    method = vars(cls).get("sample")
    if method is None or getattr(method, "__isabstractmethod__", False):
        return

    @wraps(method)
    def sample(self: Any, size: Any = None, rng: Any = None) -> Any:
        if blocks or active.get() is not None:
            refuse(DRAW)
        return method(self, size, rng)

    sample.refused = True  # type: ignore[attr-defined]
    setattr(cls, "sample", sample)  # noqa: B010
