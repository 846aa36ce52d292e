"""The commands that release numbers."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpfast._kernels._calls import Parameters
from dpfast.cli.budgets import check_budget
from dpfast.cli.keyed import between, check_groups, counts_all, number, release_groups
from dpfast.cli.records import (
    UNREAD,
    Answer,
    charging,
    column_points,
    context,
    first_column,
    guaranteed,
    hides_n,
    read,
    release,
    rng_of,
    settle_type,
    tell,
)
from dpfast.cli.singles import SINGLE
from dpfast.core import checks
from dpfast.core.grid import Grid, Points
from dpfast.core.privacy import Privacy
from dpfast.groups.estimates import estimator
from dpfast.mechanisms import Mechanism
from dpfast.mechanisms.intervals import interval_for
from dpfast.mechanisms.methods import compared, count_of, mechanism_for, range_of
from dpfast.mechanisms.released import or_none
from dpfast.statistics import (
    Count,
    InterquartileRange,
    Mean,
    Median,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
)
from dpfast.streaming import records_of

Facts = Callable[[Privacy, int | None], dict[str, Any]]  # public, about a release from so many records

# The statistic of each command that releases one number.
STATISTICS: dict[str, Callable[[argparse.Namespace], Statistic]] = {
    "median": lambda arguments: Median(),
    "mean": lambda arguments: Mean(),
    "sum": lambda arguments: Sum(),
    "std": lambda arguments: Variance(),
    "trimmed-mean": lambda arguments: TrimmedMean(arguments.trim),
    "iqr": lambda arguments: InterquartileRange(),
}


def release_one(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release one statistic of a column."""
    # Reject a bad parameter before a long read.
    check_groups(arguments)
    command = SINGLE[arguments.name]
    if arguments.bounds is None and command.bounded:
        raise ValueError("--bounds LOWER UPPER is needed, or --bounds private")
    if arguments.bounds == "private":
        return _within_private_bounds(arguments)
    rng, statistic = rng_of(arguments), STATISTICS[arguments.name](arguments)
    neighbors, confidence = arguments.neighbors, arguments.interval
    free = isinstance(statistic, (Mean, Median)) and arguments.method == command.method
    grid = column_points(arguments, free=free)
    if confidence is not None:
        if (arguments.delta and arguments.keys != "private") or arguments.method != command.method:
            raise ValueError("--interval cannot be combined with --delta or --method")
        estimator_of = partial(_estimator, statistic, grid, arguments)
        return _with_interval(arguments.name, _title(arguments), estimator_of, arguments, rng, _facts(grid, arguments))
    difference = isinstance(statistic, InterquartileRange) and not isinstance(grid, Grid)
    released = (0.25, 0.75) if difference else statistic
    root = isinstance(statistic, Variance)
    after = range_of if difference else math.sqrt if root else float

    def make(epsilon: Any, delta: Any, x: Any = None) -> Mechanism:
        return mechanism_for(released, x, Parameters(None, grid, epsilon, delta, arguments.method, neighbors=neighbors))

    if arguments.group_by:
        return _grouped(arguments.name, make, after, arguments, rng, _facts(grid, arguments))
    with charging(arguments):
        mechanism, x = make(arguments.epsilon, arguments.delta), None
        if arguments.method == "auto" and compared(
            released, Parameters(None, grid, missing=grid.missing, neighbors=neighbors)
        ):
            x = read(arguments)
            mechanism = make(arguments.epsilon, arguments.delta, x)
        answer = release(mechanism, arguments, rng, x)
    return _answered(arguments, mechanism, grid, after(answer.value), answer)


def _within_private_bounds(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release one statistic of a column, within bounds that are found privately."""
    for option in ("interval", "step"):
        if getattr(arguments, option) is not None:
            raise ValueError(f"--{option.replace('_', '-')} needs --bounds LOWER UPPER, not private ones")
    statistic, rng = STATISTICS[arguments.name](arguments), rng_of(arguments)
    settle_type(arguments)
    like = np.ma.empty(0, np.int64 if arguments.type == "integer" else np.float64)  # cells may be missing
    method = "auto" if arguments.method == SINGLE[arguments.name].method else arguments.method
    root = isinstance(statistic, Variance)

    def make(epsilon: Any, delta: Any) -> Mechanism:
        public = Parameters("private", None, epsilon, delta, method, arguments.missing, None, arguments.neighbors)
        return mechanism_for(statistic, like, public)

    if arguments.group_by:
        after = math.sqrt if root else float
        return _grouped(arguments.name, make, after, arguments, rng, _facts(None, arguments))
    with charging(arguments):
        mechanism = make(arguments.epsilon, arguments.delta)
        answer = release(mechanism, arguments, rng)
    return _answered(arguments, mechanism, None, math.sqrt(answer.value) if root else answer.value, answer)


def _answered(
    arguments: argparse.Namespace, mechanism: Mechanism, grid: Points | None, value: float, answer: Answer
) -> dict[str, Any]:
    """Return the report of a single number."""
    return {
        "statistic": arguments.name,
        "column": arguments.column,
        "value": value,
        **context(mechanism.privacy, grid, answer.n, arguments),
        "text": f"{_title(arguments)} = {number(value)}  ({answer.story}{mechanism.privacy})",
    }


def _title(arguments: argparse.Namespace) -> object:
    """Return the name of the number of a command: the variance of some is released as its root."""
    statistic = STATISTICS[arguments.name](arguments)
    return SINGLE[arguments.name].words if isinstance(statistic, Variance) else statistic


def release_count(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release the number of records, or of those within bounds."""
    check_groups(arguments)
    rng, within = rng_of(arguments), arguments.within and tuple(arguments.within)
    if arguments.delta and arguments.keys != "private":
        raise ValueError("--delta of a count is for --keys private")
    if arguments.column is None and counts_all(arguments) and not arguments.group_by:
        arguments.column = first_column(arguments)
    arguments.type = "number" if arguments.column is None and arguments.group_by else None
    settle_type(arguments)

    def make(epsilon: Any, delta: Any) -> Mechanism:
        if arguments.interval is None:
            return count_of(within, epsilon, arguments.missing)
        return estimator(Count(within), None, None, None, epsilon, arguments.interval, None, arguments.missing)

    if arguments.group_by:
        return _grouped("count", make, int, arguments, rng, partial(_counted, arguments))
    if arguments.interval is not None:
        return _with_interval("count", "count", make, arguments, rng, partial(_counted, arguments))
    with charging(arguments):
        mechanism = make(arguments.epsilon, 0.0)
        value, _, _ = release(mechanism, arguments, rng)
    return {
        "statistic": "count",
        "column": arguments.column,
        "value": int(value),
        **_counted(arguments, mechanism.privacy),
        "text": f"count = {int(value)}  ({mechanism.privacy})",
    }


def _counted(arguments: argparse.Namespace, privacy: Privacy, n: int | None = None) -> dict[str, Any]:
    """Return the public facts of a count; that of all records is private."""
    left_out = arguments.within is not None or arguments.missing == "drop"
    return {
        "within": arguments.within,
        **guaranteed(privacy),
        "missing": arguments.missing,
        "reading": f"read as type {arguments.type}; {UNREAD} {'are not counted' if left_out else 'count'}",
        "private": arguments.seed is None,
    }


def _facts(grid: Points | None, arguments: argparse.Namespace) -> Facts:
    return lambda privacy, n: context(privacy, grid, n, arguments)


def _estimator(
    statistic: Statistic, grid: Points, arguments: argparse.Namespace, epsilon: Any, delta: Any
) -> Mechanism:
    """Return the mechanism of a statistic with an interval."""
    return interval_for(statistic, grid, epsilon, arguments.interval, arguments.neighbors, root=arguments.name == "std")


def _grouped(
    name: str,
    make: Callable[[Any, Any], Mechanism],
    after: Callable[[Any], Any],
    arguments: argparse.Namespace,
    rng: np.random.Generator | None,
    facts: Facts,
) -> dict[str, Any]:
    """Release a statistic for each group of records."""
    return {"statistic": name, "column": arguments.column, **release_groups(make, after, arguments, rng, facts)}


def _with_interval(
    name: str,
    title: object,
    make: Callable[[Any, Any], Mechanism],
    arguments: argparse.Namespace,
    rng: np.random.Generator | None,
    facts: Facts,
) -> dict[str, Any]:
    """Release a statistic of a column, or of each group of its records, with an interval."""
    if arguments.group_by:
        return _grouped(name, make, float, arguments, rng, facts)
    with charging(arguments):
        mechanism = make(arguments.epsilon, 0.0)
        check_budget(arguments.ledger, mechanism)
        x = read(arguments)
        tell(mechanism, arguments, x)
        value, low, high = mechanism(x, rng=rng)
    n = None if hides_n(arguments) else records_of(x)
    records = "" if n is None else f"{n:,} records; "
    return {
        "statistic": name,
        "column": arguments.column,
        "value": int(value) if name == "count" else value,
        "low": or_none(low),
        "high": or_none(high),
        "confidence": arguments.interval,
        **facts(mechanism.privacy, n),
        "text": f"{title} = {number(value)}, {between(arguments.interval, low, high)}  ({records}{mechanism.privacy})",
    }


def release_quantiles(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release quantiles of a column together."""
    check_groups(arguments)
    if arguments.delta and arguments.keys != "private":
        raise ValueError("--delta of quantiles is for --keys private")
    grid = column_points(arguments, free=True)
    rng, qs = rng_of(arguments), arguments.q or [0.25, 0.5, 0.75]
    if arguments.interval is not None:
        if len(qs) > 1:
            raise ValueError("--interval is for a single quantile: give one -q")
        statistic = Quantile(qs[0])
        make = partial(_estimator, statistic, grid, arguments)
        return _with_interval("quantile", statistic, make, arguments, rng, _facts(grid, arguments))
    if arguments.group_by:
        made = partial(_quantiles, qs, grid, arguments)
        keyed = _grouped("quantiles", made, np.ndarray.tolist, arguments, rng, _facts(grid, arguments))
        return {"q": qs, **keyed}
    with charging(arguments):
        mechanism = _quantiles(qs, grid, arguments, arguments.epsilon)
        released, n, story = release(mechanism, arguments, rng)
    values = released.tolist()
    lines = [f"{q:g}-quantile = {number(value)}" for q, value in zip(qs, values, strict=True)]
    return {
        "statistic": "quantiles",
        "column": arguments.column,
        "q": qs,
        "values": values,
        **context(mechanism.privacy, grid, n, arguments),
        "text": "\n".join([*lines, f"({story}together {mechanism.privacy})"]),
    }


def _quantiles(
    qs: list[float], grid: Points, arguments: argparse.Namespace, epsilon: Any, delta: Any = 0.0
) -> Mechanism:
    public = Parameters(None, grid, epsilon, neighbors=arguments.neighbors)
    return mechanism_for(checks.fractions("qs", qs), None, public)
