"""The choice of a mechanism by the name of a method."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._calls import Calls, Described, Parameters
from dpfast.choosing import Choice, Explain, built, explain_bounds, explained, rounded_down, rounded_up
from dpfast.choosing.choice import LOSS
from dpfast.core import checks, measures
from dpfast.core.containers import declares_integers, marks_missing, may_be_missing
from dpfast.core.foreign import active
from dpfast.core.grid import FloatGrid, Grid, Points, checked_policy, grid_for, natural_step, unbounded
from dpfast.core.spending import sums_epsilons
from dpfast.core.traps import Trap, of_cells_at_the_bound, of_step, of_width, warn, warn_of
from dpfast.core.types import Exact
from dpfast.mechanisms.assumptions import Assumed, is_fixed
from dpfast.mechanisms.bounds import clamped_privately, within_private_bounds
from dpfast.mechanisms.candidates import ExpectedErrors
from dpfast.mechanisms.globally import GlobalSensitivity
from dpfast.mechanisms.inverse import InverseSensitivity
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.moments import MomentPair
from dpfast.mechanisms.present import PresentMean
from dpfast.mechanisms.quantiles import Quantiles
from dpfast.mechanisms.references import Typical, assumption, references_of
from dpfast.mechanisms.resized import resized
from dpfast.mechanisms.smooth import SmoothSensitivity
from dpfast.random import RandomSource
from dpfast.statistics import (
    Count,
    Huber,
    InterquartileRange,
    LinearQuantile,
    Mean,
    MomentStatistic,
    OrderStatistic,
    RankStatistic,
    Statistic,
    Sum,
    TrimmedMean,
    UnboundedStatistic,
    Variance,
    WinsorizedMean,
)
from dpfast.streaming import records_of

_LEAST_COMPARED = 0.01  # epsilon, below which laws have too many levels to be compared before a call
# Of 50 normal records at epsilon = 8, smooth sensitivity has .2 times the distance from numpy.median, and under one of
# twelve references, lognormal records a thousand times narrower than the bounds, 1.04 times the expected error.
_LOSS_BETWEEN = 1.05
_UNUSED = Grid(0, 1, step=1)  # a count uses no grid
_calls = Calls(frozenset([Grid, FloatGrid]))  # the mechanisms of calls
_NOTHING = Described(False, 0)  # records of which nothing is known


def _interpolated(statistic: OrderStatistic, **options: Any) -> Mechanism:
    """Return a function with a name, so that mechanisms that hold it are equal to their pickled copies."""
    return InverseSensitivity(statistic, interpolate=True, **options)


@cache
def _methods(statistic: type[Statistic | tuple[float, ...]]) -> dict[str, Callable[..., Mechanism]]:
    """Return the mechanisms that can release a kind of statistic, or several quantiles, by name of the method, default
    first.

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
    if issubclass(statistic, Variance):
        methods["moments"] = MomentPair
    return methods


def compared(statistic: Statistic | tuple[float, ...], public: Parameters) -> tuple[str, ...]:
    """Return the names of the methods that "auto" compares, default first; empty if the default is the only one."""
    names = _comparable(type(statistic), public.distribution is not None)
    if not names:
        return ()
    bounded = isinstance(public.grid, Grid) or not (public.bounds is None or isinstance(public.bounds, str))
    hides_n = public.neighbors != "replace-one" or public.missing == "drop"
    uniform = isinstance(public.measure, str) and public.measure == "auto"
    return names if bounded and not hides_n and uniform else ()


@cache
def _comparable(statistic: type[Statistic | tuple[float, ...]], assuming: bool) -> tuple[str, ...]:
    """Return the names of the methods that "auto" can compare, with or without an assumed distribution.

    Of quantiles without one it is the default, because ties decide which mechanism is better. Means and sums keep it,
    too: narrower bounds found privately may cut off a few records that are far from all others.
    """
    if issubclass(statistic, LinearQuantile | TrimmedMean | WinsorizedMean):
        return "inverse-sensitivity", "smooth-sensitivity"
    if assuming and issubclass(statistic, OrderStatistic):
        return "inverse-sensitivity", "interpolated", "smooth-sensitivity"
    if assuming and issubclass(statistic, InterquartileRange):
        return "inverse-sensitivity", "smooth-sensitivity"
    if assuming and issubclass(statistic, Mean):
        return "global-sensitivity", "inverse-sensitivity", "smooth-sensitivity", "private-bounds"
    if assuming and issubclass(statistic, Sum):
        return "global-sensitivity", "private-bounds"
    if assuming and issubclass(statistic, Variance):
        return "global-sensitivity", "moments", "private-bounds"
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
    """Return the choice of "auto" among methods by these names, the default first.

    Errors are compared for an epsilon and a number of records of few bits.
    """
    default, sums, limit = names[0], sums_epsilons(), math.inf

    assumed = assumption(distribution)

    def build(name: str) -> Mechanism:
        mechanism = _candidate(name, statistic, grid, epsilon, delta, assumed)
        if not sums and mechanism.privacy_profile.rho > limit:
            raise ValueError("it costs more of the active ledger, which composes by more than epsilon")
        return mechanism

    if not sums:
        limit = build(default).privacy_profile.rho
    considered = names if epsilon >= _LEAST_COMPARED else names[:1]
    candidates, limits = built({name: partial(build, name) for name in considered}, required=default)
    errors_of = _errors if is_fixed(distribution) and is_fixed(statistic) else _errors.__wrapped__
    records = rounded_down(n) if n else None
    errors = errors_of(tuple(candidates), statistic, grid, rounded_up(epsilon), delta, records, assumed)
    return errors.choice(limits, candidates, n)


def _candidate(
    name: str, statistic: Statistic | tuple[float, ...], grid: Grid, epsilon: float, delta: float, assumed: Any
) -> Mechanism:
    """Return a candidate; if it cannot leave out missing records, they count as a typical one of those assumed."""
    options = {"delta": delta} if delta and name == "smooth-sensitivity" else {}
    if grid.missing == "drop" and not _leaves_out(name, statistic):
        grid = grid.with_missing((_middle if is_fixed(assumed) else _middle.__wrapped__)(assumed))
    return _made(name, statistic, grid=grid, epsilon=epsilon, **options)


@lru_cache(maxsize=64)
def _middle(assumed: Any) -> float:
    """Return the median of assumed records, or the middle of typical values."""
    return sum(assumed) / 2 if isinstance(assumed, Typical) else Assumed(assumed).points(np.array([0.5])).item()


def _made(name: str, statistic: Statistic | tuple[float, ...], *, grid: Points, **options: Any) -> Mechanism:
    """Return the mechanism of a method, or for a public number of records the one that leaves out missing ones."""
    leaves_out = isinstance(grid, Grid) and grid.missing == "drop" and "neighbors" not in options
    if leaves_out and name == "global-sensitivity" and type(statistic) is Mean:
        return PresentMean(statistic, grid=cast(Grid, grid), **options)
    return _methods(type(statistic))[name](statistic, grid=grid, **options)


def _leaves_out(name: str, statistic: Statistic | tuple[float, ...]) -> bool:
    """Whether a method leaves out missing records at no cost for a public number of all records."""
    if name == "global-sensitivity":
        return type(statistic) is Mean
    return name == "inverse-sensitivity" and _needs_order_only(statistic)


def _policy(name: str, statistic: Statistic | tuple[float, ...], x: Any, public: Parameters) -> float | str | None:
    """Return what a method makes of missing records: `policy_for`."""
    return policy_for(statistic, x, public, free=_leaves_out(name, statistic))


def policy_for(
    statistic: Statistic | tuple[float, ...], x: Any, public: Parameters, *, free: bool
) -> float | str | None:
    """Return what missing records become.

    If nobody says it, they are left out where this is `free`, for a private number of records always, and add nothing
    to a sum; all else counts them as the lower bound.
    """
    policy = checked_policy(public.missing)
    if policy is not None or public.grid is not None or not may_be_missing(x):
        return policy
    if public.neighbors == "add-remove" or free:
        return "drop"
    return 0.0 if type(statistic) is Sum else None


def warn_of_missing(mechanism: Mechanism, statistic: Any, x: Any, public: Parameters) -> None:
    """Warn if missing records count as the lower bound, nobody said so, and x is of a type that marks them.

    Not of arrays of floats: they seldom hold NaN, and the warning would come with nearly every call.
    """
    if public.missing is not None or public.grid is not None or isinstance(statistic, Count) or not marks_missing(x):
        return
    if getattr(mechanism, "missing", None) == "drop":  # a Resized, whose own grid is filled up
        return
    within = getattr(mechanism, "within", None)  # of a release within bounds that it finds in these
    for points in mechanism.points or ((within,) if isinstance(within, Grid) else ()):
        adds_nothing = isinstance(statistic, Sum) and points.nan_value == 0
        if points.nan_value == points.lower and not (points.resolves or adds_nothing):
            warn(of_cells_at_the_bound(None))


@lru_cache(maxsize=64)
def _errors(
    names: tuple[str, ...],
    statistic: Statistic | tuple[float, ...],
    grid: Grid,
    epsilon: float,
    delta: float,
    n: int | None,
    distribution: Any,
) -> ExpectedErrors:
    """Return the expected errors of candidates, which calls with about this epsilon share."""
    candidates = {name: _candidate(name, statistic, grid, epsilon, delta, distribution) for name in names}
    loss = _LOSS_BETWEEN if isinstance(statistic, LinearQuantile) else LOSS
    return ExpectedErrors(candidates, n, grid, distribution, loss)


def choice_for(statistic: Statistic | tuple[float, ...], x: Any, n: int | None, public: Parameters) -> Choice:
    """Return what ``method="auto"`` takes for n records of the type of x, and why."""
    names = compared(statistic, public)
    if not names:
        default = next(iter(_methods(type(statistic))))
        return ExpectedErrors({default: mechanism_for(statistic, x, public)}, n, None).choice({})
    epsilon, delta = checks.positive_down("epsilon", public.epsilon), checks.delta_down(public.delta)
    given = public.grid if isinstance(public.grid, Grid) else None
    within = grid_for(x, public.bounds, given, _policy(names[0], statistic, x, public))
    return choice_among(names, statistic, within, epsilon, delta, n, public.distribution)


def release_of(
    statistic: Statistic | tuple[float, ...],
    x: Any,
    public: Parameters,
    rng: RandomSource,
    workers: int,
    explain: Explain,
) -> Any:
    """Release a statistic of x by the mechanism of `mechanism_for`, and explain it before."""
    sums = active.get() is None or sums_epsilons()  # the mechanism may depend on the budget
    mechanism = _calls.find(statistic, x, public, sums)
    if mechanism is None:
        mechanism = _found(statistic, x, public, sums)
    if type(x) is not np.ndarray:
        warn_of_missing(mechanism, statistic, x, public)
    if explain is False and public.distribution is None:
        if mechanism.traps:
            warn(mechanism.traps)
        plain = rng is None and type(workers) is int and workers == 1  # the default, without keywords
        return mechanism.__call__(x) if plain else mechanism(x, rng=rng, workers=workers)  # a call without its slot
    compares = public.method == "auto" and bool(compared(statistic, public))
    if compares and public.distribution is not None:
        whole = natural_step(x) is not None
        n = rounded_down(records_of(x) or 0)
        traps_under = _traps_under if is_fixed(public.distribution) else _traps_under.__wrapped__
        warn(traps_under(assumption(public.distribution), mechanism, n, whole))
    if explain is False:
        warn_of(mechanism)
    else:
        explained(mechanism, explain, x, choice_for(statistic, x, records_of(x), public) if compares else None)
    release = mechanism(x, rng=rng, workers=workers)
    if explain is not False and not isinstance(statistic, (Sum, Count, Variance, InterquartileRange)):
        for points in mechanism.points:  # none, if bounds are found privately
            explain_bounds(points, release, explain)
    return release


def _found(statistic: Statistic | tuple[float, ...], x: Any, public: Parameters, sums: bool) -> Mechanism:
    """Return the mechanism for such parameters, from the cache of calls, or made and kept there."""
    if type(x) is np.ndarray and x.ndim == 1:
        return _kept(statistic, x, public, sums)
    _kept(statistic, _NOTHING, public, sums)  # errors of parameters come before the records are touched
    chooses = public.method == "auto" and compared(statistic, public)
    n = rounded_down(records_of(x) or 0) if chooses else 0
    return _kept(statistic, Described(declares_integers(x), n, may_be_missing(x)), public, sums)


def _kept(statistic: Statistic | tuple[float, ...], x: Any, public: Parameters, sums: bool) -> Mechanism:
    """`mechanism_for`, from the cache of calls. It never keeps an error."""
    mechanism: Mechanism | None = _calls.find(statistic, x, public, sums)
    if mechanism is None:
        mechanism = mechanism_for(statistic, x, public)
        if is_fixed(public.distribution):
            _calls.keep(statistic, x, public, sums, mechanism)
    return mechanism


@lru_cache(maxsize=256)
def _traps_under(distribution: Any, mechanism: Mechanism, n: int, whole: bool) -> tuple[Trap, ...]:
    """Return the traps of a grid for what a user assumes (`assumption`); `whole` for records that are integers."""
    traps: list[Trap] = []
    typical = isinstance(distribution, Typical)
    if isinstance(mechanism, GlobalSensitivity | PresentMean):
        low, high = distribution if typical else Assumed(distribution).points(np.array([0.05, 0.95])).tolist()
        traps += of_width(mechanism.grid.upper - mechanism.grid.lower, high - low)
    elif isinstance(mechanism, InverseSensitivity) and n and not whole and _needs_order_only(mechanism.statistic):
        grid = cast(Grid, mechanism.grid)  # on floats no expected error is known
        assumed = [each.assumed for each in references_of(distribution, grid)]
        with suppress(TypeError, ValueError):
            traps += of_step(grid.step, max(mechanism.expected_error(n, each).total for each in assumed))
    return tuple(traps)


def mechanism_for(statistic: Statistic | tuple[float, ...], x: Any, public: Parameters) -> Mechanism:
    """Return the mechanism that releases a statistic of x by the given method; "auto" chooses by public numbers.

    Quantiles by inverse sensitivity need neither bounds nor a grid.
    """
    if isinstance(statistic, tuple):
        statistic = checks.fractions("q", statistic)
    bounds, grid, method, neighbors = public.bounds, public.grid, public.method, public.neighbors
    checks.choice("neighbors", neighbors, ("replace-one", "add-remove"))
    missing = checked_policy(public.missing)
    methods = _methods(type(statistic))
    if method not in methods and method != "auto":
        raise ValueError(f"method must be {' or '.join(map(repr, ('auto', *methods)))}, not {method!r}")
    delta, epsilon = checks.delta_down(public.delta), checks.positive_down("epsilon", public.epsilon)
    if method == "auto":
        method = next(iter(methods))
        distribution = assumption(public.distribution)  # reject another object before data are read
        if names := compared(statistic, public):
            within = grid_for(x, bounds, grid, _policy(method, statistic, x, public))
            chosen = choice_among(names, statistic, within, epsilon, delta, records_of(x), distribution)
            return cast(Mechanism, chosen.mechanism)
        delta = 0.0  # the default is pure
    elif public.distribution is not None:
        raise ValueError(f"distribution is for method='auto', not {method!r}")
    if delta and method != "smooth-sensitivity":
        raise ValueError(f"delta must be 0 for method={method!r}, which is pure, not {delta!r}")
    if neighbors != "replace-one" and not _hides_n(statistic, methods[method], bounds):
        return _resized(statistic, x, public, method, epsilon, delta)
    measure = measures.checked(public.measure)
    if measure != "auto" and methods[method] not in (InverseSensitivity, Quantiles):
        raise ValueError(f"measure must be 'auto' for method={method!r}, not {measure!r}")
    given = {"delta": (delta, 0.0), "neighbors": (neighbors, "replace-one"), "measure": (measure, "auto")}
    options = {name: value for name, (value, default) in given.items() if value != default}  # some do not have them
    if isinstance(bounds, str) and bounds == "private" and _needs_order_only(statistic):
        bounds = None if method == "inverse-sensitivity" else bounds  # which needs none
    if bounds is None and grid is None and method == "inverse-sensitivity" and _needs_order_only(statistic):
        floats = unbounded(declares_integers(x)).with_missing(missing)
        return methods[method](statistic, grid=floats, epsilon=epsilon, **options)
    checks.bounds_or_grid(bounds, grid)
    if isinstance(bounds, str):
        options["chooses"] = public.method == "auto"
        found = {"step": natural_step(x), "epsilon": epsilon, "missing": missing, "full": not may_be_missing(x)}
        return _privately_bounded(methods[method], statistic, bounds, **found, **options)
    if bounds is not None and methods[method] is InverseSensitivity and not sums_epsilons():
        options["selection"] = "exponential"
    within = grid_for(x, bounds, grid, _policy(method, statistic, x, public))
    return _made(method, statistic, grid=within, epsilon=epsilon, **options)


def _hides_n(statistic: Statistic | tuple[float, ...], method: Callable[..., Mechanism], bounds: Any) -> bool:
    """Whether a method has a mechanism of its own for a private number of records."""
    if method is GlobalSensitivity:
        return isinstance(statistic, (Mean, Variance, UnboundedStatistic)) and not isinstance(bounds, str)
    return method is InverseSensitivity and isinstance(statistic, OrderStatistic)


def _resized(
    statistic: Statistic | tuple[float, ...], x: Any, public: Parameters, method: str, epsilon: float, delta: float
) -> Mechanism:
    """Return a method for a public number of records with a private one."""
    policy = _policy(method, statistic, x, public)
    if policy is None and public.grid is not None:
        policy = public.grid.missing
    drops = policy == "drop"
    missing = "lower" if drops else public.missing
    sample = Described(declares_integers(x), 0, missing=True)  # it may be filled up with missing records

    def made(part: float) -> Mechanism:
        given = public.bounds, public.grid, part, delta, method, missing, None, "replace-one", public.measure
        return mechanism_for(statistic, sample, Parameters(*given))

    return resized(made, epsilon=epsilon, missing="drop" if drops else None)


def _needs_order_only(statistic: Statistic | tuple[float, ...]) -> bool:
    return isinstance(statistic, (OrderStatistic, tuple))


def range_of(quartiles: NDArray[np.float64]) -> float:
    """Return the distance of two released quantiles, at most the largest double."""
    low, high = quartiles.tolist()
    return float(min(high - low, sys.float_info.max))


def _privately_bounded(
    mechanism: Callable[..., Mechanism],
    statistic: Statistic | tuple[float, ...],
    bounds: str,
    **options: Any,
) -> Mechanism:
    if bounds != "private":
        raise ValueError(f"bounds must be a pair (lower, upper) or 'private', not {bounds!r}")
    if mechanism is clamped_privately:
        raise ValueError("method='private-bounds' finds bounds inside bounds=(lower, upper): give these, or no method")
    if not isinstance(statistic, Statistic) or (mechanism is InverseSensitivity and _needs_order_only(statistic)):
        raise ValueError("quantiles by inverse sensitivity need no bounds: leave out bounds='private'")
    return within_private_bounds(statistic, mechanism, **options)


def count_of(within: Any, epsilon: Exact, missing: Any) -> Mechanism:
    """Return the mechanism that releases the number of records, for one record added or removed."""

    def made() -> Mechanism:
        drops = checked_policy(missing) == "drop"
        if missing == "half":
            raise ValueError("missing must be a number or 'lower', to count missing records, or 'drop', not 'half'")
        statistic, grid = Count(public.bounds), _UNUSED.with_missing("drop" if drops else None)
        return GlobalSensitivity(statistic, grid=grid, epsilon=epsilon, neighbors="add-remove")

    public = Parameters(bounds=within, epsilon=epsilon, missing=missing)
    return kept(Count, public, made)


def kept(kind: Any, public: Parameters, made: Callable[[], Mechanism]) -> Mechanism:
    """Return the mechanism of this kind for such parameters, which determine it, from the cache of calls, or made.

    `kind` is an object that lasts, such as a class, or a tuple of parameters that begins with a name.
    """
    mechanism: Mechanism | None = _calls.find(kind, _NOTHING, public, True)
    if mechanism is None:
        mechanism = made()
        _calls.keep(kind, _NOTHING, public, True, mechanism)
    return mechanism
