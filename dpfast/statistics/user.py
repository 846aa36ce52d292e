"""A statistic that the user defines, with the sensitivity that it has at a distance."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, SupportsIndex

import numpy as np

from dpfast.core import callbacks, checks
from dpfast.core.foreign import swallowed
from dpfast.core.grid import Points
from dpfast.errors import BudgetError
from dpfast.statistics.rank import Summary
from dpfast.statistics.statistic import Statistic, between_points, scaled
from dpfast.streaming import Codes, Integers, Reading, ascending

__all__ = [
    "UserStatistic",
]

_MOST_DIVISIONS = 2**20


@dataclass(frozen=True)
class UserStatistic(Statistic):
    """A statistic of the user, for `dpfast.SmoothSensitivity`: a function of the sorted codes of the records.

    A code is a whole number of steps of the grid: 0 at its lower bound, and `last`, the number of points less 1, at its
    upper one. Both functions return whole numbers, in release codes of ``1 / divisions`` of a step.

    Parameters
    ----------
    function : callable
        ``function(codes)`` returns the statistic, from 0 to ``divisions * last``, of a sorted array of int64, a copy.
    sensitivity_at : callable
        ``sensitivity_at(codes, k, last)`` returns A(k), the sensitivity at the distance k = 0..n - 1: no record that is
        replaced changes the statistic by more, in all data that differ from these in at most k records. A larger bound
        will do, if A(k) is at most A(k + 1) of all data that differ in one record.
    divisions : int
        The number of release codes in a step, from 1 to 2**20: 2 for a statistic between two points.
    spread : bool
        False: a release is a place, and code 0 is the lower bound. True: it is a distance, and code 0 is 0.
    name : str
        What it is called in texts.

    Notes
    -----
    Privacy rests on A(k), which the user promises for all data and nobody can check for all of them:
    `dpfast.audit.verify` compares the laws of all small data sets, and finds an A(k) that is too small for one of them
    (https://dpfast.readthedocs.io/en/latest/proofs/smooth-sensitivity.html, claim 5). Use whole numbers only: a
    statistic that is rounded from floats changes by more than its A(k).
    An exception, or a result that is not a whole number, counts as the statistic 0 with the largest sensitivity, so
    that it never ends a release; one beyond its range counts as the nearest end. This belongs to what the user
    promises. Both functions depend on their arguments alone, keep no state, and cannot release. They are called with
    made-up records before a charge, where an exception ends the call.
    Cost: one call of `function`, at most ``log(divisions * last) / beta`` of `sensitivity_at`, each with a copy.

    References
    ----------
    Nissim, Raskhodnikova and Smith 2007, definition 3.1: the sensitivity of f at distance k.

    Examples
    --------
    Tukey's trimean, a weighted mean of quartiles and median. After k replaced records one more moves a quartile by at
    most the longest of the stretches of k + 1 gaps around it:

    >>> import numpy as np, dpfast as dpf
    >>> def quartiles(codes):
    ...     return [len(codes) // 4, len(codes) // 2, 3 * len(codes) // 4]
    >>> def trimean(codes):
    ...     return int(np.dot([1, 2, 1], codes[quartiles(codes)]))
    >>> def changes(codes, k, last):
    ...     padded = np.pad(codes, k + 1, constant_values=(0, last))
    ...     stretches = padded[k + 1 :] - padded[: -k - 1]
    ...     return sum(w * int(stretches[q : q + k + 2].max()) for w, q in zip([1, 2, 1], quartiles(codes)))
    >>> statistic = dpf.statistics.UserStatistic(trimean, changes, divisions=4, name="trimean")
    >>> mechanism = dpf.SmoothSensitivity(statistic, grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    >>> ages = np.random.default_rng(0).normal(40, 5, 5000)
    >>> 38 <= mechanism(ages) <= 42
    True
    """

    function: Callable[[Integers], SupportsIndex]
    sensitivity_at: Callable[[Integers, int, int], SupportsIndex]
    divisions: int = 1
    spread: bool = False
    name: str = "statistic of the user"

    def __post_init__(self) -> None:
        for name, function, arguments in (
            ("function", self.function, ("the sorted codes",)),
            ("sensitivity_at", self.sensitivity_at, ("the sorted codes", "the distance k", "the last code")),
        ):
            if not callable(function):
                raise TypeError(f"{name} must be a function, not {type(function).__name__}")
            callbacks.check_takes(name, function, *arguments)
        divisions = checks.whole("divisions", self.divisions, least=1)
        if divisions > _MOST_DIVISIONS:
            raise ValueError(f"divisions must be at most 2**20, not {divisions}")
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a string, not {type(self.name).__name__}")
        for name, value in {"divisions": divisions, "spread": checks.flag("spread", self.spread)}.items():
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return self.name

    def codes_per_step(self, n: int) -> int:
        """Return the number of release codes per step of the grid."""
        return self.divisions

    def last(self, grid: Points, n: int) -> int:
        last = checks.code_range(self.divisions * (grid.size - 1))
        if self.spread:
            checks.released_range(lambda: (0.0, self.value(grid, n, last)))
        return last

    def value(self, grid: Points, n: int, code: int) -> float:
        if self.spread:
            return scaled(code, self.divisions, grid.step)
        return between_points(grid, self.divisions, code)

    def valued(self, grid: Points, n: int) -> Callable[[int], float]:
        return partial(self.value, grid, n)

    def reading(self, grid: Points, levels: Callable[[int], int]) -> Reading:
        """Return the reading of all codes, sorted: a `Summary` of one window."""
        return Codes((grid,), lambda codes: Summary(grid, len(codes), levels(len(codes)), (ascending(codes),)))

    def exact(self, codes: Integers, last: int) -> int:
        """Return the statistic in release codes; 0 where `function` fails. PRIVATE."""
        found = _whole(self.function, codes.copy())
        return 0 if found is None else min(max(found, 0), self.divisions * last)

    def change_at(self, codes: Integers, k: int, last: int) -> int:
        """Return A(k), the whole range where `sensitivity_at` fails and where all records may differ. PRIVATE."""
        most = self.divisions * last
        found = _whole(self.sensitivity_at, codes.copy(), k, last) if k < len(codes) else None
        return most if found is None else min(max(found, 0), most)

    def rehearse(self, grid: Points, n: int) -> None:
        """Call both functions with n made-up records, spread over the grid: what they raise is heard.

        Raises
        ------
        BudgetError
            If one of them releases.
        TypeError, ValueError
            If one of them fails, or returns something else than a whole number.
        """
        last = grid.size - 1
        made = np.linspace(0, last, n).astype(np.int64)
        for name, call in (
            ("function", partial(self.function, made.copy())),
            ("sensitivity_at", partial(self.sensitivity_at, made.copy(), 0, last)),
        ):
            try:
                with _apart():
                    found = call()
            except BudgetError:
                raise
            except Exception as error:
                raise ValueError(f"{name} fails for {n} made-up records, spread over the grid: {error!r}") from error
            checks.whole(f"the result of {name}", found)


@contextmanager
def _apart() -> Iterator[None]:
    """Run code of the user, whose warnings are not told and whose releases are refused."""
    with warnings.catch_warnings(), swallowed(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _whole(function: Callable[..., Any], *arguments: Any) -> int | None:
    """Return the whole number that a function of the user returns; None if it fails."""
    try:
        with _apart():
            return operator.index(function(*arguments))
    except Exception:
        return None
