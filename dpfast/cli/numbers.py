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
from dpfast.cli.keyed import check_groups, release_groups
from dpfast.cli.records import UNREAD, charging, column_points, context, guaranteed, read, release, rng_of, tell
from dpfast.cli.singles import SINGLE
from dpfast.core.grid import Grid, Points
from dpfast.mechanisms import Mechanism, Quantiles
from dpfast.mechanisms.intervals import interval_for
from dpfast.mechanisms.methods import compared, count_of, mechanism_for, range_of
from dpfast.statistics import (
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
from dpfast.tables import schema_type

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
    grid, rng, statistic = column_points(arguments), rng_of(arguments), STATISTICS[arguments.name](arguments)
    neighbors = getattr(arguments, "neighbors", "replace-one")
    if getattr(arguments, "interval", None) is not None:
        if arguments.delta or arguments.method != command.method or neighbors != "replace-one":
            raise ValueError("--interval cannot be combined with --delta, --method or --neighbors add-remove")
        return _with_interval(arguments.name, statistic, grid, arguments, rng)
    difference = isinstance(statistic, InterquartileRange) and not isinstance(grid, Grid)
    released = (0.25, 0.75) if difference else statistic
    root = isinstance(statistic, Variance)
    after = range_of if difference else math.sqrt if root else float

    def make(epsilon: Any, delta: Any, x: Any = None) -> Mechanism:
        return mechanism_for(released, x, Parameters(None, grid, epsilon, delta, arguments.method, neighbors=neighbors))

    if arguments.group_by:
        keyed = release_groups(make, after, grid, arguments, rng)
        return {"statistic": arguments.name, "column": arguments.column, **keyed}
    with charging(arguments):
        mechanism, x = make(arguments.epsilon, arguments.delta), None
        if arguments.method == "auto" and compared(
            released, Parameters(None, grid, missing=grid.missing, neighbors=neighbors)
        ):
            x = read(arguments)
            mechanism = make(arguments.epsilon, arguments.delta, x)
        value, n, story = release(mechanism, arguments, rng, x)
    value = after(value)
    title = command.words if root else statistic
    return {
        "statistic": arguments.name,
        "column": arguments.column,
        "value": value,
        **context(mechanism.privacy, grid, n, arguments),
        "text": f"{title} = {value:.12g}  ({story}{mechanism.privacy})",
    }


def release_count(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release the number of records, or of those within bounds."""
    rng, within = rng_of(arguments), arguments.within
    arguments.type = schema_type(arguments.file, arguments.column) or "number"
    with charging(arguments):
        mechanism = count_of(within and tuple(within), arguments.epsilon, arguments.missing)
        value, _, _ = release(mechanism, arguments, rng)
    privacy = mechanism.privacy
    left_out = within is not None or arguments.missing == "drop"
    return {
        "statistic": "count",
        "column": arguments.column,
        "value": int(value),
        "within": within,
        **guaranteed(privacy),
        "missing": arguments.missing,
        "reading": f"read as type {arguments.type}; {UNREAD} {'are not counted' if left_out else 'count'}",
        "private": arguments.seed is None,
        "text": f"count = {int(value)}  ({privacy})",
    }


def _with_interval(
    name: str, statistic: Statistic, grid: Points, arguments: argparse.Namespace, rng: np.random.Generator | None
) -> dict[str, Any]:
    """Release a statistic of a column with an interval for the population value."""
    with charging(arguments):
        mechanism = interval_for(statistic, grid, arguments.epsilon, arguments.interval)
        check_budget(arguments.ledger, mechanism)
        x = read(arguments)
        tell(mechanism, arguments, x)
        value, low, high = mechanism(x, rng=rng)
    n = records_of(x)
    between = f"{100 * arguments.interval:.10g} % interval {low:.12g} to {high:.12g}"
    return {
        "statistic": name,
        "column": arguments.column,
        "value": value,
        "low": low,
        "high": high,
        "confidence": arguments.interval,
        **context(mechanism.privacy, grid, n, arguments),
        "text": f"{statistic} = {value:.12g}, {between}  ({n:,} records; {mechanism.privacy})",
    }


def release_quantiles(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release quantiles of a column together."""
    check_groups(arguments)
    grid, rng, qs = column_points(arguments), rng_of(arguments), arguments.q or [0.25, 0.5, 0.75]
    if arguments.interval is not None:
        if len(qs) > 1:
            raise ValueError("--interval is for a single quantile: give one -q")
        return _with_interval("quantile", Quantile(qs[0]), grid, arguments, rng)
    if arguments.group_by:
        made = partial(_quantiles, qs, grid)
        keyed = release_groups(made, np.ndarray.tolist, grid, arguments, rng)
        return {"statistic": "quantiles", "column": arguments.column, "q": qs, **keyed}
    with charging(arguments):
        mechanism = Quantiles(qs, grid=grid, epsilon=arguments.epsilon)
        released, n, story = release(mechanism, arguments, rng)
    values = released.tolist()
    lines = [f"{q:g}-quantile = {value:.12g}" for q, value in zip(qs, values, strict=True)]
    return {
        "statistic": "quantiles",
        "column": arguments.column,
        "q": qs,
        "values": values,
        **context(mechanism.privacy, grid, n, arguments),
        "text": "\n".join([*lines, f"({story}together {mechanism.privacy})"]),
    }


def _quantiles(qs: list[float], grid: Points, epsilon: Any, delta: Any) -> Quantiles:
    return Quantiles(qs, grid=grid, epsilon=epsilon)
