"""The reading of keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfast.keys import KeyColumn, KeyCounts, Several, Sorted, column_of
from dpfast.keys.columns import Coded, Numbers, Offsets
from dpfast.keys.table import DTYPES, KINDS, NUMBERS
from dpfast.streaming.reading import Reading
from dpfast.streaming.wire import DAMAGED, Integers, read_array, read_items, read_whole

_MOST = 2**40  # entries of an array
_MOST_COLUMNS = 2**10


class KeyReading(Reading):
    """The number of records of each distinct key. It holds the distinct keys.

    Its summary is a `dpfast.keys.Sorted`.
    """

    def __init__(self) -> None:
        self._counts = KeyCounts()

    def records(self, x: Any) -> KeyColumn | Several:
        return column_of(x)

    def add(self, values: KeyColumn | Several, threads: int) -> None:
        self._counts.add_column(values)

    def merge(self, other: KeyReading) -> None:
        self._counts.merge(other._counts)

    def of(self, values: KeyColumn | Several, threads: int = 1) -> Sorted:
        self.add(values, threads)
        return self.summary(len(values))

    def summary(self, n: int) -> Sorted:
        return self._counts.sorted()

    def pack(self) -> Any:
        return [self._counts.pack()]

    def unpack(self, packed: Any, n: int, number: int) -> None:
        [held] = read_items(packed, 1)
        if held is None:
            return
        keys, counts = read_items(held, 2)
        column = _columns(keys)
        numbers = read_array(counts, _MOST)
        if numbers.size != len(column) or np.any(numbers < 0) or np.sum(numbers, dtype=np.float64) > n:
            raise ValueError(DAMAGED)
        self._counts.add_counted(column, numbers)


def _columns(node: Any) -> KeyColumn | Several:
    """Return the keys of `dpfast.keys.table.pack_columns`."""
    items = read_items(node)
    if not items or len(items) > _MOST_COLUMNS:
        raise ValueError(DAMAGED)
    if not isinstance(items[0], list):
        return _column(items)
    columns = tuple(_column(read_items(item)) for item in items)
    if len(set(map(len, columns))) > 1:
        raise ValueError(DAMAGED)
    return Several(columns)


def _column(items: list[Any]) -> KeyColumn:
    if len(items) not in (3, 4):
        raise ValueError(DAMAGED)
    kind, dtype = KINDS[read_whole(items[0], len(KINDS) - 1)], DTYPES[read_whole(items[1], len(DTYPES) - 1)]
    if len(items) == 4 and isinstance(items[3], list):
        values = _column(items[3])
        return KeyColumn(kind, dtype, (Coded(_within(items[2], len(values)), values),))
    if kind in NUMBERS:
        if len(items) != 3 or dtype.kind == "O" or (kind == "floats") != (dtype.kind == "f"):
            raise ValueError(DAMAGED)
        return KeyColumn(kind, dtype, (Numbers(read_array(items[2], _MOST), None),))
    if len(items) != 4 or dtype.kind != "O":
        raise ValueError(DAMAGED)
    ends, data = read_array(items[2], _MOST), read_array(items[3], _MOST).astype("<i8").view(np.uint8)
    if not ends.size or ends[0] != 0 or np.any(np.diff(ends) < 0) or ends[-1] > data.size:
        raise ValueError(DAMAGED)
    return KeyColumn(kind, dtype, (Offsets(ends, data, None),))


def _within(node: Any, size: int) -> Integers:
    places = read_array(node, _MOST)
    if np.any((places < 0) | (places >= size)):
        raise ValueError(DAMAGED)
    return places
