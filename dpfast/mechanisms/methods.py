"""The choice of a mechanism by the name of a method."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast import _checks, _measures
from dpfast._containers import declares_integers
from dpfast._foreign import active
from dpfast._kernels._calls import Calls
from dpfast._traps import Trap, of_step, of_width, warn, warn_of
from dpfast._types import Exact
from dpfast.grid import FloatGrid, Grid, Points, checked_policy, floats_for, grid_for, grid_with, natural_step
from dpfast.mechanisms.assumptions import Assumed
from dpfast.mechanisms.bounds import clamped_privately, within_private_bounds
from dpfast.mechanisms.candidates import Candidate, Choice, Typical, assumption
from dpfast.mechanisms.explanation import Explain, explain_bounds, explained
from dpfast.mechanisms.globally import GlobalSensitivity
from dpfast.mechanisms.inverse import InverseSensitivity
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.quantiles import Quantiles
from dpfast.mechanisms.smooth import SmoothSensitivity
from dpfast.random import RandomSource
from dpfast.spending import sums_epsilons
from dpfast.statistics import (
    Count,
    Huber,
    InterquartileRange,
    Mean,
    MomentStatistic,
    OrderStatistic,
    RankStatistic,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from dpfast.streaming import Chunks, records_of

_LEAST_COMPARED = 0.01  # epsilon, below which laws have too many levels to be compared before a call
_UNUSED = Grid(0, 1, step=1)  # a count uses no grid
_calls = Calls(frozenset([Grid, FloatGrid]))  # mechanisms of calls outside of all budgets


def _interpolated(statistic: OrderStatistic, **options: Any) -> Mechanism:
    """A function with a name, so that mechanisms that hold it are equal to their pickled copies."""
    return InverseSensitivity(statistic, interpolate=True, **options)


@cache
def _methods(statistic: type[Statistic | tuple[float, ...]]) -> dict[str, Callable[..., Mechanism]]:
    """The mechanisms that can release a kind of statistic, or several quantiles, by name of the method, default first.

    To add a mechanism: its name here, and in `compared` if "auto" may take it.
    """
    if issubclass(statistic, tuple):
        return {"inverse-sensitivity": Quantiles}
    methods: dict[str, Callable[..., Mechanism]] = {}
    if issubclass(statistic, MomentStatistic):
        methods["global-sensitivity"] = GlobalSensitivity
    if issubclass(statistic, RankStatistic):
        methods["inverse-sensitivity"] = InverseSensitivity
    if issubclass(statistic, OrderStatistic):
        methods["interpolated"] = _interpolated
    if issubclass(statistic, RankStatistic) and not issubclass(statistic, Huber):
        methods["smooth-sensitivity"] = SmoothSensitivity
    if issubclass(statistic, MomentStatistic) and not issubclass(statistic, Count):
        methods["private-bounds"] = clamped_privately
    return methods


def compared(
    statistic: Statistic | tuple[float, ...],
    bounds: Any,
    grid: Points | None,
    neighbors: str,
    missing: float | str | None,
    measure: str | Sequence[int],
    distribution: Any,
) -> tuple[str, ...]:
    """The names of the methods that "auto" compares, default first; empty if the default is the only one."""
    names = _comparable(type(statistic), distribution is not None)
    if not names:
        return ()
    bounded = isinstance(grid, Grid) or not (bounds is None or isinstance(bounds, str))
    hides_n = neighbors != "replace-one" or missing == "drop"
    return names if bounded and not hides_n and isinstance(measure, str) and measure == "auto" else ()


@cache
def _comparable(statistic: type[Statistic | tuple[float, ...]], assuming: bool) -> tuple[str, ...]:
    """The names of the methods that "auto" can compare, with or without an assumed distribution.

    Of quantiles without one it is the default, because ties decide which mechanism is better. Means and sums keep it,
    too: narrower bounds found privately may cut off a few records that are far from all others.
    """
    if issubclass(statistic, TrimmedMean | WinsorizedMean):
        return "inverse-sensitivity", "smooth-sensitivity"
    if assuming and issubclass(statistic, OrderStatistic):
        return "inverse-sensitivity", "interpolated", "smooth-sensitivity"
    if assuming and issubclass(statistic, InterquartileRange):
        return "inverse-sensitivity", "smooth-sensitivity"
    if assuming and issubclass(statistic, Mean):
        return "global-sensitivity", "inverse-sensitivity", "smooth-sensitivity", "private-bounds"
    if assuming and issubclass(statistic, Sum):
        return "global-sensitivity", "private-bounds"
    return ()


def choice_among(
    names: Sequence[str],
    statistic: Statistic | tuple[float, ...],
    grid: Grid,
    epsilon: float,
    delta: float,
    n: int | None,
    distribution: Any = None,
) -> Choice:
    """The choice of "auto" among methods by these names, the default first."""
    methods, limit = _methods(type(statistic)), math.inf

    def build(name: str) -> Mechanism:
        options = dict(_given("delta", delta, 0.0)) if name == "smooth-sensitivity" else {}
        mechanism = methods[name](statistic, grid=grid, epsilon=epsilon, **options)
        if not sums_epsilons() and mechanism.privacy_profile.rho > limit:
            raise ValueError("it costs more of the active ledger, which composes by more than epsilon")
        return mechanism

    limit = build(names[0]).privacy_profile.rho
    considered = names if epsilon >= _LEAST_COMPARED else names[:1]
    candidates = [Candidate(name, partial(build, name)) for name in considered]
    return Choice(candidates, n, grid, distribution)


@lru_cache(maxsize=1024)
def _automatic(
    names: tuple[str, ...],
    statistic: Statistic | tuple[float, ...],
    within: Grid | tuple[float, float, float | None],
    missing: float | str | None,
    epsilon: float,
    delta: float,
    n: int | None,
    sums: bool,
    distribution: Any,
) -> Mechanism:
    """The mechanism that "auto" takes; `sums` is `sums_epsilons()`, a part of the key of the cache."""
    grid = within if isinstance(within, Grid) else Grid(*within[:2], step=within[2])
    made = grid_with(grid, missing)
    return choice_among(names, statistic, made, epsilon, delta, n, distribution).mechanism


def _within(bounds: Any, grid: Any, x: Any) -> Grid | tuple[float, float, float | None]:
    """The grid that is given, or the bounds and the step of the default one."""
    _checks.bounds_or_grid(bounds, grid)
    if isinstance(grid, Grid):
        return grid
    lower, upper = _checks.pair("bounds", bounds)
    return (lower, upper, natural_step(x)) if lower < upper else Grid(lower, upper)  # which raises an error


def _rounded_down(n: int | None) -> int | None:
    """n, or the next smaller number of three significant bits, so that few numbers of records need a choice."""
    if not n:
        return None
    shift = max(n.bit_length() - 3, 0)
    return n >> shift << shift


def choice_for(
    statistic: Statistic | tuple[float, ...],
    x: Any,
    n: int | None,
    bounds: tuple[float, float] | str | None,
    grid: Points | None,
    epsilon: Exact,
    delta: Exact,
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    measure: str | Sequence[int] = "auto",
    distribution: Any = None,
) -> Choice:
    """What ``method="auto"`` takes for n records of the type of x, and why."""
    names = compared(statistic, bounds, grid, neighbors, missing, measure, distribution)
    if not names:
        given = bounds, grid, epsilon, delta, "auto", neighbors, missing, measure, distribution
        default = Candidate(next(iter(_methods(type(statistic)))), lambda: mechanism_for(statistic, x, *given))
        return Choice([default], n, None)
    epsilon, delta = _checks.positive_down("epsilon", epsilon), _checks.delta_down(delta)
    within = grid_for(x, bounds, grid if isinstance(grid, Grid) else None, checked_policy(missing))
    return choice_among(names, statistic, within, epsilon, delta, _rounded_down(n), distribution)


def release_of(
    statistic: Statistic | tuple[float, ...],
    x: Any,
    parameters: tuple[Any, ...],
    rng: RandomSource,
    workers: int,
    explain: Explain,
) -> Any:
    """Release a statistic of x by the mechanism of `mechanism_for`, and explain it before.

    `parameters` are bounds, grid, epsilon, delta, method, neighbors, missing, measure and distribution.
    """
    outside = active.get() is None  # else the mechanism may depend on the budget
    mechanism = _calls.find(statistic, x, parameters) if outside else None
    if mechanism is None:
        mechanism = _repeated(statistic, x, *parameters)
        if outside:
            _calls.keep(statistic, x, parameters, mechanism)
    if explain is False and parameters[-1] is None:
        if mechanism.traps:
            warn(mechanism.traps)
        plain = rng is None and type(workers) is int and workers == 1  # the default, without keywords
        return mechanism.__call__(x) if plain else mechanism(x, rng=rng, workers=workers)  # a call without its slot
    bounds, grid, epsilon, delta, method, *public = parameters
    distribution = parameters[-1]
    if distribution is not None and method == "auto" and compared(statistic, bounds, grid, *public):
        whole = natural_step(x) is not None
        warn(_traps_under(assumption(distribution), mechanism, _rounded_down(records_of(x)), whole))
    if explain is False:
        warn_of(mechanism)
    else:
        comparison = None
        if method == "auto" and compared(statistic, bounds, grid, *public):
            choice = choice_for(statistic, x, records_of(x), bounds, grid, epsilon, delta, *public)
            comparison = choice.comparison
        explained(mechanism, explain, x, comparison)
    release = mechanism(x, rng=rng, workers=workers)
    if explain is not False and not isinstance(statistic, (Sum, Count, Variance, InterquartileRange)):
        for points in mechanism.points:  # none, if bounds are found privately
            explain_bounds(points, release, explain)
    return release


def _repeated(
    statistic: Statistic | tuple[float, ...],
    x: Any,
    bounds: Any,
    grid: Any,
    epsilon: Exact,
    delta: Exact,
    method: str,
    neighbors: str,
    missing: float | str | None,
    measure: str | Sequence[int],
    distribution: Any,
) -> Mechanism:
    """`mechanism_for`, from a cache where only `statistic` and the bounds are tuples. It never keeps an error."""
    plain = type(bounds) is tuple and len(bounds) == 2 and type(measure) is str
    if plain and grid is None and distribution is None and not isinstance(x, Chunks):
        names = _comparable(type(statistic), False)
        chooses = names and (type(method) is not str or method == "auto")
        rest = sums_epsilons(), *bounds, epsilon, delta, method, neighbors, missing, measure
        try:
            if not (chooses and compared(statistic, bounds, grid, neighbors, missing, measure, distribution)):
                return _kept(statistic, declares_integers(x), None, *rest)
            if type(x) is not np.ndarray:  # errors of parameters come before the records are touched
                _kept(statistic, False, None, *rest)
            return _kept(statistic, declares_integers(x), _rounded_down(records_of(x)), *rest)
        except TypeError:  # a parameter that has no hash, or is wrong
            pass
    return mechanism_for(
        statistic, x, bounds, grid, epsilon, delta, method, neighbors, missing, measure, distribution
    )  # fmt: skip


@dataclass(frozen=True)
class _Described:
    """All that the choice of a mechanism reads of records: whether they are integers, and their number or None."""

    integers: bool
    n: int | None

    def declares_integers(self) -> bool:
        return self.integers

    def __len__(self) -> int:
        return self.n or 0


@lru_cache(maxsize=256, typed=True)  # 1, 1.0 and True are different keys
def _kept(
    statistic: Statistic | tuple[float, ...],
    integers: bool,
    n: int | None,
    sums: bool,
    lower: Any,
    upper: Any,
    epsilon: Any,
    delta: Any,
    method: str,
    *public: Any,
) -> Mechanism:
    """`mechanism_for` for such records; `sums` is `sums_epsilons()`, a part of the key of the cache."""
    return mechanism_for(statistic, _Described(integers, n), (lower, upper), None, epsilon, delta, method, *public)


@lru_cache(maxsize=256)
def _traps_under(distribution: Any, mechanism: Mechanism, n: int | None, whole: bool) -> tuple[Trap, ...]:
    """The traps of a grid for what a user assumes (`assumption`); `whole` for records that are integers."""
    traps: list[Trap] = []
    typical = isinstance(distribution, Typical)
    if isinstance(mechanism, GlobalSensitivity):
        low, high = distribution if typical else Assumed(distribution).points(np.array([0.05, 0.95])).tolist()
        traps += of_width(mechanism.grid.upper - mechanism.grid.lower, high - low)
    elif isinstance(mechanism, InverseSensitivity) and _needs_order_only(mechanism.statistic) and n and not whole:
        assumed = [each.assumed for each in distribution.references] if typical else [distribution]
        with suppress(TypeError, ValueError):
            traps += of_step(mechanism.grid.step, max(mechanism.expected_error(n, each).total for each in assumed))
    return tuple(traps)


def mechanism_for(
    statistic: Statistic | tuple[float, ...],
    x: Any,
    bounds: tuple[float, float] | str | None,
    grid: Points | None,
    epsilon: Exact,
    delta: Exact,
    method: str,
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    measure: str | Sequence[int] = "auto",
    distribution: Any = None,
) -> Mechanism:
    """The mechanism that releases a statistic of x by the given method; "auto" chooses by public numbers.

    Quantiles by inverse sensitivity need neither bounds nor a grid.
    """
    _checks.choice("neighbors", neighbors, ("replace-one", "add-remove"))
    missing = checked_policy(missing)
    methods = _methods(type(statistic))
    if method not in methods and method != "auto":
        raise ValueError(f"method must be {' or '.join(map(repr, ('auto', *methods)))}, not {method!r}")
    delta = _checks.delta_down(delta)
    epsilon = _checks.positive_down("epsilon", epsilon)  # before the caches, in which 1 and True are equal keys
    if method == "auto":
        method = next(iter(methods))
        distribution = assumption(distribution)  # reject another object before data are read
        if names := compared(statistic, bounds, grid, neighbors, missing, measure, distribution):
            within, n = _within(bounds, grid, x), _rounded_down(records_of(x))
            return _automatic(names, statistic, within, missing, epsilon, delta, n, sums_epsilons(), distribution)
        delta = 0.0  # the default is pure
    elif distribution is not None:
        raise ValueError(f"distribution is for method='auto', not {method!r}")
    if delta and method != "smooth-sensitivity":
        raise ValueError(f"delta must be 0 for method={method!r}, which is pure, not {delta!r}")
    if neighbors != "replace-one" and methods[method] not in (GlobalSensitivity, InverseSensitivity):
        what = "several quantiles" if isinstance(statistic, tuple) else f"method={method!r}"
        raise ValueError(f"neighbors must be 'replace-one' for {what}, not {neighbors!r}")
    measure = _measures.checked(measure)
    if measure != "auto" and methods[method] not in (InverseSensitivity, Quantiles):
        raise ValueError(f"measure must be 'auto' for method={method!r}, not {measure!r}")
    options = (
        *_given("delta", delta, 0.0),
        *_given("neighbors", neighbors, "replace-one"),
        *_given("measure", measure, "auto"),
    )
    if bounds is None and grid is None and method == "inverse-sensitivity" and _needs_order_only(statistic):
        return _unbounded(methods[method], statistic, floats_for(x, missing), epsilon, options)
    _checks.bounds_or_grid(bounds, grid)
    if isinstance(bounds, str):
        return _privately_bounded(methods[method], statistic, bounds, natural_step(x), epsilon, options, missing)
    if bounds is None:
        return methods[method](statistic, grid=grid_with(grid, missing), epsilon=epsilon, **dict(options))
    lower, upper = _checks.pair("bounds", bounds)
    if methods[method] is InverseSensitivity and not sums_epsilons():  # in the key of the cache
        options = (*options, ("selection", "exponential"))
    return _bounded(methods[method], statistic, lower, upper, natural_step(x), missing, epsilon, options)


def _needs_order_only(statistic: Statistic | tuple[float, ...]) -> bool:
    return isinstance(statistic, (OrderStatistic, tuple))


def range_of(quartiles: NDArray[np.float64]) -> float:
    """The distance of two released quantiles, at most the largest double."""
    low, high = quartiles.tolist()
    return float(min(high - low, sys.float_info.max))


def _privately_bounded(
    mechanism: Callable[..., Mechanism],
    statistic: Statistic | tuple[float, ...],
    bounds: str,
    step: float | None,
    epsilon: float,
    options: tuple[tuple[str, Any], ...],
    missing: float | str | None,
) -> Mechanism:
    if bounds != "private":
        raise ValueError(f"bounds must be a pair (lower, upper) or 'private', not {bounds!r}")
    if mechanism is clamped_privately:
        raise ValueError("method='private-bounds' finds bounds inside bounds=(lower, upper): give these, or no method")
    if "neighbors" in dict(options):
        raise ValueError("bounds='private' needs a public number of records: neighbors must be 'replace-one'")
    if not isinstance(statistic, Statistic) or (mechanism is InverseSensitivity and _needs_order_only(statistic)):
        raise ValueError("quantiles by inverse sensitivity need no bounds: leave out bounds='private'")
    return within_private_bounds(statistic, mechanism, step=step, epsilon=epsilon, missing=missing, **dict(options))


def count_of(within: Any, epsilon: Exact, missing: Any) -> Mechanism:
    """The mechanism that releases the number of records, for one record added or removed."""
    drops = checked_policy(missing) == "drop"
    if missing == "half":
        raise ValueError("missing must be a number or 'lower', to count missing records, or 'drop', not 'half'")
    if within is not None:  # check before the cache, in which 1 and True are equal keys
        within = _checks.interval("within", within)
    return _count(within, _checks.positive_down("epsilon", epsilon), drops)


@lru_cache(maxsize=256)
def _count(within: tuple[float, float] | None, epsilon: float, drops: bool) -> Mechanism:
    grid = _UNUSED.with_missing("drop" if drops else None)
    return GlobalSensitivity(Count(within), grid=grid, epsilon=epsilon, neighbors="add-remove")


def _given(name: str, value: Any, default: Any) -> tuple[tuple[str, Any], ...]:
    """A keyword argument, if it is not the default; some mechanisms do not have it."""
    return () if value == default else ((name, value),)


@lru_cache(maxsize=256)
def _unbounded(
    mechanism: Callable[..., Mechanism],
    statistic: Statistic | tuple[float, ...],
    grid: Points,
    epsilon: float,
    options: tuple[tuple[str, Any], ...],
) -> Mechanism:
    return mechanism(statistic, grid=grid, epsilon=epsilon, **dict(options))


@lru_cache(maxsize=256)
def _bounded(
    mechanism: Callable[..., Mechanism],
    statistic: Statistic | tuple[float, ...],
    lower: float,
    upper: float,
    step: float | None,
    missing: float | str | None,
    epsilon: float,
    options: tuple[tuple[str, Any], ...],
) -> Mechanism:
    grid = Grid(lower, upper, step=step, missing=missing)
    return mechanism(statistic, grid=grid, epsilon=epsilon, **dict(options))
