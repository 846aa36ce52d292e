"""The reading of exact sums of the codes of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dpfast.core import containers
from dpfast.domains import LIMB, Ball, Domain, carry
from dpfast.streaming.labelled import Labelled
from dpfast.streaming.reading import Array, Reading
from dpfast.streaming.wire import DAMAGED, Integers, read_array, read_items


class VectorSums(NamedTuple):
    """n and the exact sums of the codes of n rows: row 0 times 2**52 plus row 1, which is below 2**52."""

    n: int
    sums: Integers

    @property
    def dimension(self) -> int:
        """The number of columns."""
        return int(self.sums.shape[1])

    def totals(self, most: int, origins: Integers | None = None) -> Integers:
        """Return the sums of code + origin as int64, clamped to +-most, at most 2**62."""
        sums = self.sums
        if origins is not None:
            shifts = [self.n * origin for origin in np.broadcast_to(origins, sums.shape[1:]).tolist()]
            sums = sums + np.array([[shift >> LIMB for shift in shifts], [shift % 2**LIMB for shift in shifts]])
            carry(sums)
        high, low = sums
        ends = 1 << (62 - LIMB)
        inside = (np.clip(high, -ends, ends - 1) << LIMB) + low
        return np.clip(np.where(high < -ends, -most, np.where(high >= ends, most, inside)), -most, most)


class RowSums(Reading):
    """The exact sums of the codes of rows, by column. It holds 16 bytes for each column.

    Parameters
    ----------
    domain : Domain
        Its number of columns, or else the first chunk, gives that of all chunks.
    check : callable
        Raises a ValueError for a number of columns that the mechanism does not support.
    """

    def __init__(self, domain: Domain, check: Callable[[int], None]) -> None:
        self._domain, self._check = domain, check
        self._sums: Integers | None = None
        if domain.columns is not None:
            self._begin(domain.columns)

    def _size(self, d: int) -> int:
        """Return the number of sums for d columns."""
        return d

    def _columns(self, size: int) -> int:
        """Return the number of columns for `size` sums; raises a ValueError if there is none."""
        return size

    def _accumulate(self, rows: Array, sums: Integers, threads: int) -> None:
        self._domain.add(rows, sums, threads)

    def _begin(self, d: int) -> Integers:
        self._sums = np.zeros((2, self._size(d)), np.int64)
        return self._sums

    def records(self, x: Any) -> Any:
        rows = containers.rows("X", x)
        self._check_rows(rows)
        return rows

    def _check_rows(self, rows: Array) -> None:
        """Check the number of columns of a chunk."""
        self._domain.check_columns(rows.shape[1])
        self._check(rows.shape[1])
        if self._sums is not None and self._sums.shape[1] != self._size(rows.shape[1]):
            columns = self._columns(self._sums.shape[1])
            raise ValueError(f"chunks must have {columns} columns like the first one, not {rows.shape[1]}")

    def add(self, values: Any, threads: int) -> None:
        sums = self._begin(values.shape[1]) if self._sums is None else self._sums
        self._accumulate(values, sums, threads)

    def of(self, values: Any, threads: int = 1) -> Any:
        self.add(values, threads)
        return self.summary(len(values))

    def merge(self, other: RowSums) -> None:
        if other._sums is None:
            return
        if self._sums is None:
            self._sums = np.zeros_like(other._sums)
        if self._sums.shape != other._sums.shape:
            mine, its = (self._columns(sums.shape[1]) for sums in (self._sums, other._sums))
            raise ValueError(f"states of {mine} and {its} columns do not merge")
        self._sums += other._sums
        carry(self._sums)

    def _known(self) -> Integers:
        if self._sums is None:
            raise ValueError("the number of columns is unknown: read a chunk, which may have no rows")
        return self._sums.copy()

    def summary(self, n: int) -> Any:
        return VectorSums(n, self._known())

    def pack(self) -> Any:
        return [] if self._sums is None else list(self._sums)

    def unpack(self, packed: Any, n: int, number: int) -> None:
        if not read_items(packed):
            return
        high, low = (read_array(part, 2**40) for part in read_items(packed, 2))
        if not high.size or high.size != low.size:
            raise ValueError(DAMAGED)
        columns = self._columns(high.size)
        self._domain.check_columns(columns)
        self._check(columns)
        if np.any((low < 0) | (low >= 2**LIMB)) or np.any((high < -n) | (high > n)):
            raise ValueError(DAMAGED)
        self._sums = np.stack([high, low])


class ProductSums(NamedTuple):
    """n, the number of codes of a record, and the exact sums of products of two codes and of codes, as in `VectorSums`.

    Their order is that of `Ball.add_products`.
    """

    n: int
    codes: int
    sums: Integers


class RowProducts(RowSums):
    """The exact sums of the products v v' of the codes v of rows, and of the codes: about 8 d bytes for each column.

    Parameters
    ----------
    domain : Ball
        As `Ball.for_products` returns.
    check : callable
        As for `RowSums`.
    """

    _domain: Ball

    def __init__(self, domain: Ball, check: Callable[[int], None]) -> None:
        super().__init__(domain, check)

    def _size(self, d: int) -> int:
        return d * (d + 3) // 2

    def _columns(self, size: int) -> int:
        columns = (math.isqrt(8 * size + 9) - 3) // 2
        if columns * (columns + 3) // 2 != size:
            raise ValueError(DAMAGED)
        return columns

    def _accumulate(self, rows: Array, sums: Integers, threads: int) -> None:
        self._domain.add_products(rows, sums, threads)

    def _codes(self, size: int) -> int:
        """Return the number of codes of a record for `size` sums."""
        return self._columns(size)

    def summary(self, n: int) -> ProductSums:
        sums = self._known()
        return ProductSums(n, self._codes(sums.shape[1]), sums)


class LabelledProducts(RowProducts):
    """The same for records with labels, whose codes are those of the row, then that of the label.

    Parameters
    ----------
    domain, labels : Ball
        Of the rows, and of the labels as rows of one column; both as `Ball.for_products` returns.
    check : callable
        As for `RowSums`.
    """

    def __init__(self, domain: Ball, labels: Ball, check: Callable[[int], None]) -> None:
        self._labels = labels
        super().__init__(domain, check)

    def _size(self, d: int) -> int:
        return super()._size(d + 1)

    def _codes(self, size: int) -> int:
        return super()._columns(size)

    def _columns(self, size: int) -> int:
        if (codes := super()._columns(size)) < 2:
            raise ValueError(DAMAGED)
        return codes - 1

    def records(self, x: Any) -> Labelled:
        records = Labelled.of(x)
        self._check_rows(records.rows)
        return records

    def add(self, values: Labelled, threads: int) -> None:
        sums = self._begin(values.columns) if self._sums is None else self._sums
        self._domain.add_labelled_products(values.rows, values.labels, self._labels, sums, threads)
