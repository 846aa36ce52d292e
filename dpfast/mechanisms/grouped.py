"""Releases of statistics of ranks for many groups of records, by one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _groups, _levels, _segments
from dpfast.core import containers
from dpfast.core.grid import Grid, Points
from dpfast.core.spending import STEP, refuse
from dpfast.mechanisms.plan import Draw, Grouping, Plan
from dpfast.statistics import InterquartileRange
from dpfast.statistics.rank import TrimmedSum
from dpfast.streaming import Counted

_COLUMNS = 6  # of what the kernel reads of a number of records


class SortedGroups(Plan):
    """A plan that draws from records in the order of their groups, with missing ones resolved."""

    mechanism: Any

    def groups(self, values: Any, groups: Grouping, threads: int = 1) -> Draw:
        grid: Points = self.mechanism.grid
        if isinstance(values, Counted) or not self._fits(len(values)):
            return super().groups(values, groups, threads)
        if values.ndim != 1:
            raise ValueError(f"x must be one-dimensional, not of shape {containers.shape_of(values)}")
        absent = np.isnan(values) if values.dtype.kind == "f" and grid.missing in ("half", "drop") else None
        dropped = absent if grid.missing == "drop" else None
        if isinstance(grid, Grid) and values.dtype == np.float64 and values.flags.aligned:
            on, missing = grid, grid.nan_value
        else:  # for other grids and dtypes, use codes as records on a grid from 0 with step 1
            on, missing = Grid(0, grid.size - 1, step=1), 0.0
            values = grid.with_missing(grid.nan_value).encode(values).astype(np.float64)
            if absent is not None:
                values[absent] = np.nan
        half = grid.missing == "half"
        records, ends = groups.sorted(values, threads, missing=np.nan if half else missing, dropped=dropped)
        if half:
            records = values.copy() if records is values else records  # those of the caller stay as they are
            _fill_halves(records, ends, on.lower, on.upper)
        return self._draws(records, ends, on)

    def _fits(self, n: int) -> bool:
        """Whether the kernel can draw for groups of n records altogether."""
        return True

    def _draws(self, records: NDArray[np.float64], ends: NDArray[np.int64], on: Grid) -> Draw:
        """Return the draws from sorted records, whose codes are those on a grid."""
        raise NotImplementedError

    def stepwise(
        self,
        kernel: Callable[[int], int],
        records: NDArray[np.float64],
        parts: NDArray[np.int64],
        on: Grid,
        source: np.random.BitGenerator,
    ) -> dict[int, Any]:
        """Call ``kernel(start)`` until it has drawn for all groups; return the releases of those at which it stops.

        These are too large for it, and drawn one by one.
        """
        grid: Points = self.mechanism.grid
        large: dict[int, Any] = {}
        reached = kernel(0)
        while reached < len(parts) - 1:
            group = records[parts[reached] : parts[reached + 1]]
            values = group if on == grid else grid.decode(on.encode(group))
            large[reached] = self.mechanism.plan(len(group)).draw(values, source)
            reached = kernel(reached + 1)
        return large


class QuantilesOfGroups(SortedGroups):
    """The draws of one quantile of each of many groups by one kernel.

    Parameters
    ----------
    mechanism : InverseSensitivity
    options : dict
        The public keyword arguments of `_groups.draw_quantiles` that all groups share.
    """

    def __init__(self, mechanism: Any, options: dict[str, Any]) -> None:
        super().__init__(mechanism, None)
        self.options = options

    def _draws(self, records: NDArray[np.float64], ends: NDArray[np.int64], on: Grid) -> Draw:
        """Return the draws from sorted records, whose codes are those on a grid; large groups are drawn one by one."""
        mechanism, options = self.mechanism, self.kernel(ends)
        grid: Points = mechanism.grid
        where: dict[str, Any] = {"lower": on.lower, "upper": on.upper, "step": on.step, "first": on.first}

        def draw(start: int, stop: int, source: np.random.BitGenerator) -> NDArray[np.float64]:
            refuse(STEP, mechanism)  # it may have been made outside of a ledger
            codes, parts = np.zeros(stop - start, np.int64), ends[start : stop + 1]

            def kernel(first: int) -> int:
                return _groups.draw_quantiles(source, records, parts, first, codes, **options, **where)

            large = self.stepwise(kernel, records, parts, on, source)
            values = grid.decode(codes)
            for place, release in large.items():
                values[place] = release
            return values

        return draw

    def kernel(self, ends: NDArray[np.int64], largest: int = _groups.LARGEST_GROUP) -> dict[str, Any]:
        """Return the keyword arguments of `_groups.draw_quantiles`, for groups of at most `largest` records."""
        powers, ranks = np.empty(2 * largest), None
        _groups.powers(self.options["epsilon"], powers)
        if not self.mechanism.hides_n:
            ranks = np.zeros(largest + 1, np.int64)
            for n in sizes_of(ends, largest):
                ranks[n] = self.mechanism.statistic.rank(n)
        return {**self.options, "powers": powers, "ranks": ranks}


class RanksOfGroups(SortedGroups):
    """The draws of a trimmed mean, an interquartile range or Huber's estimate of each of many groups by one kernel.

    Parameters
    ----------
    mechanism : InverseSensitivity
    options : dict
        The public keyword arguments of `_levels.draw_groups` that all groups share.
    row : callable
        ``row(n)`` returns the row of its `sizes` for a group of n records.
    """

    def __init__(self, mechanism: Any, options: dict[str, Any], row: Callable[[int], tuple[int, ...]]) -> None:
        super().__init__(mechanism, None)
        self.options, self.row = options, row

    def _fits(self, n: int) -> bool:
        return fits(self.mechanism, n)

    def _draws(self, records: NDArray[np.float64], ends: NDArray[np.int64], on: Grid) -> Draw:
        mechanism, largest = self.mechanism, _groups.LARGEST_GROUP
        rows = np.zeros((largest + 1, _COLUMNS), np.int64)
        for n in sizes_of(ends, largest):
            rows[n] = self.row(n)
        options = {**self.options, "sizes": rows, "whole": mechanism.grid.size - 1}
        where: dict[str, Any] = {"lower": on.lower, "upper": on.upper, "step": on.step, "first": on.first}

        def draw(start: int, stop: int, source: np.random.BitGenerator) -> NDArray[np.float64]:
            refuse(STEP, mechanism)  # it may have been made outside of a ledger
            codes, parts = np.zeros(stop - start, np.int64), ends[start : stop + 1]

            def kernel(first: int) -> int:
                return _levels.draw_groups(source, records, parts, first, codes, **options, **where)

            large = self.stepwise(kernel, records, parts, on, source)
            return released(mechanism, codes, parts, large)

        return draw


def fits(mechanism: Any, n: int) -> bool:
    """Whether sums of codes and of steps of n records of a group fit 64 bits, and values are far from the ends of the
    doubles.
    """
    grid: Grid = mechanism.grid
    reach = max(abs(grid.first), abs(grid.first + grid.size - 1), grid.size)
    return min(n, _groups.LARGEST_GROUP) * reach < 2**61 and 2.0**-300 < grid.step < 2.0**300


def released(
    mechanism: Any, codes: NDArray[np.int64], parts: NDArray[np.int64], large: dict[int, Any]
) -> NDArray[np.float64]:
    """Return the releases of groups: what their codes mean, those of large groups, and points for empty groups."""
    grid, statistic, sizes = mechanism.grid, mechanism.statistic, np.diff(parts)
    values = grid.decode(codes)
    if isinstance(statistic, TrimmedSum):
        per_step = np.ones(int(sizes.max(initial=0)) + 1, np.int64)
        for n in sizes_of(parts, len(per_step) - 1):
            per_step[n] = statistic.codes_per_step(n)
        _segments.quotients(grid.first * per_step[sizes] + codes, per_step[sizes], grid.step, values)
    elif isinstance(statistic, InterquartileRange):
        values = codes * grid.step
    empty = np.flatnonzero(sizes == 0)
    values[empty] = grid.decode(codes[empty])
    for place, release in large.items():
        values[place] = release
    return np.asarray(values)


def sizes_of(ends: NDArray[np.int64], largest: int) -> list[int]:
    """Return the numbers of records, from 1 to `largest`, that groups have."""
    found = np.zeros(largest + 1, np.uint8)
    _groups.sizes(ends, found)
    return [n for n in np.flatnonzero(found).tolist() if n]


def _fill_halves(records: NDArray[np.float64], offsets: NDArray[np.int64], lower: float, upper: float) -> None:
    """Replace NaN by the lower bound at even positions in a group, by the upper one at odd positions."""
    absent = np.flatnonzero(np.isnan(records))
    starts = offsets[np.searchsorted(offsets, absent, side="right") - 1]
    records[absent] = np.where((absent - starts) % 2, upper, lower)
