"""Mechanisms for coordinate-wise statistics within public bounds: what they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core.grid import Grid, check_number
from dpfast.robust.columns import CoordinateWise
from dpfast.statistics import Huber, Median, RankStatistic, Summary
from dpfast.streaming import Columns, Integers, Reading


@dataclass(frozen=True, repr=False)
class OnGrids(CoordinateWise):
    """A mechanism for a statistic of each column, on a public grid for all columns or one for each."""

    grid: Grid | tuple[Grid, ...] = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.grid, Grid):
            grids = tuple(self.grid) if isinstance(self.grid, Sequence) else ()
            if not grids or not all(isinstance(grid, Grid) for grid in grids):
                raise TypeError("grid must be a dpfast.Grid, or one for each column")
            object.__setattr__(self, "grid", grids)
        self._check_dimensions()
        self.check_missing()
        if self.transform is not None:
            for grid in self.grids:
                check_number(grid)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of the columns; a single one if all columns share it."""
        return (self.grid,) if isinstance(self.grid, Grid) else self.grid

    def __repr__(self) -> str:
        grid = self.grid
        if isinstance(grid, Grid):
            where = f"{grid.size} points from {grid.lower!r} to {grid.upper!r} in each coordinate"
        else:
            where = f"grids of {len(grid)} coordinates"
        return f"<{type(self).__name__} release of the {self._described()} on {where}: {self.privacy}>"

    @abstractmethod
    def _levels(self, n: int, d: int, j: int) -> int:
        """Return the number of levels of column j of d, public like the number of order statistics that they need."""

    def reading(self) -> Columns:
        def reading(j: int, d: int) -> Reading:
            column = self._column(j, 1)
            return column.statistic.reading(column.grid, lambda n: self._levels(n, d, j))

        passes = max(self.statistic.reading(grid, lambda n: 1).passes for grid in self.grids)
        return Columns(reading, self._matrix, self._check_columns, passes, self._transformed)

    def _dimensions(self) -> Iterator[tuple[str, int]]:
        yield from super()._dimensions()
        if not isinstance(self.grid, Grid):
            yield "grid", len(self.grid)

    def _column(self, j: int, n: int) -> Coordinate:
        grid, statistic, scale = (
            self.grid if isinstance(self.grid, Grid) else self.grid[j],
            self.statistic,
            self._scale(j),
        )
        if isinstance(statistic, Huber):
            statistic = replace(statistic, k=statistic.k * scale)
        last = statistic.last(grid, n)
        radius = round(min(self.radius * scale / grid.step * statistic.codes_per_step(n), last))
        return Coordinate(statistic, grid, n, last, radius)

    def _check_known_error(self) -> None:
        """Raise a TypeError unless theory gives the error."""
        if self.statistic != Median() or self.radius or self.scale is not None or self.transform is not None:
            raise TypeError("the error is known only for medians without radius, scale and transform")

    def _decode(self, n: int, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        columns = [self._column(j, n) for j in range(codes.shape[-1])]
        values = [column.statistic.decode(column.grid, n, codes[..., j]) for j, column in enumerate(columns)]
        return self._restored(np.stack(values, axis=-1))


@dataclass(frozen=True)
class Coordinate:
    """The statistic and the public numbers of one coordinate."""

    statistic: RankStatistic
    grid: Grid
    n: int
    last: int
    radius: int

    def ranges(self, values: NDArray[Any], levels: int) -> tuple[Integers, Integers]:
        """Return the attack ranges of all levels, widened by the radius."""
        return self.widened(self.statistic.reading(self.grid, lambda _: levels).of(values))

    def widened(self, summary: Summary) -> tuple[Integers, Integers]:
        """Return the attack ranges of all levels, widened by the radius, from a summary."""
        lower, upper = self.statistic.attack_range(summary)
        return np.maximum(lower - self.radius, 0), upper + np.minimum(self.last - upper, self.radius)
