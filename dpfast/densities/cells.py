"""The cells of a histogram."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import NDArray

from dpfast._kernels import _bins
from dpfast._kernels._threads import each
from dpfast.core import checks
from dpfast.core.grid import Grid, Points
from dpfast.core.traps import Trap
from dpfast.errors import UtilityWarning
from dpfast.random import BLOCK, RandomSource, streams

MOST_CELLS = 2**24
MOST_COLUMNS = 4
_WHOLE = 2.0**52
_EVEN = 4  # whole numbers in each bin from which on one more or less is hardly seen
FEW = 256  # times as many cells as records: the codes of the records are located, without a table of thresholds
CHUNK = 2**13  # number of draws whose words fit the cache and reuse memory pages
_Fill = Callable[[BitGenerator, NDArray[np.int32]], None]


@dataclass(frozen=True)
class Cells:
    """The cells of a histogram: a public box that is divided into bins on each axis.

    Parameters
    ----------
    grids : tuple of Grid
        One grid for each column, at most 4.
    bins : tuple of int
        The number of bins of each axis; at most 2**24 cells in total.

    Raises
    ------
    ValueError
        If a grid has fewer steps than bins, or fewer points for a grid of whole numbers, or there are too many cells.

    Notes
    -----
    Edge i of b bins is the code round(i (size - 1) / b). Bin i contains the codes from its edge up to the next one; the
    last bin includes its upper edge. Bins of whole numbers, a grid of step 1 below 2**52, divide its points instead:
    bin i begins at the code round(i size / b), half a step above its lower edge. A record belongs to the bin of its
    code (https://dpfast.readthedocs.io/en/latest/proofs/histogram-bins.html).
    """

    grids: tuple[Grid, ...]
    bins: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.grids) <= MOST_COLUMNS:
            raise ValueError(f"a full grid of cells supports 1 to {MOST_COLUMNS} columns, not {len(self.grids)}")
        if len(self.bins) != len(self.grids):
            raise ValueError(f"bins must be one number or one for each of {len(self.grids)} columns, not {self.bins}")
        for count, grid in zip(self.bins, self.grids, strict=True):
            check_bins(grid, count)
        if math.prod(self.bins) > MOST_CELLS:
            raise ValueError(f"bins must give at most 2**24 cells, not {' x '.join(map(str, self.bins))}")

    def __reduce__(self) -> Any:
        return Cells, (self.grids, self.bins)

    def __len__(self) -> int:
        return math.prod(self.bins)

    @cached_property
    def codes(self) -> tuple[NDArray[np.int64], ...]:
        """The first code of each bin of each axis, and the last code of the axis."""
        return tuple(equal_codes(grid, count) for grid, count in zip(self.grids, self.bins, strict=True))

    @cached_property
    def edges(self) -> tuple[NDArray[np.float64], ...]:
        """The edges of each axis in data units."""
        return tuple(edges_at(grid, codes) for grid, codes in zip(self.grids, self.codes, strict=True))

    def volumes(self) -> NDArray[np.float64]:
        """Volume of each cell, in data units. Raises ValueError if volumes or densities would overflow float64."""
        volumes = np.ones(())
        with np.errstate(over="ignore"):
            for edges in self.edges:
                volumes = np.multiply.outer(volumes, np.diff(edges))
        for volume in (volumes.min(), volumes.max()):
            checks.density_range(float(volume))
        return volumes

    @cached_property
    def axes(self) -> list[_bins.Axis]:
        """The axes in the form that the kernels expect."""
        return [_axis(grid, count) for grid, count in zip(self.grids, self.bins, strict=True)]

    def count(self, values: NDArray[Any], workers: int) -> NDArray[np.int64]:
        """Return the number of records in each cell. PRIVATE."""
        size = len(self)
        if len(values) * FEW < size:
            return self._count_few(values)
        counts = np.empty(size, np.int64)
        _bins.count(values, self.axes, counts, workers=workers)
        return counts.reshape(self.bins)

    def _count_few(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """As `count`, from the code of each record, without thresholds of the bins."""
        counts = np.zeros(self.bins, np.int64)
        columns = zip(self.grids, self.bins, values.T, strict=True)
        places = tuple(_bins_of(grid.encode(column), span(grid), bins) for grid, bins, column in columns)
        np.add.at(counts, places, 1)
        return counts

    def locate(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """Return the cell of each number, for a single axis. PRIVATE."""
        cells = np.empty(len(values), np.int32)
        _bins.locate(values[:, None], self.axes, cells)
        return cells

    def draw(
        self, fill: _Fill, k: int, rng: RandomSource, workers: int = 1, *, codes: bool = False
    ) -> NDArray[np.float64]:
        """Draw k points, each uniform on the grid points of its cell, and optionally their codes.

        `fill` draws the cells of one block of points.
        """
        points = np.empty((k, len(self.bins)))
        sources = streams(rng, -(-k // BLOCK))

        def draw(block: int) -> None:
            source = sources[block]
            for start in range(block * BLOCK, min((block + 1) * BLOCK, k), CHUNK):
                draw_chunk(source, points[start : min(start + CHUNK, (block + 1) * BLOCK)])

        def draw_chunk(source: BitGenerator, part: NDArray[np.float64]) -> None:
            cells = np.empty(len(part), np.int32)
            fill(source, cells)
            divisor = len(self)
            for a, (grid, count) in enumerate(zip(self.grids, self.bins, strict=True)):
                divisor = divisor // count if len(self.bins) > 1 else 0
                first, step = (0, 1.0) if codes else (grid.first, grid.step)
                _bins.fill_points(source, cells, self.codes[a], divisor, first, step, part[:, a])

        each(draw, range(len(sources)), workers)
        return points


def plain(values: Any) -> Any:
    """Return a float for a single number, else the array."""
    return np.asarray(values) if np.ndim(values) else float(values)


def frozen_array(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it."""
    array.flags.writeable = False
    return array


@lru_cache(maxsize=64)
def equal_edges(last: int, bins: int) -> NDArray[np.int64]:
    """round(i * last / bins) for i = 0..bins, halves up; bins at most 2**24."""
    i, (whole, rest) = np.arange(bins + 1), divmod(last, bins)
    return frozen_array(i * whole + (2 * rest * i + bins) // (2 * bins))


@lru_cache(maxsize=64)
def equal_codes(grid: Grid, bins: int) -> NDArray[np.int64]:
    """Return the first code of each of the bins of a grid, and its last code."""
    codes = equal_edges(span(grid), bins)
    return frozen_array(np.append(codes[:-1], grid.size - 1)) if is_whole(grid) else codes


def edges_at(grid: Points, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the edges of bins in data units, from the first code of each and the last code: at halves for whole
    numbers.
    """
    edges = np.array(grid.decode(codes))
    if is_whole(grid):
        edges[:-1] -= 0.5
        edges[-1] += 0.5
    return frozen_array(edges)


def numbers_between(edges: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Return the first and the last whole number of each bin, from edges at halves."""
    return list(zip((edges[:-1] + 0.5).tolist(), (edges[1:] - 0.5).tolist(), strict=True))


def is_whole(grid: Points) -> bool:
    """Whether bins divide the points of a grid: whole numbers, between which the halves are doubles."""
    return isinstance(grid, Grid) and grid.step == 1 and max(-grid.lower, grid.upper) < _WHOLE


def span(grid: Points) -> int:
    """Return what bins divide, and how many there may be: the points of whole numbers, else the steps of the grid."""
    return grid.size if is_whole(grid) else grid.size - 1


def check_bins(grid: Points, bins: int) -> None:
    """Raise an error for a number of bins that a grid has not."""
    if not 1 <= bins <= span(grid):
        of = "whole numbers within the bounds" if is_whole(grid) else "steps of the grid"
        raise ValueError(f"bins must be between 1 and the {span(grid)} {of}, not {bins}")


def uneven(grid: Points, bins: int) -> bool:
    """Whether some bins have at least a third more whole numbers than others."""
    return is_whole(grid) and bins < grid.size < _EVEN * bins and grid.size % bins > 0


def even_bins(grid: Points, bins: int, most: int) -> int:
    """Return the number of bins that is nearest to `bins` in ratio among those that are not uneven; most >= bins."""
    if not uneven(grid, bins):
        return bins
    even = [grid.size // _EVEN, *(grid.size // width for width in range(1, _EVEN) if grid.size % width == 0)]
    return min(
        (count for count in even if 1 <= count <= most), key=lambda count: abs(math.log(count / bins)), default=1
    )


def traps_of_bins(grids: Sequence[Points], bins: Sequence[int]) -> Iterator[Trap]:
    """Yield the traps of bins with unequal numbers of points."""
    for grid, count in zip(grids, bins, strict=True):
        if uneven(grid, count):
            fewer = next(few for few in range(count, 0, -1) if grid.size % few == 0)
            more = next(many for many in range(count, grid.size + 1) if grid.size % many == 0)
            each = grid.size // count
            yield Trap(
                UtilityWarning,
                f"{grid.size} whole numbers from {grid.lower:g} to {grid.upper:g} do not divide evenly into {count} "
                f"bins: some have {each}, others {each + 1}; use bins={fewer} or {more}, or bounds with {each * count} "
                f"or {(each + 1) * count} of them",
            )


def _bins_of(codes: NDArray[np.int64], whole: int, bins: int) -> NDArray[np.int64]:
    """Return the bin of each code: the greatest i < bins with edge i at most the code, 2 i whole <
    bins (2 code + 1).
    """
    ceilings = [-(-bins * (2 * code + 1) // (2 * whole)) for code in codes.tolist()]
    return np.minimum(np.array(ceilings, np.int64), bins) - 1


@lru_cache(maxsize=64)
def _axis(grid: Grid, bins: int) -> _bins.Axis:
    return axis_with(grid, equal_codes(grid, bins)[1:-1])


def axis_with(grid: Grid, codes: NDArray[np.int64]) -> _bins.Axis:
    """Return the axis with given first codes of each bin but the first: the least double of each, found by
    `Grid.encode`.

    It is (index - 1/2) step or an adjacent double, where index belongs to the bin's first code: ties round to even.
    """
    middle = (codes + grid.first - 0.5) * grid.step
    with np.errstate(all="ignore"):  # neighbours of the least doubles, whatever a caller raises for
        candidates = np.stack([np.nextafter(middle, -np.inf), middle, np.nextafter(middle, np.inf)])
    reached = np.array([grid.encode(row) for row in candidates]) >= codes
    return _bins.Axis(np.where(reached, candidates, np.inf).min(axis=0), width=span(grid) * grid.step, **grid.kernel)
