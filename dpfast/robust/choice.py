"""The choice of a method for robust means by public numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpfast.choosing import Choice, Known, built, gainful
from dpfast.core.grid import Grid
from dpfast.mechanisms import Mechanism
from dpfast.robust.boxes import NestedBoxes
from dpfast.robust.depth import SIZES, TukeyDepth
from dpfast.robust.independent import IndependentColumns
from dpfast.robust.whitened import Whitened
from dpfast.statistics import RankStatistic
from dpfast.theory.robust import depth_error, medians_error

_REFERENCES = (0.0, 0.5, 0.9)  # correlations of any two columns
_WHITENED_RECORDS = 540.0  # for each column, times 1 / epsilon: fewer do not show locations and scales
_MOST_RECORDS = {2: 2**20, 3: 3000}  # for depths, which take long for more


def by_noise(boxes: Mechanism, columns: IndependentColumns) -> Choice:
    """Return the choice between boxes and independent columns by their noise, which needs no assumption."""
    d, taken = columns.dimension, "columns" if columns.favoured else "boxes"
    rows = {"boxes": ((d + 1) / columns.epsilon,), "columns": (2 / columns.share,)}
    legend = "Noise: mean magnitude in a column, in units of 1 / (n f), f the density of the records at the median."
    reason = f"it has less noise for {d} columns"
    return Choice({"boxes": boxes, "columns": columns}, taken, reason, known=lambda: Known(("noise",), rows, legend))


def by_errors(statistic: RankStatistic, n: int, grids: Sequence[Grid], epsilon: float, delta: float) -> Choice:
    """Return the choice by expected errors, for normal records on these grids whose covariance is not known.

    The error is the root mean square of the distance from the mean in the Mahalanobis norm of the records, its
    geometric mean over correlations of 0, 0.5 and 0.9 of any two columns. The default is boxes or independent columns,
    which have less noise.
    """
    d = len(grids)
    limits, builders = _limits(n, grids, epsilon, delta), methods(statistic, grids, epsilon, delta)
    candidates, more = built({name: build for name, build in builders.items() if name not in limits}, required="boxes")
    columns: IndependentColumns | None = candidates.get("columns")
    if columns is not None and columns.favoured:
        candidates = {"columns": columns, **candidates}

    def error(method: str, correlation: float) -> float:
        if method == "boxes":
            return medians_error(n, d, epsilon, correlation=correlation)
        if method == "columns":
            assert columns is not None
            return medians_error(n, d, columns.share, correlation=correlation, independent=True)
        if method == "depth":
            return depth_error(n, d, epsilon)
        return medians_error(n, d, epsilon / 2)

    def mean(method: str) -> float:
        logs = [math.log(error(method, correlation)) for correlation in _REFERENCES]
        return math.exp(math.fsum(logs) / len(logs))

    errors = {method: mean(method) for method in candidates}
    default = next(iter(candidates))
    taken = gainful(candidates, errors.__getitem__, default)
    gain = "no other method has 5 % less expected error" if taken == default else "its expected error is the least"
    legend = "Expected error: in standard deviations, of normal records."
    rows = {method: (error,) for method, error in errors.items()}
    known = Known(("expected error",), rows, legend)
    return Choice(candidates, taken, gain, limits=limits | more, known=lambda: known)


def methods(
    statistic: RankStatistic, grids: Sequence[Grid], epsilon: float, delta: float
) -> dict[str, Callable[[], Mechanism | Whitened]]:
    """Return the methods for records on these grids by their names, the default first."""
    on, d = tuple(grids), len(grids)
    return {
        "boxes": lambda: NestedBoxes(statistic, grid=on, epsilon=epsilon),
        "columns": lambda: IndependentColumns(statistic, grid=on, dimension=d, epsilon=epsilon, delta=delta),
        "whitened": lambda: Whitened(on, epsilon=epsilon, delta=delta, statistic=statistic),
        "depth": lambda: TukeyDepth(grid=on, dimension=d, epsilon=epsilon),
    }


def _limits(n: int, grids: Sequence[Grid], epsilon: float, delta: float) -> dict[str, str]:
    """Return why methods are not compared."""
    d, limits = len(grids), {}
    if not delta:
        limits["columns"] = "it needs a delta"
    if d == 1 or any(grid.resolves for grid in grids):
        limits["whitened"] = "it needs several columns, and a number for missing records"
    elif n * epsilon < _WHITENED_RECORDS * d:
        limits["whitened"] = f"it needs about {math.ceil(_WHITENED_RECORDS * d / epsilon):,} records"
    if d not in _MOST_RECORDS:
        limits["depth"] = "it needs two or three columns"
    elif n > _MOST_RECORDS[d]:
        limits["depth"] = f"it takes long for more than {_MOST_RECORDS[d]:,} records"
    elif d == 3 and max(grid.size for grid in grids) > SIZES[d]:  # it may be too coarse for the records
        limits["depth"] = f"its grid has at most {SIZES[d]} points in each of three columns"
    return limits
