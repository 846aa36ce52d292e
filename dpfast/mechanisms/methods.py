"""The choice of a mechanism by the name of a method."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast import _checks, _measures
from dpfast.grid import Grid, Points, checked_policy, floats_for, grid_with, natural_step
from dpfast.mechanisms.bounds import clamped_privately, within_private_bounds
from dpfast.mechanisms.globally import GlobalSensitivity
from dpfast.mechanisms.inverse import InverseSensitivity
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.quantiles import Quantiles
from dpfast.mechanisms.smooth import SmoothSensitivity
from dpfast.spending import sums_epsilons
from dpfast.statistics import (
    Count,
    Huber,
    MomentStatistic,
    OrderStatistic,
    RankStatistic,
    Statistic,
)

_UNUSED = Grid(0, 1, step=1)  # a count uses no grid


@cache
def _methods(statistic: type[Statistic | tuple[float, ...]]) -> dict[str, Callable[..., Mechanism]]:
    """The mechanisms that can release a kind of statistic, or several quantiles, by name of the method."""
    if issubclass(statistic, tuple):
        return {"inverse-sensitivity": Quantiles}
    methods: dict[str, Callable[..., Mechanism]] = {}
    if issubclass(statistic, RankStatistic):
        methods["inverse-sensitivity"] = InverseSensitivity
    if issubclass(statistic, RankStatistic) and not issubclass(statistic, Huber):
        methods["smooth-sensitivity"] = SmoothSensitivity
    if issubclass(statistic, MomentStatistic):
        methods["global-sensitivity"] = GlobalSensitivity
    if issubclass(statistic, MomentStatistic) and not issubclass(statistic, Count):
        methods["private-bounds"] = clamped_privately
    return methods


def mechanism_for(
    statistic: Statistic | tuple[float, ...],
    x: Any,
    bounds: tuple[float, float] | str | None,
    grid: Points | None,
    epsilon: float,
    delta: float,
    method: str,
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    measure: str | Sequence[int] = "auto",
) -> Mechanism:
    """The mechanism that releases a statistic of x by the given method.

    Quantiles by inverse sensitivity need neither bounds nor a grid.
    """
    _checks.choice("neighbors", neighbors, ("replace-one", "add-remove"))
    missing = checked_policy(missing)
    methods = _methods(type(statistic))
    if method not in methods:
        raise ValueError(f"method must be {' or '.join(map(repr, methods))}, not {method!r}")
    delta = _checks.delta_down(delta)
    if delta and method != "smooth-sensitivity":
        raise ValueError(f"delta must be 0 for method={method!r}, which is pure, not {delta!r}")
    epsilon = _checks.positive_down("epsilon", epsilon)  # before the cache, in which 1 and True are equal keys
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


def count_of(within: Any, epsilon: float, missing: Any) -> Mechanism:
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
