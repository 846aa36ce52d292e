"""A measurement of each kind in one call, and their registration with OpenDP."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import opendp.prelude as dp

from dpfast.core import checks
from dpfast.core.grid import Grid, Points, grids_within, unbounded
from dpfast.densities import PerturbedHistogram
from dpfast.mechanisms import InverseSensitivity, Quantiles
from dpfast.opendp.measurements import Arrays, make_measurement
from dpfast.robust import NestedBoxes
from dpfast.statistics import Mean, Median, Quantile, RankStatistic, TrimmedMean


def _inverse(
    statistic: RankStatistic, input_domain: Any, input_metric: Any, epsilon: float, bounds: Any, grid: Points | None
) -> Any:
    where = _grid(bounds, grid, input_domain, order_only=statistic.order_only)
    return make_measurement(input_domain, input_metric, InverseSensitivity(statistic, grid=where, epsilon=epsilon))


def _grid(bounds: Any, grid: Any, input_domain: Any, *, order_only: bool = False, several: bool = False) -> Any:
    """Return the grid of a measurement; without bounds, that of floats if the order of the records is enough."""
    if grid is not None and bounds is None:
        return grid
    dtype = Arrays.of(input_domain).dtype
    integers = dtype is not None and dtype.kind in "biu"
    if order_only and bounds is None:
        return unbounded(integers)
    if grid is not None or bounds is None:
        raise TypeError("give either bounds=(lower, upper) or grid=Grid(...): they are public and have no default")
    step = 1.0 if integers else None
    return grids_within(bounds, step) if several else Grid(*checks.pair("bounds", bounds), step=step)


def make_median(
    input_domain: Any, input_metric: Any, epsilon: float, *, bounds: Any = None, grid: Points | None = None
) -> Any:
    """Make a measurement of the median, a float, by inverse sensitivity (`dpfast.InverseSensitivity`).

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        See `make_measurement`.
    input_metric : opendp.mod.Metric
        See `make_measurement`.
    epsilon : float
        Positive; for one replaced record. If omitted, a ``dp.Context`` finds the one that spends its budget.
    bounds : pair of floats, optional
        Public, in data units; short for ``grid=Grid(lower, upper)``, with step 1 if the domain has an integer dtype.
    grid : Grid or FloatGrid, optional
        Instead of `bounds`. Without both, see `dpfast.median`: quantiles alone need no bounds.
    """
    return _inverse(Median(), input_domain, input_metric, epsilon, bounds, grid)


def make_quantile(
    input_domain: Any, input_metric: Any, epsilon: float, *, q: float, bounds: Any = None, grid: Points | None = None
) -> Any:
    """Make a measurement of the q-quantile, a float, by inverse sensitivity. `q` in [0, 1]; else see `make_median`."""
    return _inverse(Quantile(q), input_domain, input_metric, epsilon, bounds, grid)


def make_quantiles(
    input_domain: Any,
    input_metric: Any,
    epsilon: float,
    *,
    qs: Sequence[float],
    bounds: Any = None,
    grid: Points | None = None,
) -> Any:
    """Make a measurement of several quantiles, an array; epsilon in total (`dpfast.Quantiles`). See `make_median`."""
    mechanism = Quantiles(qs, grid=_grid(bounds, grid, input_domain, order_only=True), epsilon=epsilon)
    return make_measurement(input_domain, input_metric, mechanism)


def make_mean(
    input_domain: Any, input_metric: Any, epsilon: float, *, bounds: Any = None, grid: Grid | None = None
) -> Any:
    """Make a measurement of the mean, a float, by inverse sensitivity. Parameters: see `make_median`."""
    return _inverse(Mean(), input_domain, input_metric, epsilon, bounds, grid)


def make_trimmed_mean(
    input_domain: Any, input_metric: Any, epsilon: float, *, trim: float, bounds: Any = None, grid: Grid | None = None
) -> Any:
    """Make a measurement of the trimmed mean, without a fraction `trim` at each end, a float. See `make_median`."""
    return _inverse(TrimmedMean(trim), input_domain, input_metric, epsilon, bounds, grid)


def make_robust_mean(
    input_domain: Any,
    input_metric: Any,
    epsilon: float,
    *,
    bounds: Any = None,
    grid: Grid | Sequence[Grid] | None = None,
    radius: float = 0.0,
) -> Any:
    """Make a measurement of a robust location, of shape (d,), of rows (`dpfast.NestedBoxes` of medians).

    Parameters: see `make_median`, with a domain of rows. `bounds` are a pair for all columns or one for each,
    and `grid` is one Grid or d of them; for `radius` see `dpfast.robust_mean`.
    """
    where = tuple(grid) if isinstance(grid, Sequence) else _grid(bounds, grid, input_domain, several=True)
    return make_measurement(
        input_domain, input_metric, NestedBoxes(Median(), grid=where, epsilon=epsilon, radius=radius)
    )


def make_histogram(
    input_domain: Any,
    input_metric: Any,
    epsilon: float,
    *,
    bins: int | Sequence[int],
    bounds: Any = None,
    grid: Grid | Sequence[Grid] | None = None,
    neighbors: str | None = None,
) -> Any:
    """Make a measurement of a histogram, a `dpfast.Histogram` (`dpfast.densities.PerturbedHistogram`).

    Parameters: see `make_median`. `bins` applies to every column, or has one number per column; for 2 to 4 columns,
    `bounds` and `grid` may have one pair or Grid each. `neighbors` is by default "add-remove" for a domain without a
    size, else "replace-one".
    """
    where = tuple(grid) if isinstance(grid, Sequence) else _grid(bounds, grid, input_domain, several=True)
    if neighbors is None:
        neighbors = "add-remove" if Arrays.of(input_domain).n is None else "replace-one"
    mechanism = PerturbedHistogram(bins, grid=where, epsilon=epsilon, neighbors=neighbors)
    return make_measurement(input_domain, input_metric, mechanism)


def register() -> None:
    """Add the measurements to queries of ``dp.Context``, as ``dpfast_median`` and so on; may be called repeatedly.

    Examples
    --------
    >>> import numpy as np, opendp.prelude as dp, dpfast.opendp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> dpfast.opendp.register()
    >>> context = dp.Context.compositor(
    ...     data=np.linspace(0, 100, 1000),
    ...     privacy_unit=dp.unit_of(changes=1),
    ...     privacy_loss=dp.loss_of(epsilon=1.0),
    ...     split_evenly_over=2,
    ...     domain=dpfast.opendp.array_domain(1000),
    ... )
    >>> 30 <= context.query().dpfast_median(bounds=(0, 100)).release() <= 70
    True
    """
    for constructor in (
        make_histogram,
        make_mean,
        make_median,
        make_quantile,
        make_quantiles,
        make_robust_mean,
        make_trimmed_mean,
    ):
        with suppress(ValueError):  # already registered
            dp.register(constructor, "dpfast_" + constructor.__name__.removeprefix("make_"))
