"""Means and sums of numbers or of rows, with public parameters given in short."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dpfast._kernels._calls import Parameters
from dpfast.choosing import Explain, explained
from dpfast.core import checks, containers
from dpfast.core.grid import grid_with, grids_within, natural_step
from dpfast.domains import Ball, Box, Domain
from dpfast.mechanisms import Mechanism, NoisySums
from dpfast.mechanisms.methods import kept, release_of, warn_of_missing
from dpfast.mechanisms.resized import resized
from dpfast.mechanisms.sums import better_noise
from dpfast.random import RandomSource
from dpfast.statistics import Mean, Sum
from dpfast.streaming import Chunks, Counted, names_of_columns


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
    names_of_columns(x)  # refuses two of one name
    if public.method not in ("auto", "global-sensitivity"):
        raise ValueError(f"method must be 'auto' or 'global-sensitivity' for rows, not {public.method!r}")
    if public.distribution is not None:
        raise ValueError("distribution is for numbers, not for rows")
    made = partial(_of_rows, statistic, x, d, public, center, radius)
    whole = type(x) is np.ndarray and x.dtype.kind in "iub"  # of others, columns may have names and dtypes
    kind = ("rows", str(statistic), d, center, radius, whole)
    mechanism = kept(kind, public, made) if type(x) is np.ndarray else made()
    warn_of_missing(mechanism, statistic, x, public)
    return explained(mechanism, explain, records)(records, rng=rng, workers=workers)


def _of_rows(statistic: Mean | Sum, x: Any, d: int, public: Parameters, center: Any, radius: Any) -> Mechanism:
    """Return the mechanism for rows of d columns; of x it reads names and dtypes of columns only."""
    domain = _domain(x, d, public.bounds, public.grid, center, radius, public.missing)
    epsilon, delta = checks.positive_down("epsilon", public.epsilon), checks.delta_down(public.delta)
    noise = better_noise(domain, d, epsilon, delta)

    def made(part: float, neighbors: str = "replace-one", of: Domain = domain) -> Mechanism:
        return NoisySums(statistic, domain=of, epsilon=part, delta=delta, neighbors=neighbors, noise=noise)

    if public.neighbors == "replace-one" or isinstance(statistic, Sum):
        return made(epsilon, public.neighbors)
    return _resized(made, domain, epsilon)


def _resized(made: Any, domain: Domain, epsilon: float) -> Mechanism:
    """Return a mechanism of rows with a private number of them, which may leave out those with a missing entry."""
    if not (isinstance(domain, Box) and any(grid.missing == "drop" for grid in domain.grids)):
        return resized(made, epsilon=epsilon)
    kept = [grid.with_missing("lower") for grid in domain.grids]
    within = Box(kept[0] if domain.columns is None else tuple(kept))
    return resized(lambda part: made(part, of=within), epsilon=epsilon, missing="drop")


def _read(x: Any, radius: Any) -> tuple[Any, int | None]:
    """Return the records and their number of columns, None for numbers. Of a sequence, the records are an array."""
    if isinstance(x, Chunks) and not isinstance(x, Counted):
        first = next(iter(x), None)
        if first is None and radius is not None:
            raise ValueError("x has no pieces: for rows, the first piece gives the number of columns")
        return x, _read(first, radius)[1]
    if not hasattr(x, "shape") and containers.is_sequence(x):
        x = containers.numbers("x", x, dimensions=1 if radius is None else 2)
    shape: tuple[int, ...] = getattr(x, "shape", ())
    if len(shape) == 2:
        return x, shape[1]
    if radius is not None:
        raise ValueError("x must be two-dimensional, a record in each row, for a radius")
    return x, None


def _domain(x: Any, d: int, bounds: Any, grid: Any, center: Any, radius: Any, missing: Any) -> Domain:
    """Return the ball or the box of d columns."""
    if radius is None:
        checks.bounds_or_grid(bounds, grid)
        domain: Domain = Box(grid_with(grids_within(bounds, natural_step(x), x) if grid is None else grid, missing))
    elif bounds is None and grid is None:
        if missing is not None:
            raise TypeError("missing is for bounds= or grid=: in a ball, a row with NaN or an infinity is the center")
        domain = Ball(radius, center=0.0 if center is None else center)
    else:
        raise TypeError("give radius= for a ball, or bounds= or grid= for a box, not both")
    domain.check_columns(d)
    return domain
