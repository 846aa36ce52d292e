"""Where releases meet a budget: each one announces itself here, once, before it looks at data.

Everything that releases is wrapped by `charged` (the classes by `hook`, when they are made) or opens `spending` itself.
While no budget is active that costs a look at a context variable. Inside a release none is active: what a mechanism
draws on its way is part of what was announced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

from dpfast import _checks
from dpfast.errors import BudgetError
from dpfast.privacy import PrivacyProfile
from dpfast.random import bit_generator

_Method = TypeVar("_Method", bound=Callable[..., Any])


class Budget(Protocol):
    """What can be active: `dpfast.Ledger`."""

    def reserve(self, profile: PrivacyProfile, *, times: int, label: str) -> None:
        """Record the spending, or raise a `BudgetError` and record nothing."""


active: ContextVar[Budget | None] = ContextVar("dpfast_budget", default=None)


@contextmanager
def spending(profile: PrivacyProfile, *, label: str, times: int = 1) -> Iterator[None]:
    """Everything released in here is paid for by `profile`, `times` times; free where no budget is active."""
    budget = active.get()
    if budget is None:
        yield
        return
    budget.reserve(profile, times=times, label=label)
    token = active.set(None)
    try:
        yield
    finally:
        active.reset(token)


def charged(method: _Method) -> _Method:
    """A method that releases: `self.privacy_profile`, for each of `size` releases."""

    @wraps(method)
    def release(self: Any, *args: Any, **options: Any) -> Any:
        if active.get() is None:
            return method(self, *args, **options)
        # Wrong arguments that can be told without the data cost nothing.
        times = math.prod(_checks.shape(options.get("size")))
        bit_generator(options.get("rng"))
        _checks.threads(options.get("workers", 1))
        with spending(self.privacy_profile, times=times, label=repr(self)):
            return method(self, *args, **options)

    release.charged = True  # type: ignore[attr-defined]
    return cast(_Method, release)


def refused(reason: str) -> Callable[[_Method], _Method]:
    """A function that returns private data, or noise whose use is not known: an error while a budget is active."""

    def decorate(function: _Method) -> _Method:
        @wraps(function)
        def guarded(*args: Any, **options: Any) -> Any:
            if active.get() is not None:
                raise BudgetError(reason)
            return function(*args, **options)

        guarded.refused = True  # type: ignore[attr-defined]
        return cast(_Method, guarded)

    return decorate


LAW = "a law depends on the data, and no budget pays for it: make it outside the ledger"
_RELEASES = ("__call__", "release", "finish", "randomize", "respond")


def hook(cls: type) -> None:
    """Wrap the releases, and the law, that a class itself defines."""
    for name in _RELEASES:
        if name in vars(cls):
            setattr(cls, name, charged(vars(cls)[name]))
    if "law" in vars(cls):
        cls.law = refused(LAW)(vars(cls)["law"])  # type: ignore[attr-defined]
