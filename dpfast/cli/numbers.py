"""The commands that release numbers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from dpfast.aggregate import SampleAndAggregate
from dpfast.cli.records import UNREAD, column_points, context, read, release, rng_of
from dpfast.grid import Grid, Points
from dpfast.mechanisms import Quantiles
from dpfast.mechanisms.intervals import interval_for
from dpfast.mechanisms.methods import mechanism_for, range_of
from dpfast.statistics import (
    InterquartileRange,
    Mean,
    Median,
    Quantile,
    Statistic,
    TrimmedMean,
)
from dpfast.streaming import Chunks

# The commands that release one number: name in the help, statistic, default method.
SINGLE: dict[str, tuple[str, Callable[[argparse.Namespace], Statistic], str]] = {
    "median": ("median", lambda arguments: Median(), "inverse-sensitivity"),
    "mean": ("mean", lambda arguments: Mean(), "global-sensitivity"),
    "trimmed-mean": ("trimmed mean", lambda arguments: TrimmedMean(arguments.trim), "inverse-sensitivity"),
    "iqr": ("interquartile range", lambda arguments: InterquartileRange(), "inverse-sensitivity"),
}


def release_one(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release one statistic of a column."""
    # Reject a bad parameter before a long read.
    grid, rng, statistic = column_points(arguments), rng_of(arguments), arguments.make(arguments)
    if getattr(arguments, "interval", None) is not None:
        if arguments.delta or arguments.method != SINGLE[arguments.name][2] or arguments.neighbors != "replace-one":
            raise ValueError("--interval cannot be combined with --delta, --method or --neighbors add-remove")
        return _with_interval(arguments.name, statistic, grid, arguments, rng)
    difference = isinstance(statistic, InterquartileRange) and not isinstance(grid, Grid)
    released = (0.25, 0.75) if difference else statistic
    mechanism = mechanism_for(
        released, None, None, grid, arguments.epsilon, arguments.delta, arguments.method, arguments.neighbors
    )
    value, n, story = release(mechanism, arguments, rng)
    value = range_of(value) if difference else value
    return {
        "statistic": arguments.name,
        "column": arguments.column,
        "value": value,
        **context(mechanism.privacy, grid, n, arguments),
        "text": f"{statistic} = {value:.12g}  ({story}; {mechanism.privacy})",
    }


def _with_interval(
    name: str, statistic: Statistic, grid: Points, arguments: argparse.Namespace, rng: np.random.Generator | None
) -> dict[str, Any]:
    """Release a statistic of a column with an interval for the population value."""
    mechanism = interval_for(statistic, grid, arguments.epsilon, arguments.interval)
    x = read(arguments)
    value, low, high = mechanism(x, rng=rng)
    n = x.records() if isinstance(x, Chunks) else x.size
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
    grid, rng = column_points(arguments), rng_of(arguments)
    if arguments.interval is not None:
        if len(arguments.q) > 1:
            raise ValueError("--interval is for a single quantile: give one -q")
        return _with_interval("quantile", Quantile(arguments.q[0]), grid, arguments, rng)
    mechanism = Quantiles(arguments.q, grid=grid, epsilon=arguments.epsilon)
    released, n, story = release(mechanism, arguments, rng)
    values = released.tolist()
    lines = [f"{q:g}-quantile = {value:.12g}" for q, value in zip(arguments.q, values, strict=True)]
    return {
        "statistic": "quantiles",
        "column": arguments.column,
        "q": arguments.q,
        "values": values,
        **context(mechanism.privacy, grid, n, arguments),
        "text": "\n".join([*lines, f"({story}; together {mechanism.privacy})"]),
    }


def release_fit(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release the parameters of a family."""
    rng = rng_of(arguments)
    names = [name for name, _ in arguments.bounds]
    if len(set(names)) < len(names):
        raise ValueError("bounds must name each parameter once")
    mechanism = SampleAndAggregate(
        arguments.family,
        bounds=arguments.bounds,
        epsilon=arguments.epsilon,
        blocks=arguments.blocks,
        bias_correction=not arguments.no_bias_correction,
        combine=arguments.combine,
        shuffle=arguments.shuffle,
    )
    x = read(arguments)
    values = dict(zip(mechanism.box.names, np.atleast_1d(mechanism(x, rng=rng)).tolist(), strict=True))
    n = x.records() if isinstance(x, Chunks) else x.size
    blocks, privacy = mechanism.block_count(n), mechanism.privacy
    lines = [f"{name} = {value:.12g}" for name, value in values.items()]
    return {
        "statistic": "mle",
        "column": arguments.column,
        "family": arguments.family,
        "values": values,
        "blocks": blocks,
        "n": n,
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "neighbors": privacy.neighbors,
        "reading": f"read as type number; {UNREAD}, or outside the support of the family, are left out",
        "private": arguments.seed is None,
        "text": "\n".join([*lines, f"({arguments.family}; {n:,} records in {blocks:,} blocks; {privacy})"]),
    }
