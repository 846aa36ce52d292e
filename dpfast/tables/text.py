"""Delimited text: the rows of a stream of bytes, and the numbers and texts in their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _csv
from dpfast.tables.errors import IN_THE_HEADER, TableError, listed, no_column
from dpfast.tables.format import Format, Recoded, keeps_bytes

_BLOCK = 2**20  # bytes of a read; a longer row enlarges the buffer
_ROWS = 2**16
_KNOWN = 2**20  # texts
_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16
_LONGEST_MARK = 4  # bytes, of UTF-32
_QUOTED = re.compile(rb'"([^"]*(?:""[^"]*)*)"?')


def text_blocks(
    file: BinaryIO, names: Sequence[str | None], texts: Sequence[bool], format: Format
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield the columns of these names, in blocks of rows: str, or None where empty, if `texts`
    says so, else float64.
    """
    rows = _Rows(file, format)
    first = rows.first()
    if format.header:
        if first is None:
            raise TableError("the file is empty: it has no header")
        rows.drop()
    elif first == []:
        first = [""]
    indices = [_index(first, name, format.header) for name in names]
    if first is None:
        return
    wanted, places = np.unique(np.array(indices, np.int64), return_inverse=True)
    for found in rows.blocks(wanted):
        yield tuple(
            rows.texts(found, j) if text else rows.numbers(found, j) for j, text in zip(places, texts, strict=True)
        )


def header_of(file: BinaryIO, format: Format) -> list[str]:
    """Return the names in the header; empty for an empty file."""
    return _Rows(file, format).first() or []


class _Rows:
    """The rows of a stream, a buffer at a time."""

    def __init__(self, file: BinaryIO, format: Format) -> None:
        self.file: Any = file
        self.delimiter, self.encoding, self.marks = ord(format.delimiter), format.encoding, format.marks
        self.bytes = np.empty(_BLOCK, np.uint8)
        self.start = self.stop = 0
        self.final = False
        self.hard = np.empty(_ROWS, np.int64)
        self.known: dict[str, str | None] = {"": None}
        self._begin()
        # Without a header the first bytes are a record, which must not decide how all others are read.
        if format.header and self.encoding == "utf-8" and self.bytes[: self.stop].tobytes().startswith(_WIDE_MARKS):
            self.encoding = "utf-16"
        if not keeps_bytes(self.encoding):
            self.file = Recoded(file, self.encoding, self.bytes[: self.stop].tobytes())
            self.encoding, self.stop, self.final = "utf-8", 0, False
            self._begin()
        if self.bytes[: self.stop].tobytes().startswith(_MARK):
            self.start = len(_MARK)

    def _begin(self) -> None:
        """Read as many bytes as a mark of an encoding has."""
        while self.stop < _LONGEST_MARK and self._fill():
            pass

    def _fill(self) -> bool:
        """Append to what is left of the buffer; return whether the stream had more."""
        left = self.stop - self.start
        larger = np.empty(2 * len(self.bytes), np.uint8) if left == len(self.bytes) else self.bytes
        larger[:left] = self.bytes[self.start : self.stop]
        self.bytes, self.start, self.stop = larger, 0, left
        read: int = self.file.readinto(self.bytes[left:])
        self.stop += read
        self.final = read == 0
        return not self.final

    def _find(self, columns: NDArray[np.int64], places: NDArray[np.int64]) -> tuple[int, int]:
        """Return the number of rows that the buffer holds, up to the length of `places`, and where
        the next one starts.
        """
        while True:
            if self.start < self.stop:
                count, after = _csv.rows(self.bytes, self.start, self.stop, self.delimiter, self.final, columns, places)
                if after > self.start:
                    return count, after
            if self.final:
                return 0, self.stop
            self._fill()

    def first(self) -> list[str] | None:
        """Return the cells of the first row, which is not consumed; None if there is no row."""
        place = np.empty((1, 1, 2), np.int64)
        count, after = self._find(np.zeros(1, np.int64), place)
        if not count:
            return None
        line = self.bytes[self.start : after].tobytes()
        if line in (b"\n", b"\r", b"\r\n"):
            return []
        most = line.count(self.delimiter) + 1
        found = np.empty((1, most, 2), np.int64)
        self._find(np.arange(most), found)
        # Only the first of the cells that the row has starts at 0.
        return [self._text(line[begin:end]) for j, (begin, end) in enumerate(found[0].tolist()) if j == 0 or begin > 0]

    def drop(self) -> None:
        """Skip a row."""
        _, self.start = self._find(np.zeros(1, np.int64), np.empty((1, 1, 2), np.int64))

    def blocks(self, columns: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Yield the places of the cells of ascending columns, for blocks of rows; `start` is the base of each."""
        places = np.empty((_ROWS, len(columns), 2), np.int64)
        while True:
            count, after = self._find(columns, places)
            if count:
                yield places[:count]
            elif after == self.stop and self.final:
                return
            self.start = after

    def numbers(self, places: NDArray[np.int64], column: int) -> NDArray[np.float64]:
        """Return the numbers in the cells of a column, NaN for a cell without one."""
        if self.marks:
            return self._marked(places, column)
        out = np.empty(len(places))
        for i in self.hard[: _csv.numbers(self.bytes, self.start, places, column, out, self.hard)].tolist():
            out[i] = _number(self._cell(places[i, column]))
        return out

    def _marked(self, places: NDArray[np.int64], column: int) -> NDArray[np.float64]:
        """Return the numbers in the cells of a column in which other marks than the point stand."""
        cells = self.texts(places, column).tolist()
        known = {cell: _number((cell or "").translate(self.marks)) for cell in set(cells)}
        return np.array([known[cell] for cell in cells], np.float64)

    def texts(self, places: NDArray[np.int64], column: int) -> NDArray[np.object_]:
        """Return the texts in the cells of a column, None for an empty cell; equal texts are mostly one object."""
        if len(self.known) > _KNOWN:
            self.known = {"": None}
        cells: list[str | None] = []
        name = self.encoding.encode()
        left = _csv.texts(self.bytes, self.start, places, column, self.known, cells, self.hard, name)
        for i in self.hard[:left].tolist():
            cells[i] = self._cell(places[i, column]) or None
        out = np.empty(len(cells), object)
        out[:] = cells
        return out

    def _cell(self, place: NDArray[np.int64]) -> str:
        begin, end = (self.start + place).tolist()
        return self._text(self.bytes[begin:end].tobytes())

    def _text(self, cell: bytes) -> str:
        """Return the text of a cell: an opening quotation without its quotes, then the rest as it stands."""
        if quotation := _QUOTED.match(cell):
            cell = quotation[1].replace(b'""', b'"') + cell[quotation.end() :]
        return cell.decode(self.encoding, "surrogateescape")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _index(first: list[str] | None, column: str | None, header: bool) -> int:
    """Return the index of a column; without a row and a header, each number is one."""
    if column is None:
        if first is not None and len(first) != 1:
            names = f": {listed(first)}" if header else ""
            raise TableError(f"the file has {len(first)} columns: name one with --column{names}")
        return 0
    if first is not None and header:
        if first.count(column) != 1:
            raise no_column(column, first, IN_THE_HEADER)
        return first.index(column)
    if not column.isdecimal() or int(column) < 1 or (first is not None and int(column) > len(first)):
        last = "" if first is None else f" to {len(first)}"
        raise TableError(f"without a header the column is a number from 1{last}, not {column!r}")
    return int(column) - 1
