"""What is totalled: integers of each period from its records, how much a record changes them, and what they mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.grid import Grid, Points, check_grid
from dpfast.densities import Bins, Categories
from dpfast.statistics import Count, Mean, Sum
from dpfast.streaming import CodeSums, Counts, Reading, RecordCount, Sums

_FINEST = 2**16  # steps by which a record changes a sum: more are rounded, which is 1e-5 of the noise at mu = 1


class Contents(ABC):
    """The integers of each period, as a function of its records.

    Attributes
    ----------
    shape : tuple of int
        Of the integers: () or (cells,).
    change, square : int
        The l1 norm, and the square of the l2 norm, by which a changed record changes them.
    unit : float
        The value of one of them, in data units.
    points : tuple of Points
        The grids whose policy says what missing records become.
    """

    shape: tuple[int, ...] = ()
    points: tuple[Points, ...] = ()
    change = square = 1
    unit = 1.0

    @abstractmethod
    def reading(self) -> Reading:
        """Return an empty reading of the records of a period."""

    @abstractmethod
    def integers(self, summary: Any, most: int) -> Any:
        """Return the integers of a period, clamped to +-most, an int or an array. PRIVATE."""

    def value(self, estimate: Any, records: int) -> Any:
        """Return what is released for estimates of the totals; `records` is the number so far, where it is public."""
        return float(estimate)

    def error(self, deviation: float, records: int) -> float:
        """Return the standard error of the released value, from the standard deviation of the totals."""
        return deviation * self.unit


class Numbered(Contents):
    """The number of records."""

    def __init__(self, statistic: Count, grid: Grid | None) -> None:
        self._statistic, self.points = statistic, () if grid is None else (grid,)

    def reading(self) -> Reading:
        return RecordCount(self._statistic.kept, self._statistic.example)

    def integers(self, summary: CodeSums, most: int) -> int:
        return min(summary.n, most)


class SummedCodes(Contents):
    """The sum of the codes of the records.

    A changed record changes it by at most 2**16: sums of finer steps are rounded to coarser ones.
    """

    def __init__(self, grid: Grid, *, hides_n: bool) -> None:
        self.grid, self.points, self._total, self._hides_n = grid, (grid,), Sum(), hides_n
        change = max(1, self._total.one_record(grid) if hides_n else grid.size - 1)
        self._shift = max(0, (change - 1).bit_length() - (_FINEST - 1).bit_length())
        self.change = -(-change >> self._shift)
        self.square, self.unit = self.change**2, grid.step * 2.0**self._shift
        checks.finite_scale(self.unit * 2.0**62)

    def reading(self) -> Reading:
        return Sums(self.grid, squares=False)

    def integers(self, summary: CodeSums, most: int) -> int:
        total = self._total.total(self.grid, summary.n, summary.total) if self._hides_n else summary.total
        return min(max((total + (1 << self._shift >> 1)) >> self._shift, -most), most)

    def value(self, estimate: Any, records: int) -> float:
        total = float(estimate) * self.unit  # of Python's numbers, which no error state of NumPy refuses
        return total if self._hides_n else total + records * self.grid.lower


class Averaged(SummedCodes):
    """The sum of the codes, divided by the public number of records."""

    def value(self, estimate: Any, records: int) -> float:
        low, high = self.grid.lower, self.grid.upper
        if not records:
            return low / 2 + high / 2
        return min(max(low + float(estimate) * self.unit / records, low), high)

    def error(self, deviation: float, records: int) -> float:
        return deviation * self.unit / max(records, 1)


class Binned(Contents):
    """The number of records in each bin."""

    def __init__(self, column: Bins | Categories, *, hides_n: bool) -> None:
        self.column, self.shape = column, (column.size,)
        self.change = self.square = 1 if hides_n else 2

    def reading(self) -> Reading:
        encode = partial(self.column.encode, "x")
        return Counts(self.shape, encode, self._count, encode)

    def _count(self, bins: NDArray[Any], threads: int) -> NDArray[np.int64]:
        return np.bincount(bins, minlength=self.column.size)

    def integers(self, summary: tuple[NDArray[np.int64], int], most: int) -> NDArray[np.int64]:
        return np.minimum(summary[0], most)

    def value(self, estimate: Any, records: int) -> NDArray[np.float64]:
        return np.asarray(estimate, np.float64)


def contents_of(statistic: Any, grid: Any, *, hides_n: bool) -> Contents:
    """Return what is totalled for a statistic; raises a TypeError or a ValueError for one that is not supported."""
    if isinstance(statistic, (Bins, Categories)):
        if grid is not None:
            raise TypeError("grid must be left out for Bins, which have their own, and for Categories")
        if isinstance(statistic, Bins):
            statistic = statistic.within(None)
            if statistic.bins is None or statistic.private:
                raise ValueError("Bins must have a number of bins and bounds, or edges, for running totals")
        return Binned(statistic, hides_n=hides_n)
    if not isinstance(statistic, (Count, Sum, Mean)):
        raise TypeError(f"statistic must be Count(), Sum(), Mean(), Bins or Categories, not {statistic!r}")
    if grid is None and not isinstance(statistic, Count):
        raise TypeError(f"grid must be a dpfast.Grid(lower, upper), the public bounds of {statistic!r}, not None")
    if grid is not None:
        check_grid(grid)
    if isinstance(statistic, Count):
        return Numbered(statistic, grid)
    if isinstance(statistic, Sum):
        return SummedCodes(grid, hides_n=hides_n)
    if hides_n:
        raise ValueError(
            "neighbors must be 'replace-one' for a running mean, not 'add-remove': release a running Sum() and a "
            "running Count(), and divide"
        )
    return Averaged(grid, hides_n=False)
