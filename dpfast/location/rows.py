"""Means and sums of numbers or of rows, with public parameters given in short."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfast import _checks, _containers
from dpfast._kernels._calls import Parameters
from dpfast.domains import Ball, Box, Domain
from dpfast.grid import Grid, grid_with, natural_step
from dpfast.mechanisms import NoisySums
from dpfast.mechanisms.explanation import Explain, explained
from dpfast.mechanisms.methods import release_of
from dpfast.mechanisms.sums import better_noise
from dpfast.random import RandomSource
from dpfast.statistics import Mean, Sum
from dpfast.streaming import Chunks, Counted


def moment_of(
    statistic: Mean | Sum,
    x: Any,
    public: Parameters,
    center: Any,
    radius: Any,
    rng: RandomSource,
    workers: int,
    explain: Explain,
) -> Any:
    """Release the mean or the sum of x: a float for numbers, an array for rows."""
    if center is not None and radius is None:
        raise TypeError("center is for radius=, the radius of a ball")
    if radius is None and type(x) is np.ndarray and x.ndim == 1:
        return release_of(statistic, x, public, rng, workers, explain)
    records, d = _read(x, radius)
    if d is None:
        return float(release_of(statistic, records, public, rng, workers, explain))
    if public.method not in ("auto", "global-sensitivity"):
        raise ValueError(f"method must be 'auto' or 'global-sensitivity' for rows, not {public.method!r}")
    if public.distribution is not None:
        raise ValueError("distribution is for numbers, not for rows")
    domain = _domain(x, d, public.bounds, public.grid, center, radius, public.missing)
    epsilon, delta = _checks.positive_down("epsilon", public.epsilon), _checks.delta_down(public.delta)
    noise = better_noise(domain, d, epsilon, delta)
    sums = NoisySums(statistic, domain=domain, epsilon=epsilon, delta=delta, neighbors=public.neighbors, noise=noise)
    return explained(sums, explain, records)(records, rng=rng, workers=workers)


def _read(x: Any, radius: Any) -> tuple[Any, int | None]:
    """The records and their number of columns, None for numbers. Of a sequence, the records are an array."""
    if isinstance(x, Chunks) and not isinstance(x, Counted):
        first = next(iter(x), None)
        if first is None and radius is not None:
            raise ValueError("x has no pieces: for rows, the first piece gives the number of columns")
        return x, _read(first, radius)[1]
    if not hasattr(x, "shape") and _containers.is_sequence(x):
        x = _containers.numbers("x", x, dimensions=1 if radius is None else 2)
    shape: tuple[int, ...] = getattr(x, "shape", ())
    if len(shape) == 2:
        return x, shape[1]
    if radius is not None:
        raise ValueError("x must be two-dimensional, a record in each row, for a radius")
    return x, None


def _domain(x: Any, d: int, bounds: Any, grid: Any, center: Any, radius: Any, missing: Any) -> Domain:
    """The ball or the box of d columns."""
    if radius is None:
        _checks.bounds_or_grid(bounds, grid)
        domain: Domain = Box(grid_with(_grids(bounds, natural_step(x), d) if grid is None else grid, missing))
    elif bounds is None and grid is None:
        if missing is not None:
            raise TypeError("missing is for bounds= or grid=: in a ball, a row with NaN or an infinity is the center")
        domain = Ball(radius, center=0.0 if center is None else center)
    else:
        raise TypeError("give radius= for a ball, or bounds= or grid= for a box, not both")
    domain.check_columns(d)
    return domain


def _grids(bounds: Any, step: float | None, d: int) -> Grid | tuple[Grid, ...]:
    """The grid within bounds, or a grid for each of d columns if an end has d numbers."""
    if isinstance(bounds, str):
        raise ValueError(f"bounds must be a pair (lower, upper) for rows, not {bounds!r}")
    bounds = _checks.once(bounds)
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise TypeError("bounds must be a pair (lower, upper), each a number or one for each column") from None
    if not (np.ndim(lower) or np.ndim(upper)):
        return Grid(*_checks.pair("bounds", bounds), step=step)
    ends = [_end(name, end, d) for name, end in (("lower", lower), ("upper", upper))]
    return tuple(Grid(low, high, step=step) for low, high in zip(*ends, strict=True))


def _end(name: str, end: Any, d: int) -> list[Any]:
    """The bounds of d columns on one side."""
    numbers = list(end) if np.ndim(end) else [end] * d
    if len(numbers) != d:
        raise ValueError(f"the {name} end of bounds must have a number for each of {d} columns, not {len(numbers)}")
    return [_checks.real(f"the {name} end of bounds", number) for number in numbers]
