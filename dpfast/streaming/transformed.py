"""A reading of numbers: exact sums of the codes of functions of the records, such as sufficient statistics."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _blocks
from dpfast._kernels._threads import each
from dpfast.core import containers
from dpfast.core.grid import Grid
from dpfast.streaming.reading import Array, CodeSums, Reading, Sums
from dpfast.streaming.wire import Integers, read_items

_PIECE = 2**15  # records whose logarithms are taken at once: they stay in the cache


class ColumnSums(NamedTuple):
    """n, and for each function of the records the sums of the codes and of their squares, exact."""

    n: int
    columns: tuple[CodeSums, ...]


def transformed(kind: str, values: Array) -> Array:
    """Return a function of each record alone, bit for bit; NaN for NaN.

    "value": the record; "log": its logarithm, -inf unless it is positive; "log1m": the logarithm of 1 - record.
    """
    if kind == "value":
        return values
    x = np.ascontiguousarray(values, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # a signaling NaN
        logs: NDArray[np.float64] = _blocks.logs(x if kind == "log" else 1 - x)
    return logs


class TransformedSums(Reading):
    """The exact sums of the codes of several functions of each record.

    Parameters
    ----------
    kinds : tuple of str
        The functions; see `transformed`.
    grids : tuple of Grid
        The grids of their values.
    squares : bool
        Whether to sum the squares of the codes, too.
    """

    def __init__(self, kinds: tuple[str, ...], grids: tuple[Grid, ...], *, squares: bool) -> None:
        self._kinds, self._grids = kinds, grids
        self._squares = squares
        self._sums = self._empty()

    def _empty(self) -> list[Sums]:
        return [Sums(grid, squares=self._squares) for grid in self._grids]

    def records(self, x: Any) -> Array:
        return containers.vector("x", x)

    def add(self, values: Array, threads: int) -> None:
        if self._kinds == ("value",):
            self._sums[0].add(values, threads)
            return
        bounds = np.linspace(0, len(values), min(threads, -(-len(values) // _PIECE)) + 1).astype(int).tolist()
        parts = [self._empty() for _ in bounds[1:]]

        def read(i: int) -> None:
            for start in range(bounds[i], bounds[i + 1], _PIECE):
                piece = values[start : min(start + _PIECE, bounds[i + 1])]
                for kind, sums in zip(self._kinds, parts[i], strict=True):
                    sums.add(transformed(kind, piece), 1)

        each(read, range(len(parts)), len(parts))
        for part in parts:
            self._merge(part)

    def add_counted(self, values: Array, counts: Integers) -> int:
        for kind, sums in zip(self._kinds, self._sums, strict=True):
            sums.add_counted(transformed(kind, values), counts)
        return int(counts.sum())

    def _merge(self, others: list[Sums]) -> None:
        for mine, its in zip(self._sums, others, strict=True):
            mine.merge(its)

    def merge(self, other: TransformedSums) -> None:
        self._merge(other._sums)

    def summary(self, n: int) -> ColumnSums:
        return ColumnSums(n, tuple(sums.summary(n) for sums in self._sums))

    def pack(self) -> Any:
        return [sums.pack() for sums in self._sums]

    def unpack(self, packed: Any, n: int, number: int) -> None:
        for sums, part in zip(self._sums, read_items(packed, len(self._sums)), strict=True):
            sums.unpack(part, n, number)
