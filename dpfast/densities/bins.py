"""Reading records as a table, and choosing the number of bins of each axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks, containers
from dpfast.core.grid import Grid, Points, check_grid, grid_with, grids_within, natural_step
from dpfast.densities.cells import MOST_CELLS, MOST_COLUMNS, even_bins, span
from dpfast.streaming import Chunks, Counted, records_of
from dpfast.theory.densities import perturbed_bins

# For a normal density on the unit interval, centred, with three standard deviations to each end: the integrals of the
# squared derivative and of the square.
ASSUMED_DEVIATION = 1 / 6
ASSUMED_ROUGHNESS = 1 / (4 * math.sqrt(math.pi) * ASSUMED_DEVIATION**3)
ASSUMED_SQUARE = 1 / (2 * math.sqrt(math.pi) * ASSUMED_DEVIATION)


def whole_bins(bins: Any, columns: int) -> tuple[int, ...]:
    """Return the number of bins of each axis; a single number applies to all axes."""
    if isinstance(bins, (Sequence, np.ndarray)) and not isinstance(bins, str):
        if len(bins) != columns:
            raise ValueError(
                f"bins must be one number or one for each of {columns} columns, not {len(bins)}: uneven edges are for "
                f"dpf.marginals, as dpf.Bins(edges)"
            )
        return tuple(checks.whole("each of bins", count, least=1) for count in bins)
    return (checks.whole("bins", bins, least=1),) * columns


def table(
    X: Any, bounds: Any, grid: Points | Sequence[Grid] | None, missing: float | str | None = None
) -> tuple[NDArray[Any] | Chunks, tuple[Grid, ...], int]:
    """Return the records, of shape (n,) or (n, r) or in chunks, a grid for each column, and the number of dimensions.

    If there are several grids, a list is read as rows; otherwise only if all of its elements are rows.
    """
    checks.bounds_or_grid(bounds, grid)
    given = _within(bounds, natural_step(X), X) if grid is None else grid
    if isinstance(given, Points):
        check_grid(given)
    given = grid_with(given, missing)
    given = given if isinstance(given, Grid) else tuple(given)
    dimensions = 1 if isinstance(given, Grid) else min(len(given), 2)
    first = next(iter(X), ()) if isinstance(X, Chunks) else X
    first = first.values if isinstance(first, Counted) else first
    piece = containers.numbers("X", first, dimensions=dimensions)
    values = X if isinstance(X, Chunks) else piece
    if piece.ndim not in (1, 2):
        raise ValueError(f"X must have one or two dimensions, not shape {containers.shape_of(piece)}")
    r = 1 if piece.ndim == 1 else piece.shape[1]
    if not 1 <= r <= MOST_COLUMNS:
        raise ValueError(f"X must have 1 to {MOST_COLUMNS} columns for a full grid of cells, not {r}")
    grids = (given,) * r if isinstance(given, Grid) else given
    if len(grids) != r:
        raise ValueError(f"bounds and grid must be for one column or for each of {r}, not for {len(grids)}")
    return values, grids, piece.ndim


def _within(bounds: Any, step: float | None, X: Any) -> Grid | tuple[Grid, ...]:
    """`grids_within`, from a cache for a pair of numbers."""
    if type(bounds) is tuple and len(bounds) == 2 and {type(end) for end in bounds} <= {float, int}:
        return _within_pair(*bounds, step)
    return grids_within(bounds, step, X)


@lru_cache(maxsize=256, typed=True)  # 1 and 1.0 are different keys
def _within_pair(lower: float, upper: float, step: float | None) -> Grid | tuple[Grid, ...]:
    return grids_within((lower, upper), step)


def automatic_bins(
    bins: str,
    values: NDArray[Any] | Chunks,
    grids: tuple[Grid, ...],
    epsilon: float,
    roughness: float | None = None,
    **options: Any,
) -> tuple[int, ...]:
    """Return the number of bins of each axis by the rule of `histogram`, from the number of records.

    The options are those of `perturbed_bins`.
    """
    r = len(grids)
    rough = r * ASSUMED_ROUGHNESS * ASSUMED_SQUARE ** (r - 1) if roughness is None else roughness

    def rule(n: int) -> int:
        return perturbed_bins(n, epsilon=epsilon, roughness=rough, dimension=r, **options)

    return bins_by(rule, bins, values, grids)


def bins_by(
    rule: Callable[[int], int], bins: str, values: NDArray[Any] | Chunks, grids: tuple[Grid, ...]
) -> tuple[int, ...]:
    """Return the bins of each axis for "auto": `rule` of the number of records, limited by the grids and 2**24 cells.

    Bins of few whole numbers have equally many of them: the nearest such number of bins.
    """
    if bins != "auto":
        raise ValueError(f"bins must be a number, a number for each column or 'auto', not {bins!r}")
    best, most = rule(checks.records(records_of(values))), int(MOST_CELLS ** (1 / len(grids)) + 1e-9)
    return tuple(even_bins(grid, min(best, most, span(grid)), most) for grid in grids)
