"""What mechanisms on the cells of a box share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from dpfast.core import containers
from dpfast.core.grid import Grid
from dpfast.core.traps import Trap
from dpfast.densities.bins import whole_bins
from dpfast.densities.cells import Cells, traps_of_bins
from dpfast.mechanisms import Mechanism


@dataclass(frozen=True, repr=False)
class OnCells(Mechanism):
    """Base class of mechanisms on the cells of a box."""

    bins: int | Sequence[int]
    grid: Grid | tuple[Grid, ...] = field(kw_only=True)
    epsilon: float = field(kw_only=True)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grid of each column."""
        return several(self.grid)

    @cached_property
    def cells(self) -> Cells:
        """The box and its bins."""
        return Cells(self.grids, several(self.bins))

    def _set_cells(self) -> None:
        """Check `grid` and `bins`; `bins` becomes one number for one column, else a tuple."""
        grids = several(tuple(self.grid) if isinstance(self.grid, list) else self.grid)
        for grid in grids:
            if not isinstance(grid, Grid):
                raise TypeError(f"grid must be a dpfast.Grid or a tuple of them, not {type(grid).__name__}")
        cells = Cells(grids, whole_bins(self.bins, len(grids)))
        object.__setattr__(self, "grid", grids[0] if len(grids) == 1 else grids)
        object.__setattr__(self, "bins", cells.bins[0] if len(grids) == 1 else cells.bins)
        self.check_missing()

    @property
    def dimensions(self) -> int:
        return min(len(self.grids), 2)

    def _traps(self) -> Iterator[Trap]:
        yield from super()._traps()
        yield from traps_of_bins(self.grids, self.cells.bins)

    def _columns(self, x: Any) -> NDArray[Any]:
        """Return the records as an array with one column per axis."""
        r = len(self.grids)
        values = containers.numbers("x", x, dimensions=self.dimensions)
        if values.ndim == 1 and r == 1:
            return values[:, None]
        if values.ndim != 2 or values.shape[1] != r:
            raise ValueError(f"x must have {r} column{'s' * (r > 1)}, not shape {containers.shape_of(values)}")
        return values

    def _described(self) -> str:
        axes = (
            f"{count} bins of {grid.size} points from {grid.lower!r} to {grid.upper!r}"
            for count, grid in zip(self.cells.bins, self.grids, strict=True)
        )
        return " x ".join(axes)


def several(one_or_more: Any) -> tuple[Any, ...]:
    """Return a tuple: of one, or the given one."""
    return one_or_more if isinstance(one_or_more, tuple) else (one_or_more,)
