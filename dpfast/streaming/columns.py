"""A reading of records in rows, by a separate reading of each column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfast._kernels._threads import each

if TYPE_CHECKING:
    pass
from dpfast.streaming.reading import Array, Reading
from dpfast.streaming.wire import read_items

_TILE = 2**22  # entries of the columns that are copied together
_ROWS = 1024  # records copied at a time


class Columns(Reading):
    """A reading of d columns; the summary is the list of theirs.

    Parameters
    ----------
    reading : callable
        ``reading(j, d)`` returns the reading of column j; its number of passes is the same for all d.
    records : callable
        Returns a chunk as numbers, of shape (m, d).
    check : callable
        Raises a ValueError for a d that the mechanism does not support.
    passes : int
    prepared : callable
        ``prepared(values, threads)`` maps each record before it is read.
    """

    def __init__(
        self,
        reading: Callable[[int, int], Reading],
        records: Callable[[Any], Array],
        check: Callable[[int], None],
        passes: int,
        prepared: Callable[[Array, int], Array],
    ) -> None:
        self._reading, self._records, self._check, self.passes = reading, records, check, passes
        self._prepared = prepared
        self._number = 1
        self._columns: list[Reading] = []

    def of(self, values: Array, threads: int = 1) -> list[Any]:
        d = values.shape[1]
        values = self._prepared(values, threads)

        def read(part: range) -> list[Any]:
            return [self._reading(j, d).of(column) for j, column in columns_between(values, part.start, part.stop)]

        return [summary for part in each(read, shares(d, threads), threads) for summary in part]

    def _begin(self, d: int) -> None:
        self._columns = [self._reading(j, d) for j in range(d)]

    def _present(self) -> list[Reading]:
        return [column for column in self._columns if column.passes >= self._number]

    def records(self, x: Any) -> Array:
        values = self._records(x)
        if self._columns and len(self._columns) != values.shape[1]:
            raise ValueError(f"chunks must have {len(self._columns)} columns like the first one, not {values.shape[1]}")
        return values

    def add(self, values: Array, threads: int) -> None:
        if not self._columns:
            self._begin(values.shape[1])
        rows = np.ascontiguousarray(self._prepared(values, threads).T)

        def add(j: int) -> None:
            if self._columns[j].passes >= self._number:
                self._columns[j].add(rows[j], 1)

        each(add, range(len(rows)), threads)

    def merge(self, other: Columns) -> None:
        if not other._columns:
            return
        if not self._columns:
            self._begin(len(other._columns))
        if len(self._columns) != len(other._columns):
            raise ValueError(f"states of {len(self._columns)} and {len(other._columns)} columns do not merge")
        for mine, its in zip(self._present(), other._present(), strict=True):
            mine.merge(its)

    def advance(self, n: int) -> None:
        self._number += 1
        for column in self._present():
            column.advance(n)

    def summary(self, n: int) -> list[Any]:
        return [column.summary(n) for column in self._columns]

    def pack(self) -> Any:
        return [column.pack() for column in self._columns]

    def unpack(self, packed: Any, n: int, number: int) -> None:
        self._number, d = number, len(read_items(packed))
        if d:
            self._check(d)
        for j, part in enumerate(packed):  # unpack a column only after the previous one is valid
            self._columns.append(self._reading(j, d))
            self._columns[j].unpack(part, n, number)


def columns_between(records: Array, start: int, stop: int) -> Iterator[tuple[int, Array]]:
    """Yield the columns start..stop - 1 of an array of records; copy a few together if they are not contiguous."""
    n, d = records.shape
    if d == 1 or records.strides[0] == records.itemsize:
        yield from ((j, records[:, j]) for j in range(start, stop))
        return
    count = min(max(_TILE // n, 4), 64, stop - start)
    tile = np.empty((count, n), records.dtype)
    for first in range(start, stop, count):
        last = min(first + count, stop)
        for row in range(0, n, _ROWS):
            tile[: last - first, row : row + _ROWS] = records[row : row + _ROWS, first:last].T
        yield from ((first + i, tile[i]) for i in range(last - first))


def shares(count: int, threads: int) -> list[range]:
    """Divide the columns among the threads."""
    parts = min(threads, count)
    return [range(count * i // parts, count * (i + 1) // parts) for i in range(parts)]
