"""Releases of quantiles for many groups of records, by one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _groups
from dpfast.core import containers
from dpfast.core.grid import Grid, Points
from dpfast.core.spending import STEP, refuse
from dpfast.mechanisms.plan import Draw, Grouping, Plan
from dpfast.streaming import Counted


class QuantilesOfGroups(Plan):
    """The draws of one quantile of each of many groups by one kernel.

    Parameters
    ----------
    mechanism : InverseSensitivity
    options : dict
        The public keyword arguments of `_groups.draw_quantiles` that all groups share.
    """

    mechanism: Any

    def __init__(self, mechanism: Any, options: dict[str, Any]) -> None:
        super().__init__(mechanism, None)
        self.options = options

    def groups(self, values: Any, groups: Grouping, threads: int = 1) -> Draw:
        grid: Points = self.mechanism.grid
        if isinstance(values, Counted):
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

    def _draws(self, records: NDArray[np.float64], ends: NDArray[np.int64], on: Grid) -> Draw:
        """Return the draws from sorted records, whose codes are those on a grid; large groups are drawn one by one."""
        mechanism, options = self.mechanism, self.kernel(ends)
        grid: Points = mechanism.grid
        where: dict[str, Any] = {"lower": on.lower, "upper": on.upper, "step": on.step, "first": on.first}

        def draw(start: int, stop: int, source: np.random.BitGenerator) -> NDArray[np.float64]:
            refuse(STEP, mechanism)  # it may have been made outside of a ledger
            codes, reached, parts = np.empty(stop - start, np.int64), 0, ends[start : stop + 1]
            while True:
                reached = _groups.draw_quantiles(source, records, parts, reached, codes, **options, **where)
                if reached == len(codes):
                    return grid.decode(codes)
                group = records[parts[reached] : parts[reached + 1]]
                values = group if on == grid else grid.decode(on.encode(group))
                release = mechanism.plan(len(group)).draw(values, source)
                codes[reached] = int(grid.encode([release])[0])
                reached += 1

        return draw

    def kernel(self, ends: NDArray[np.int64], largest: int = _groups.LARGEST_GROUP) -> dict[str, Any]:
        """Return the keyword arguments of `_groups.draw_quantiles`, for groups of at most `largest` records."""
        powers, ranks = np.empty(2 * largest), None
        _groups.powers(self.options["epsilon"], powers)
        if not self.mechanism.hides_n:
            ranks, sizes = np.zeros(largest + 1, np.int64), np.zeros(largest + 1, np.uint8)
            _groups.sizes(ends, sizes)
            for n in np.flatnonzero(sizes[1:]).tolist():
                ranks[n + 1] = self.mechanism.statistic.rank(n + 1)
        return {**self.options, "powers": powers, "ranks": ranks}


def _fill_halves(records: NDArray[np.float64], offsets: NDArray[np.int64], lower: float, upper: float) -> None:
    """Replace NaN by the lower bound at even positions in a group, by the upper one at odd positions."""
    absent = np.flatnonzero(np.isnan(records))
    starts = offsets[np.searchsorted(offsets, absent, side="right") - 1]
    records[absent] = np.where((absent - starts) % 2, upper, lower)
