"""Records given by their distinct values and how often each occurs, such as the result of GROUP BY in SQL."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.core.grid import Grid, Points, check_points
from dpfast.streaming.chunks import Chunks
from dpfast.streaming.wire import Integers

Array = NDArray[Any]
_PARTS = ("lower", "middle", "upper")


class Counted(Chunks):
    """Records given by values and counts, accepted by mechanisms of numbers in place of one array.

    A release has exactly the law of the array in which each value occurs as often as its count, in time and memory of
    the distinct values.

    Parameters
    ----------
    values : array_like of shape (m,)
        Private values, in any order; a value may occur several times. NaN, None and null are missing records, as in an
        array: a mechanism's grid says what they become. For ``missing="half"``, half of them, rounded up, become the
        lower bound.
    counts : array_like of shape (m,)
        The number of records of each value: integers of any dtype, floats or decimals. Negative and missing counts mean
        0, and a fraction is dropped. Of more than 2**52 records, the greatest are left out.

    Raises
    ------
    TypeError, ValueError
        Values or counts that are not one-dimensional arrays of numbers of the same length.

    Notes
    -----
    Privacy: values and counts are private data, like the records. A guarantee for one record holds where a record
    changes one count by 1. Counts that their source has rounded, such as float32 beyond 2**24, may change by more. Of
    more than 2**52 records, one that is added may displace another: two changes for "add-remove". How many distinct
    values there are may influence run time and memory only. A mechanism for one replaced record takes the total of the
    counts as public.
    Cost: O(m) per pass of the mechanism (`State.passes`). `MEstimator`, `SmoothedHistogram`, `KolmogorovSmirnov` and
    Huber's location keep every record: their memory is O(n). Mechanisms of rows and of blocks take no counts.

    Examples
    --------
    >>> import dpfast as dpf
    >>> ages = dpf.Counted([20, 30, 40], [250_000, 500_000_000, 249_999])
    >>> dpf.median(ages, bounds=(0, 100), epsilon=1.0)
    30.0
    """

    def __init__(self, values: ArrayLike, counts: ArrayLike) -> None:
        self.values, self.counts = containers.vector("values", values), containers.counts("counts", counts)
        if self.values.shape != self.counts.shape:
            raise ValueError("values and counts must be equally long")
        self._integers, self._missing = containers.declares_integers(values), containers.may_be_missing(values)
        self._total = _total(self.counts)
        if self._total > containers.MOST_COUNTED:
            order = np.argsort(self.values)
            self.values, self.counts = self.values[order], _first(self.counts[order])
            self._total = containers.MOST_COUNTED

    @classmethod
    def of_codes(cls, grid: Points, codes: ArrayLike, counts: ArrayLike) -> Counted:
        """Return the records given by the codes of a grid, integers from 0 to ``grid.size - 1``, and their counts.

        Codes beyond the ends count as the nearest one, NaN and null as missing records.

        Examples
        --------
        >>> import dpfast as dpf
        >>> grid = dpf.Grid(0, 100, step=0.5)
        >>> dpf.median(dpf.Counted.of_codes(grid, [99, 100, 101], [10, 1000, 10]), grid=grid, epsilon=1.0)
        50.0
        """
        check_points(grid)
        places = containers.vector("codes", codes)
        values = grid.decode(Grid(0, grid.size - 1, step=1).encode(places))
        if places.dtype.kind == "f":
            values[np.isnan(places)] = math.nan
        return cls(values, counts)

    @classmethod
    def of_bins(cls, edges: ArrayLike, counts: ArrayLike, *, at: str = "middle") -> Counted:
        """Return the records given by a histogram: every record of a bin counts as one public value of the bin.

        Parameters
        ----------
        edges : array_like of shape (m + 1,)
            The public edges of the bins, ascending and chosen without access to the data. The first may be -inf and the
            last inf: their bins count as the finite edge.
        counts : array_like of shape (m,)
            See the class.
        at : {"middle", "lower", "upper"}
            The value that stands for a bin: its middle or an edge.

        Notes
        -----
        Each record moves by at most half the width of its bin for "middle", by at most the width for an edge. The
        releases are those of the moved records: an exact quantile or mean moves by no more than the records do.
        """
        checks.choice("at", at, _PARTS)
        ends = containers.vector("edges", edges).astype(np.float64)
        if len(ends) < 2 or not (ends[:-1] < ends[1:]).all() or np.isinf(ends).all():
            raise ValueError("edges must be at least two numbers in ascending order, at least one of them finite")
        low, high = ends[:-1], ends[1:]
        numbers = containers.counts("counts", counts)
        if len(numbers) != len(low):
            raise ValueError("counts must have one entry for each bin, one less than edges")
        middle = np.where(np.isinf(low), high, np.where(np.isinf(high), low, low / 2 + high / 2))
        chosen = {"lower": low, "middle": middle, "upper": high}[at]
        return cls(np.where(np.isinf(chosen), middle, chosen), numbers)

    def resolved(self, grids: tuple[Points, ...]) -> tuple[Array, Integers]:
        """Return the values and counts after "half" and "drop" of a grid for missing records; NaN
        stays for a number.
        """
        values, counts = self.values, self.counts
        policies = {grid.missing for grid in grids}
        if values.dtype.kind != "f" or not policies & {"half", "drop"}:
            return values, counts
        absent = np.isnan(values)
        lacking = _total(counts[absent])
        values, counts = values[~absent], counts[~absent]
        if "half" not in policies:
            return values, counts
        [grid] = grids
        ends = np.array([grid.lower, grid.upper])
        return np.append(values.astype(np.float64), ends), np.append(counts, [lacking - lacking // 2, lacking // 2])

    def __getitem__(self, places: slice | NDArray[Any]) -> Counted:
        """Return the values at these places, with their counts."""
        return Counted(self.values[places], self.counts[places])

    def __iter__(self) -> Iterator[Any]:
        """Yield a single piece, which a `State` reads: the object itself."""
        yield self

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("counts of values were given for records that only an array or chunks can hold")

    def __repr__(self) -> str:
        return "<Counted private records>"

    def declares_integers(self) -> bool:
        return self._integers

    def may_be_missing(self) -> bool:
        return self._missing

    @property
    def listed(self) -> tuple[()]:
        return ()  # values and counts were checked

    @property
    def known(self) -> int:
        return self._total

    def records(self) -> int:
        return self._total


def _total(counts: Integers) -> int:
    """Return the sum of counts of at most 2**52, which may be beyond 64 bits."""
    return (int((counts >> 26).sum()) << 26) + int((counts & (2**26 - 1)).sum())


def _first(counts: Integers) -> Integers:
    """Return the counts of the first 2**52 records."""
    left, kept = containers.MOST_COUNTED, []
    for count in counts.tolist():
        kept.append(min(count, left))
        left -= kept[-1]
    return np.array(kept, np.int64)
