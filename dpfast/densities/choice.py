"""The choice of `dpfast.synthesize` for one column of numbers, from public numbers only."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from dpfast.choosing import Choice, Known
from dpfast.core import checks
from dpfast.core.grid import FloatGrid, Grid, Points, grid_with, grids_within
from dpfast.core.types import Exact
from dpfast.densities.bins import automatic_bins
from dpfast.densities.histograms import PerturbedHistogram
from dpfast.densities.interpolation import LEAST_PRODUCT, are_better, quantile_levels
from dpfast.mechanisms import Quantiles

_PAGE = "https://dpfast.readthedocs.io/en/latest/results/tables.html"


def synthesis_choice(
    k: SupportsIndex,
    *,
    n: SupportsIndex,
    epsilon: Exact,
    bounds: Any = None,
    grid: Points | None = None,
    missing: float | str | None = None,
) -> Choice:
    """Return the choice between quantiles and a histogram for n records; k does not matter. See `dpfast.synthesize`."""
    checks.whole("k", k, least=1)
    n, epsilon = checks.whole("n", n, least=1), checks.positive_down("epsilon", epsilon)
    if bounds is None:
        points = grid_with(FloatGrid() if grid is None else grid, missing)
    else:
        checks.bounds_or_grid(bounds, grid)
        points = grid_with(grids_within(bounds, None), missing)
    if not isinstance(points, Grid | FloatGrid):
        raise TypeError("the choice is for one column: bounds must be a pair, or grid a Grid")
    quantiles = Quantiles(quantile_levels(n, epsilon, points), grid=points, epsilon=epsilon)
    candidates: dict[str, Quantiles | PerturbedHistogram] = {"quantiles": quantiles}
    if isinstance(points, FloatGrid):
        method, reason = "quantiles", "there are no bounds, which a histogram needs"
    elif points.missing == "drop":
        method, reason = "quantiles", "missing records are left out, which a histogram of n records cannot do"
    else:
        [bins] = automatic_bins("auto", np.broadcast_to(0.0, (n, 1)), (points,), epsilon)
        candidates["perturbed"] = PerturbedHistogram(bins, grid=points, epsilon=epsilon)
        enough = are_better(n, epsilon, points)
        method = "quantiles" if enough else "perturbed"
        reason = (
            f"n epsilon is {n * epsilon:.3g}, {'at least' if enough else 'below'} {LEAST_PRODUCT}, from which on "
            f"quantiles have smaller distances for narrow and skewed columns, and at most 0.03 more for others"
        )
    legend = f"n = {n:,}. Distances of Kolmogorov and Smirnov, measured for n = 300 to 10,000: {_PAGE}"
    rows = {name: (_resolution(made),) for name, made in candidates.items()}
    return Choice(candidates, method, reason, known=lambda: Known(("resolution",), rows, legend))


def _resolution(made: Quantiles | PerturbedHistogram) -> str:
    if isinstance(made, Quantiles):
        return f"{len(made.qs)} quantiles, 1 / {len(made.qs)} of the records between two of them"
    return f"{made.bins} bins, 1 / {made.bins} of the bounds each"
