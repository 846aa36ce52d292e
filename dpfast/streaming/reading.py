"""The base class of readings, and the readings with one pass: sums, counts, codes, values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _select
from dpfast.core import containers
from dpfast.core.grid import Grid, Points
from dpfast.streaming.wire import Integers, read_codes, read_counts, read_items, read_whole

Array = NDArray[Any]
_COMPARED = 2**15  # records whose masks stay in a cache


def weighted_sum(codes: Integers, counts: Integers) -> int:
    """Return the exact sum of codes times counts, for counts that sum to at most 2**52: ten bits of the codes at a
    time.
    """
    bits = int(codes.max(initial=0)).bit_length()
    return sum(int(((codes >> shift) & 1023) @ counts) << shift for shift in range(0, bits, 10))


# ---- readings ----


class Reading(ABC):
    """Base class of readings, which make the summary of the records for a law. PRIVATE once it has read records.

    A stream calls `add` for each chunk and `merge` for each other reading of the current pass, `advance` between two
    passes, and `summary` after the last one. An array needs a single call of `of`.
    """

    passes = 1
    joins = False  # whether it reads vectors, and a release does not depend on where one ends and the next one begins

    @abstractmethod
    def records(self, x: Any) -> Any:
        """Return a chunk as numbers, an array or `Labelled`; checks only its shape and dtype."""

    @abstractmethod
    def add(self, values: Any, threads: int) -> None:
        """Add the records of a chunk, as returned by `records`."""

    def add_counted(self, values: Array, counts: Integers) -> int:
        """Add records by their values, each as often as it is counted, and return their number.

        Raises
        ------
        TypeError
            If the records are not numbers.
        """
        raise TypeError("counts of values were given for records that only an array or chunks can hold")

    @abstractmethod
    def merge(self, other: Any) -> None:
        """Add the records that another reading has read in the same pass."""

    def advance(self, n: int) -> None:
        """Begin the next pass over n records; raises a ValueError after the last pass."""
        raise ValueError("there is only one pass")

    @abstractmethod
    def summary(self, n: int) -> Any:
        """Return the summary for the law, after the last pass over n records."""

    def of(self, values: Any, threads: int = 1) -> Any:
        """Return the summary of all records, in one piece as returned by `records`. Call it once, on an empty reading.

        Makes all passes over the records; a subclass may override it by a faster way to the same summary.
        """
        for number in range(self.passes):
            if number:
                self.advance(len(values))
            if len(values):
                self.add(values, threads)
        return self.summary(len(values))

    def of_counted(self, values: Array, counts: Integers) -> tuple[int, Any]:
        """Return the number of all records, given by their values and counts, and their summary; otherwise as `of`."""
        n = 0
        for number in range(self.passes):
            if number:
                self.advance(n)
            n = self.add_counted(values, counts)
        return n, self.summary(n)

    @abstractmethod
    def pack(self) -> Any:
        """Return the contents as nested lists of integers, None and arrays of int64."""

    @abstractmethod
    def unpack(self, packed: Any, n: int, number: int) -> None:
        """Restore an empty reading from `pack` in pass `number`, n records in the first; may raise a ValueError."""


class CodeSums(NamedTuple):
    """n, the sum of the codes of n records and the sum of their squares, exact."""

    n: int
    total: int
    squares: int


class Sums(Reading):
    """The exact sum of the codes, and with `squares` the sum of their squares. It holds two integers."""

    joins = True
    counts_absent = False  # whether it counts the records that are missing

    def __init__(self, grid: Grid, *, squares: bool) -> None:
        self._grid, self.squares = grid, squares
        self._total = self._total_squares = self._absent = 0

    def records(self, x: Any) -> Any:
        return containers.column("x", x)

    def add(self, values: Array, threads: int) -> None:
        grid = self._grid
        total, squares, absent = _select.moments(
            values,
            first=grid.first,
            squares=self.squares,
            absent=self.counts_absent,
            **grid.kernel,
            workers=threads,
        )
        self._total += total
        self._total_squares += squares
        self._absent += absent

    def of(self, values: Array, threads: int = 1) -> CodeSums:
        self.add(values, threads)
        return self.summary(len(values))

    def add_counted(self, values: Array, counts: Integers) -> int:
        codes = self._grid.encode(values)
        self._total += weighted_sum(codes, counts)
        if self.squares:
            high, low = codes >> 26, codes & (2**26 - 1)
            self._total_squares += weighted_sum(high * high, counts) << 52
            self._total_squares += weighted_sum(high * low, counts) << 27
            self._total_squares += weighted_sum(low * low, counts)
        return int(counts.sum())

    def merge(self, other: Sums) -> None:
        self._total += other._total
        self._total_squares += other._total_squares
        self._absent += other._absent

    def summary(self, n: int) -> CodeSums:
        return CodeSums(n, self._total, self._total_squares)

    def pack(self) -> Any:
        return [self._total, self._total_squares]

    def unpack(self, packed: Any, n: int, number: int) -> None:
        total, squares = read_items(packed, 2)
        last = self._grid.size - 1
        self._total = read_whole(total, n * last)
        self._total_squares = read_whole(squares, n * last**2)


class PresentSum(NamedTuple):
    """`CodeSums` of those of n records that are not missing, and the number of the others."""

    n: int
    total: int
    squares: int
    absent: int

    def with_absent(self, code: int) -> CodeSums:
        """Return the sums of all records, those that are missing having this code."""
        return CodeSums(self.n, self.total + self.absent * code, self.squares + self.absent * code**2)


@lru_cache(maxsize=256)
def _at_lower(grid: Grid) -> Grid:
    """Return the grid with missing records at the lower bound: to make one takes longer than a short reading."""
    return grid.with_missing("lower")


class PresentSums(Sums):
    """`Sums` of the records that are not missing, and the number of the others."""

    counts_absent = True

    def __init__(self, grid: Grid, *, squares: bool) -> None:
        super().__init__(_at_lower(grid), squares=squares)  # of code 0

    def add_counted(self, values: Array, counts: Integers) -> int:
        if values.dtype.kind == "f":
            self._absent += int(counts[np.isnan(values)].sum())
        return super().add_counted(values, counts)

    def summary(self, n: int) -> Any:
        return PresentSum(n, self._total, self._total_squares, self._absent)

    def pack(self) -> Any:
        return [*super().pack(), self._absent]

    def unpack(self, packed: Any, n: int, number: int) -> None:
        *sums, absent = read_items(packed, 3)
        self._absent = read_whole(absent, n)
        super().unpack(sums, n - self._absent, number)


class RecordCount(Reading):
    """The number of records. It holds no data of its own, because the state counts the records.

    Parameters
    ----------
    kept : callable
        Returns a mask of the records of a chunk that are counted, or None if all are.
    example : float
        A value that is counted.
    """

    def __init__(self, kept: Callable[[Array], NDArray[np.bool_] | None], example: float) -> None:
        self._kept, self._example = kept, example

    def records(self, x: Any) -> Any:
        """Return a chunk of as many records of one value: a copy of all values would take longer than to count."""
        values = containers.column("x", x)
        if self._kept(values[:0]) is None:
            return values
        masks = (self._kept(values[start : start + _COMPARED]) for start in range(0, len(values), _COMPARED))
        number = sum(int(np.count_nonzero(mask)) for mask in masks if mask is not None)
        return np.broadcast_to(np.float64(self._example), number)

    def add(self, values: Array, threads: int) -> None:
        pass

    def add_counted(self, values: Array, counts: Integers) -> int:
        kept = self._kept(values)
        return int((counts if kept is None else counts[kept]).sum())

    def merge(self, other: RecordCount) -> None:
        pass

    def summary(self, n: int) -> CodeSums:
        return CodeSums(n, 0, 0)

    def of(self, values: Array, threads: int = 1) -> CodeSums:
        return self.summary(len(values))

    def pack(self) -> Any:
        return []

    def unpack(self, packed: Any, n: int, number: int) -> None:
        read_items(packed, 0)


class Counts(Reading):
    """A table of counts.

    Parameters
    ----------
    shape : tuple of int
    records : callable
        Returns a chunk as numbers.
    count : callable
        ``count(values, threads)`` returns the counts of a chunk, an array of this shape.
    locate : callable, optional
        Returns the index of the cell of each number in an array, for records that are numbers.
    cells_of_a_record : int
        The number of cells that count each record.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        records: Callable[[Any], Array],
        count: Callable[[Array, int], Integers],
        locate: Callable[[Array], NDArray[np.integer[Any]]] | None = None,
        *,
        cells_of_a_record: int = 1,
    ) -> None:
        self._shape, self._records, self._count, self._locate = shape, records, count, locate
        self._times = cells_of_a_record
        self._counts = np.zeros(shape, np.int64)

    def records(self, x: Any) -> Array:
        return self._records(x)

    def add(self, values: Array, threads: int) -> None:
        self._counts += self._count(values, threads)

    def add_counted(self, values: Array, counts: Integers) -> int:
        if self._locate is None:
            return super().add_counted(values, counts)
        np.add.at(self._counts, self._locate(values), counts)
        return int(counts.sum())

    def merge(self, other: Counts) -> None:
        self._counts += other._counts

    def summary(self, n: int) -> tuple[Integers, int]:
        """Return the counts and n."""
        return self._counts.copy(), n

    def of(self, values: Array, threads: int = 1) -> tuple[Integers, int]:
        return self._count(values, threads), len(values)

    def pack(self) -> Any:
        return [self._counts.reshape(-1)]

    def unpack(self, packed: Any, n: int, number: int) -> None:
        [counts] = read_items(packed, 1)
        self._counts = read_counts(counts, self._counts.size, n * self._times).reshape(self._shape)


def ascending(codes: Integers) -> Integers:
    """Return the codes of the only column, which are sorted in place."""
    column: Integers = codes[:, 0]
    column.sort()
    return column


class Codes(Reading):
    """The grid codes of all records, in the order of reading: 8 bytes per record and column.

    Parameters
    ----------
    grids : tuple of Grid
        One for each column.
    finish : callable
        Makes the summary from the codes, an array of shape (n, columns), which it may change.
    records : callable, optional
        Returns a chunk as numbers, of shape (m,) or (m, columns). Default: a vector.
    """

    def __init__(
        self,
        grids: tuple[Points, ...],
        finish: Callable[[Integers], Any],
        records: Callable[[Any], Array] | None = None,
    ) -> None:
        self._grids, self._finish = grids, finish
        self._records = records or partial(containers.vector, "x")
        self._parts: list[Integers] = []

    def records(self, x: Any) -> Array:
        return self._records(x)

    def of(self, values: Array, threads: int = 1) -> Any:
        return self._finish(self._encoded(values))

    def add(self, values: Array, threads: int) -> None:
        self._parts.append(self._encoded(values))

    def _encoded(self, values: Array) -> Integers:
        columns = np.asarray(values).T.reshape(len(self._grids), -1)
        codes = [grid.encode(x) for grid, x in zip(self._grids, columns, strict=True)]
        return codes[0][:, None] if len(codes) == 1 else np.stack(codes, axis=1)

    def add_counted(self, values: Array, counts: Integers) -> int:
        if len(self._grids) > 1:
            return super().add_counted(values, counts)
        self.add(np.repeat(values, counts), 1)
        return int(counts.sum())

    def merge(self, other: Codes) -> None:
        self._parts.extend(other._parts)

    def _together(self) -> Integers:
        if len(self._parts) != 1:
            self._parts = [np.concatenate([np.empty((0, len(self._grids)), np.int64), *self._parts])]
        return self._parts[0]

    def summary(self, n: int) -> Any:
        return self._finish(self._together().copy())

    def pack(self) -> Any:
        return list(self._together().T)

    def unpack(self, packed: Any, n: int, number: int) -> None:
        columns = [
            read_codes(column, grid, n, n)
            for column, grid in zip(read_items(packed, len(self._grids)), self._grids, strict=True)
        ]
        self._parts = [np.stack(columns, axis=1)]


class Gathered(NamedTuple):
    """The summary of `Values`: the records in one array and the number of threads to read them."""

    values: Array
    threads: int


class Values(Codes):
    """The records themselves, for a law that reads them: an array unchanged, or the values of the codes of a stream.

    The law must be the same for both, that is, a function of the codes.

    Parameters
    ----------
    grids, records
        See `Codes`.
    """

    def __init__(self, grids: tuple[Grid, ...], records: Callable[[Any], Array] | None = None) -> None:
        def decoded(codes: Integers) -> Gathered:
            columns = [grid.decode(column) for grid, column in zip(grids, codes.T, strict=True)]
            return Gathered(columns[0] if records is None else np.stack(columns, axis=1), 1)

        super().__init__(grids, decoded, records)

    def of(self, values: Array, threads: int = 1) -> Gathered:
        return Gathered(np.asarray(values), threads)
