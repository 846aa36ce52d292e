"""Columns of records that NumPy cannot view as one array: kernels read their parts where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _select

Array = NDArray[Any]
_BLOCK = 2**15  # numbers of rows that are put side by side at once: 256 kB
_DTYPES = {f"{s}int{b}": f"{s or 'i'}{b // 8}" for s in ("", "u") for b in (8, 16, 32, 64)}
_DTYPES |= {"halffloat": "f2", "float": "f4", "double": "f8"}


class ColumnPart(NamedTuple):
    """Consecutive records of a column, and which of them are missing: all numbers, unless one of the masks says so."""

    values: Array  # of a dtype that kernels read, in either byte order
    valid: NDArray[np.uint8] | None = None  # a bit for each record from bit `bit` on, as in Arrow
    bit: int = 0
    absent: NDArray[np.bool_] | None = None  # or a byte for each record, as in NumPy


class PartedColumn:
    """Records in parts, read as doubles: kernels take it in place of an array of float64, and NumPy converts it.

    A copy of all records in one array would take two to twenty times as long as a median or a mean of them.

    Parameters
    ----------
    parts : sequence of ColumnPart
        With at least one record.

    Attributes
    ----------
    records : int
    parts : ndarray of int64
        A row for each part: the fields of `select_part` in ``src/shared/select.h``.
    """

    dtype = np.dtype(np.float64)
    ndim = 1

    def __init__(self, parts: Sequence[ColumnPart]) -> None:
        self._held = [part for part in parts if len(part.values)]  # the rows have their addresses
        ends = np.cumsum([len(part.values) for part in self._held]).tolist()
        self.records: int = ends[-1]
        self.parts = np.array(
            [_row(start, part) for start, part in zip([0, *ends], self._held, strict=False)], np.int64
        )

    def __len__(self) -> int:
        return self.records

    @property
    def shape(self) -> tuple[int]:
        return (self.records,)

    def __getitem__(self, places: Any) -> Any:
        """Return the column itself if all of it is asked for, else some of the records in an array."""
        if isinstance(places, slice):
            start, stop, step = places.indices(self.records)
            if step == 1:
                whole = (start, stop) == (0, self.records)
                return self if whole else _select.doubles(self, start, max(start, stop))
        return np.asarray(self)[places]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all records in a new array."""
        made = _select.doubles(self, 0, self.records)
        return made if dtype is None else made.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return "<PartedColumn of private records>"


def _row(start: int, part: ColumnPart) -> list[int]:
    values, swapped = part.values, not part.values.dtype.isnative
    valid, absent = (0 if mask is None else _address(mask) for mask in (part.valid, part.absent))
    kind, itemsize = ord(values.dtype.kind), values.dtype.itemsize
    return [start, _address(values), values.strides[0], kind, itemsize, swapped, valid, part.bit, absent]


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def of_parts(parts: Sequence[ColumnPart]) -> PartedColumn | Array:
    """Return the column of these parts, or the only part itself, if it is one of floats without missing records."""
    if (
        len(parts) == 1
        and (whole := parts[0]).values.dtype.kind == "f"
        and whole.valid is None
        and whole.absent is None
    ):
        return whole.values
    return PartedColumn(parts)


def of_masked(values: Array, mask: Any) -> PartedColumn:
    """Return the column of values with a mask of the missing ones, or `numpy.ma.nomask`."""
    return PartedColumn([ColumnPart(values, absent=None if mask is np.ma.nomask else np.ascontiguousarray(mask))])


def of_arrow(x: Any) -> PartedColumn | Array | None:
    """Return the column of an array or a chunked array of Arrow; None if its type is packed or no number."""
    dtype = _DTYPES.get(str(x.type))
    if dtype is None:
        return None
    return of_parts([_arrow_part(chunk, dtype) for chunk in getattr(x, "chunks", [x]) if len(chunk)])


def _arrow_part(chunk: Any, dtype: str) -> ColumnPart:
    valid, held = chunk.buffers()
    values = np.frombuffer(held, dtype, len(chunk), chunk.offset * np.dtype(dtype).itemsize)
    return ColumnPart(values, None if valid is None else np.frombuffer(valid, np.uint8), chunk.offset)


class Rows:
    """Rows whose columns are apart, as in a frame: arrays or `PartedColumn`s of floats, which NumPy would copy.

    Parameters
    ----------
    columns : sequence of ndarray or PartedColumn
        At least one, of the same length.
    """

    dtype = np.dtype(np.float64)
    ndim = 2

    def __init__(self, columns: Sequence[Array | PartedColumn]) -> None:
        self.columns = tuple(columns)

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), len(self.columns)

    def __getitem__(self, places: Any) -> Array:
        return np.column_stack([np.asarray(column[places]) for column in self.columns])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all rows in a new array."""
        made = self[:]
        return made if dtype is None else made.astype(dtype, copy=False)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield the places and the rows of blocks that stay in a cache; each block takes the place of the last one."""
        n, d = self.shape
        room = np.empty((max(_BLOCK // d, 1), d))
        for start in range(0, n, len(room)):
            places = slice(start, min(start + len(room), n))
            block = room[: places.stop - start]
            for j, column in enumerate(self.columns):
                block[:, j] = column[places]
            yield places, block

    def __repr__(self) -> str:
        return "<Rows of private records>"
