"""The number of records of each distinct key."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _keys
from dpfast.keys.columns import Coded, KeyColumn, Numbers, Several, column_of
from dpfast.keys.table import NUMBERS, Codes, Keys, Multiple, Single, fitting, pack_columns

_BLOCK = 2**24  # integers that are sorted at once


class Sorted(NamedTuple):
    """Distinct keys in increasing order and the number of records of each, at least 1. PRIVATE."""

    counts: Codes
    codes: Codes
    store: Single | Multiple | SortedRuns | None

    def keys(self, places: Any = slice(None)) -> Keys:
        """Return the keys in these places: an array, or a tuple with one for each column."""
        return np.empty(0, object) if self.store is None else self.store.values(self.codes[places])


class SortedRuns:
    """Counts of integers in a few sorted runs of distinct keys, each less than half as long as the one before."""

    def __init__(self, kind: str, dtype: np.dtype[Any]) -> None:
        self.single = Single(kind, dtype)  # the kind and the dtype; it has no keys
        self._runs: list[tuple[NDArray[np.int64], Codes]] = []

    def add(self, keys: NDArray[np.int64], counts: Codes) -> None:
        """Add sorted, distinct keys with their counts."""
        run = keys, counts
        while self._runs and len(self._runs[-1][0]) < 2 * len(run[0]):
            run = _merged(run, self._runs.pop())
        self._runs.append(run)

    def count(self, column: KeyColumn) -> None:
        """Add the records of a column."""
        for part in column.parts:
            if isinstance(part, Numbers):
                for start in range(0, part.n, _BLOCK):
                    values = part.values[start : start + _BLOCK]
                    if part.missing is not None:
                        values = values[part.missing[start : start + _BLOCK] == 0]
                    self.add(*np.unique(values, return_counts=True))
            elif isinstance(part, Coded):
                places = part.places[(part.places >= 0) & (part.places < len(part.values))]
                self.add_counted(part.values, np.bincount(places, minlength=len(part.values)))

    def add_counted(self, column: KeyColumn, counts: Codes) -> None:
        """Add counts of the entries of a column."""
        start = 0
        for part in column.parts:
            if isinstance(part, Numbers):
                here = counts[start : start + part.n]
                kept = here > 0 if part.missing is None else (here > 0) & (part.missing == 0)
                keys, places = np.unique(part.values[kept], return_inverse=True)
                totals = np.zeros(len(keys), np.int64)
                np.add.at(totals, places, here[kept])
                self.add(keys, totals)
            start += part.n

    def total(self) -> tuple[NDArray[np.int64], Codes]:
        """All distinct keys, sorted, and their counts; in a single run from now on."""
        run = np.zeros(0, np.int64), np.zeros(0, np.int64)
        while self._runs:
            run = _merged(run, self._runs.pop())
        self._runs = [run]
        return run

    def counts(self) -> Codes:
        """Return the counts of the keys in `total`."""
        return self.total()[1]

    def column(self) -> KeyColumn:
        """Return the keys in `total`."""
        return KeyColumn(self.single.kind, self.single.dtype, (Numbers(self.total()[0], None),))

    def values(self, codes: Codes) -> NDArray[Any]:
        """Return the keys in these places of `total`."""
        return self.single.integers(self.total()[0][codes])


def _merged(
    one: tuple[NDArray[np.int64], Codes], other: tuple[NDArray[np.int64], Codes]
) -> tuple[NDArray[np.int64], Codes]:
    if not len(one[0]) or not len(other[0]):
        return one if len(one[0]) else other
    size = len(one[0]) + len(other[0])
    keys, counts = np.empty(size, np.int64), np.empty(size, np.int64)
    size = _keys.merge_counts(*one, *other, keys, counts)
    return (keys[:size], counts[:size]) if 2 * size > len(keys) else (keys[:size].copy(), counts[:size].copy())


class KeyCounts:
    """The number of records of each key, over any number of columns. PRIVATE.

    Neither the order of the records nor their division into columns changes the result. Memory: that of the distinct
    keys, up to twice for integers, and of a block of 2**24 integers.

    Examples
    --------
    >>> from dpfast.keys import KeyCounts
    >>> counts = KeyCounts()
    >>> counts.add(["b", "a", None])
    >>> counts.add(["b", "c"])
    >>> counted = counts.sorted()
    >>> counted.keys(), counted.counts
    (array(['a', 'b', 'c'], dtype=object), array([1, 2, 1]))
    """

    def __init__(self) -> None:
        self._store: Single | Multiple | SortedRuns | None = None

    def __repr__(self) -> str:
        return "<KeyCounts of private keys>"

    @property
    def columns(self) -> int:
        """The number of columns of a key, 1 before the first column is read."""
        return len(self._store.singles) if isinstance(self._store, Multiple) else 1

    def add(self, column: Any) -> None:
        """Count the records of a column, or of several; missing keys are left out."""
        self.add_column(column_of(column))

    def add_column(self, column: KeyColumn | Several) -> None:
        """Count the records of a column that has been read."""
        if not isinstance(column, KeyColumn) or column.kind:
            self._fitting(column).count(column)

    def add_counted(self, column: KeyColumn | Several, counts: Codes) -> None:
        """Add nonnegative counts of the keys of a column."""
        self._fitting(column).add_counted(column, counts)

    def merge(self, other: KeyCounts) -> None:
        """Add the records that another object has counted."""
        if other._store is not None:
            self.add_counted(other._store.column(), other._store.counts())

    def _fitting(self, column: KeyColumn | Several) -> Any:
        if isinstance(self._store, SortedRuns):
            fitted: Any = fitting(self._store.single, column)
            if fitted is not self._store.single:  # objects
                fitted.add_counted(self._store.column(), self._store.counts())
                self._store = fitted
        elif self._store is None and isinstance(column, KeyColumn) and column.kind in NUMBERS:
            self._store = SortedRuns(column.kind, column.dtype)
        else:
            self._store = fitting(self._store, column)
        return self._store

    def sorted(self) -> Sorted:
        """Return the distinct keys that have records, in increasing order, and their counts."""
        if self._store is None:
            return Sorted(np.zeros(0, np.int64), np.zeros(0, np.int64), None)
        if isinstance(self._store, SortedRuns):
            counts = self._store.total()[1]
            return Sorted(counts, np.arange(len(counts)), self._store)
        codes = self._store.order()
        counts = self._store.counts()[codes]
        seen = counts > 0
        return Sorted(counts[seen], codes[seen], self._store)

    def pack(self) -> Any:
        """Return the contents as nested lists of integers and arrays of int64."""
        if self._store is None:
            return None
        return [pack_columns(self._store.column()), self._store.counts()]
