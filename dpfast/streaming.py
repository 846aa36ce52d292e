"""Data larger than memory, or spread over machines: chunks, and the states of a mechanism that reads them and merge.

A mechanism asks for one of a few *readings* of the data, whose summary its law is made of:

- `Sums`: exact sums of the codes and of their squares;
- `Records`: how many there are;
- `Counts`: a table of counts, of the cells of a histogram or of the nodes of a series;
- `Ranks`: order statistics around public ranks, and the sum between two of them, in one to three passes;
- `Codes`: the grid code of every record, where the law needs them all;
- `Values`: the records themselves, for a law that reads the array; in a stream the values of their codes;
- `Columns`: one of these for each column.

`Mechanism.reading` makes the reading, and `Mechanism.law_of` the law from its summary, for arrays (`Reading.of`) and
for streams (`State`) alike. A summary is exact and made of integers (but for `Values` of an array): it depends neither
on the chunks nor on the order of merging, and a release equals that of the same records in one array, bit for bit for
the same generator.
"""

from __future__ import annotations

import bisect
import dataclasses
import hashlib
import json
import math
import struct
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast import _checks, _containers
from dpfast._kernels import _select, _stream, _windows
from dpfast._threads import each
from dpfast.grid import Grid
from dpfast.random import RandomSource, bit_generator
from dpfast.spending import EXACT, LAW, Ticket, refused, spending, unpaid

if TYPE_CHECKING:
    from dpfast.laws import Law
    from dpfast.privacy import PrivacyProfile

Array = NDArray[Any]
Integers = NDArray[np.int64]

_DIGIT = 18  # bits of a code that one pass counts: 3 MB of counts, in 64 and in 32 bits
_THREAD = 2**18  # records for which a thread pays
_PIECE = 2**31  # records that are added at once: fewer than twice as many to counts of 32 bits
_TILE = 2**22  # records in the columns that are read together
_ROWS = 1024  # records copied at a time


class Chunks:
    """Records in pieces that can be visited again: what a mechanism takes in place of one array.

    Parameters
    ----------
    source : iterable, Arrow ChunkedArray, or callable
        Pieces: array_like, of shape (m,) or (m, d) as the mechanism takes them, of any lengths, 0 too; a list of
        arrays, slices of a memmap, the chunks of an Arrow ChunkedArray. Or a function of no arguments that opens a new
        iterator over them for each pass, always over the same data.

    Raises
    ------
    TypeError
        An iterator, which can be visited once: give the function that makes it.

    Notes
    -----
    Each piece is read in its own dtype, which is public as its length is: 64-bit integers are not rounded to doubles
    first, as they would be in one array with floats. Only ``bounds=`` looks at dtypes together: its step is 1 if all
    pieces of a sequence declare an integer or boolean dtype, or the first piece of another source does.
    Privacy: the guarantee is for the records that come. A release that a source makes on its way, of bounds to clamp
    to for one, is another one, in each pass; a `dpfast.Ledger` charges it.
    Cost: a mechanism visits the pieces once for each of its passes (`State.passes`); nothing is kept of them but the
    summary. A release that needs n beforehand, for ``bins="auto"`` or ``terms="auto"``, visits them once more.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> ages = np.random.default_rng(0).integers(18, 90, 100_000)
    >>> chunks = dpf.Chunks(np.array_split(ages, 10))
    >>> 53 <= dpf.median(chunks, bounds=(0, 100), epsilon=1.0) <= 55
    True
    >>> def opened():
    ...     return (np.random.default_rng(seed).normal(50, 10, 1000) for seed in range(100))
    >>> 49 <= dpf.median(dpf.Chunks(opened), bounds=(0, 100), epsilon=1.0) <= 51
    True
    """

    def __init__(self, source: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        if hasattr(source, "iterchunks"):
            source = source.iterchunks
        if not callable(source):
            if not isinstance(source, Iterable):
                raise TypeError(f"source must be an iterable of arrays or a function, not {type(source).__name__}")
            if iter(source) is source:
                raise TypeError("source is an iterator, which can be read once: give a function that opens one")
        self._source = source
        self._n: int | None = None

    @classmethod
    def slices(cls, array: Array, size: SupportsIndex = 2**18) -> Chunks:
        """The pieces of an array, a memmap for one, of `size` records each."""
        step = _checks.whole("size", size, least=1)
        return cls([array[start : start + step] for start in range(0, len(array), step)])

    @classmethod
    def parquet(cls, path: Any, columns: str | Sequence[str]) -> Chunks:
        """The row groups of a Parquet file, of one column or, as tables of float64, of several. Needs pyarrow."""

        def opened() -> Iterator[Any]:
            from pyarrow import parquet

            names = [columns] if isinstance(columns, str) else list(columns)
            with parquet.ParquetFile(path) as file:
                for group in range(file.num_row_groups):
                    table = file.read_row_group(group, columns=names)
                    pieces = [table.column(name).combine_chunks() for name in names]
                    if isinstance(columns, str):
                        yield pieces[0]
                    else:
                        yield np.stack([_containers.vector("x", piece).astype(np.float64) for piece in pieces], axis=1)

        return cls(opened)

    def __iter__(self) -> Iterator[Any]:
        return unpaid(lambda: iter(self._source() if callable(self._source) else self._source))

    def __repr__(self) -> str:
        return "<Chunks of private records>"

    def declares_integers(self) -> bool:
        """Whether the records are declared to be integers or booleans, by the dtypes of the pieces."""
        if isinstance(self._source, Sequence):
            return len(self._source) > 0 and all(map(_containers.declares_integers, self._source))
        return _containers.declares_integers(next(iter(self), None))

    def records(self) -> int:
        """The number of records, by a visit to all pieces, once."""
        if self._n is None:
            self._n = sum(len(piece) for piece in self)
        return self._n


# ---- readings ----


class Reading(ABC):
    """Reads records, in one pass or more, and makes their summary. PRIVATE once it has read.

    A stream calls `add` for each chunk and `merge` for each other reading of the present pass, `advance` between two
    passes, and `summary` after the last one. An array needs one call of `of`.
    """

    passes = 1

    @abstractmethod
    def records(self, x: Any) -> Array:
        """A chunk as numbers; looks at its shape and dtype only."""

    @abstractmethod
    def add(self, values: Array, threads: int) -> None:
        """The records of a chunk."""

    @abstractmethod
    def merge(self, other: Any) -> None:
        """What another reading has read in the same pass."""

    def advance(self, n: int) -> None:
        """Begin the next pass over n records, where there is one."""
        raise ValueError("there is one pass only")

    @abstractmethod
    def summary(self, n: int) -> Any:
        """What the law is made of, after the last pass over n records."""

    def of(self, values: Array, threads: int = 1) -> Any:
        """The summary of all records, in one array as `records` returns it; called once, and of a new reading only.

        By all passes over the array; a subclass may override it by a faster way to the same summary.
        """
        for number in range(self.passes):
            if number:
                self.advance(len(values))
            if len(values):
                self.add(values, threads)
        return self.summary(len(values))

    @abstractmethod
    def pack(self) -> Any:
        """All that is held, as lists of integers, None and arrays of int64."""

    @abstractmethod
    def unpack(self, packed: Any, n: int, number: int) -> None:
        """Take over, into a new reading, what `pack` gave in pass `number`, n records in the first; or a ValueError."""


class CodeSums(NamedTuple):
    """n records; the sums of their codes and of the squares, exact."""

    n: int
    total: int
    squares: int


class Sums(Reading):
    """Exact sums of the codes, and of their squares where they are asked for. Two integers."""

    def __init__(self, grid: Grid, *, squares: bool) -> None:
        self._grid, self._squares = grid, squares
        self._total = self._total_squares = 0

    def records(self, x: Any) -> Array:
        return _containers.vector("x", x)

    def add(self, values: Array, threads: int) -> None:
        grid = self._grid
        total, squares = _select.moments(
            values, first=grid.first, squares=self._squares, **grid.kernel, workers=threads
        )
        self._total += total
        self._total_squares += squares

    def merge(self, other: Sums) -> None:
        self._total += other._total
        self._total_squares += other._total_squares

    def summary(self, n: int) -> CodeSums:
        return CodeSums(n, self._total, self._total_squares)

    def pack(self) -> Any:
        return [self._total, self._total_squares]

    def unpack(self, packed: Any, n: int, number: int) -> None:
        total, squares = _items(packed, 2)
        last = self._grid.size - 1
        self._total = _whole(total, n * last)
        self._total_squares = _whole(squares, n * last**2)


class Records(Reading):
    """The number of records, which a state holds anyway.

    Parameters
    ----------
    kept : callable
        Those of a chunk that count.
    """

    def __init__(self, kept: Callable[[Array], Array]) -> None:
        self._kept = kept

    def records(self, x: Any) -> Array:
        return self._kept(_containers.vector("x", x))

    def add(self, values: Array, threads: int) -> None:
        pass

    def merge(self, other: Records) -> None:
        pass

    def summary(self, n: int) -> CodeSums:
        return CodeSums(n, 0, 0)

    def pack(self) -> Any:
        return []

    def unpack(self, packed: Any, n: int, number: int) -> None:
        _items(packed, 0)


class Counts(Reading):
    """A table of counts.

    Parameters
    ----------
    shape : tuple of int
    records : callable
        A chunk as numbers.
    count : callable
        The counts of a chunk, an array of `shape`, by ``count(values, threads)``.
    """

    def __init__(
        self, shape: tuple[int, ...], records: Callable[[Any], Array], count: Callable[[Array, int], Integers]
    ) -> None:
        self._shape, self._records, self._count = shape, records, count
        self._counts = np.zeros(shape, np.int64)

    def records(self, x: Any) -> Array:
        return self._records(x)

    def add(self, values: Array, threads: int) -> None:
        self._counts += self._count(values, threads)

    def merge(self, other: Counts) -> None:
        self._counts += other._counts

    def summary(self, n: int) -> tuple[Integers, int]:
        """The counts, and n."""
        return self._counts.copy(), n

    def of(self, values: Array, threads: int = 1) -> tuple[Integers, int]:
        return self._count(values, threads), len(values)

    def pack(self) -> Any:
        return [self._counts.reshape(-1)]

    def unpack(self, packed: Any, n: int, number: int) -> None:
        [counts] = _items(packed, 1)
        self._counts = _counts(counts, self._counts.size, n).reshape(self._shape)


class Codes(Reading):
    """The grid codes of all records, in the order in which they were read: 8 bytes for each record and column.

    Parameters
    ----------
    grids : tuple of Grid
        One for each column.
    finish : callable
        The summary, of an array of shape (n, columns).
    records : callable, optional
        A chunk as numbers, of shape (m,) or (m, columns). Default: a vector.
    """

    def __init__(
        self,
        grids: tuple[Grid, ...],
        finish: Callable[[Integers], Any],
        records: Callable[[Any], Array] | None = None,
    ) -> None:
        self._grids, self._finish = grids, finish
        self._records = records or partial(_containers.vector, "x")
        self._parts: list[Integers] = []

    def records(self, x: Any) -> Array:
        return self._records(x)

    def add(self, values: Array, threads: int) -> None:
        columns = values.T.reshape(len(self._grids), -1)
        self._parts.append(np.stack([grid.encode(x) for grid, x in zip(self._grids, columns, strict=True)], axis=1))

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
            _codes(column, grid, n, n)
            for column, grid in zip(_items(packed, len(self._grids)), self._grids, strict=True)
        ]
        self._parts = [np.stack(columns, axis=1)]


class Batch(NamedTuple):
    """The summary of `Values`: records in one array, and the number of threads that may read them."""

    values: Array
    threads: int


class Values(Codes):
    """The records themselves, for a law that reads them: an array as it is, or the values of the codes of a stream.

    The law must be the same for both: a function of the codes.

    Parameters
    ----------
    grids, records
        As for `Codes`.
    """

    def __init__(self, grids: tuple[Grid, ...], records: Callable[[Any], Array] | None = None) -> None:
        def decoded(codes: Integers) -> Batch:
            columns = [grid.decode(column) for grid, column in zip(grids, codes.T, strict=True)]
            return Batch(columns[0] if records is None else np.stack(columns, axis=1), 1)

        super().__init__(grids, decoded, records)

    def of(self, values: Array, threads: int = 1) -> Batch:
        return Batch(values, threads)


class _Tally:
    """A table of counts of 64 bits, with one of 32 for the newest: kernels add to that faster."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self._added = 0

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def _counts(self) -> Integers:
        return np.zeros(self.shape, np.int64)

    @cached_property
    def _newest(self) -> NDArray[np.uint32]:
        return np.zeros(self.shape, np.uint32)

    @property
    def counts(self) -> Integers:
        """All counts. To be read only: nothing is changed by it, as another thread may read, too."""
        return self._counts + self._newest if self._added else self._counts

    def newest(self, n: int) -> NDArray[np.uint32]:
        """The table that n records more, at most `_PIECE`, are to be added to."""
        if self._added + n >= 2 * _PIECE:
            self._counts += self._newest
            self._newest[:] = 0
            self._added = 0
        self._added += n
        return self._newest

    def add(self, counts: Integers) -> None:
        """Counts of another table."""
        self._counts += counts

    def take(self, counts: Integers) -> None:
        """Counts of nobody else, in a table that has none. Not copied: zeros that are not touched take no memory."""
        self._counts = counts.reshape(self.shape)


class _Level(NamedTuple):
    """Tables of counts by one digit of the codes, a row for each cell of the level above that is looked into."""

    shift: int
    starts: Integers  # of each row: the first code,
    befores: Integers  # the records with lesser codes,
    expected: Integers  # and those that the row should count
    tally: _Tally  # of shape (rows, digits)

    def settled(self) -> Integers:
        """Counts that add up to those expected, as they do if all passes saw the same records.

        Else those that are too many are taken from the end of the row, and those that lack are counted at its start.
        """
        ends = np.minimum(np.cumsum(self.tally.counts, axis=1), self.expected[:, None])
        counts = np.diff(ends, axis=1, prepend=0)
        counts[:, 0] += self.expected - ends[:, -1]
        return counts


class _Cells(NamedTuple):
    """The cells of a level that hold a wanted rank, ascending: all that is kept of it when its pass is over."""

    places: Integers  # in the tables of the level, flat
    befores: Integers  # records with codes below those of the cell
    expected: Integers  # records of the cell

    @classmethod
    def of(cls, level: _Level, stretches: _Stretches) -> _Cells:
        counts = level.settled()
        befores = (level.befores[:, None] + np.cumsum(counts, axis=1) - counts).reshape(-1)
        counts = counts.reshape(-1)
        places = np.flatnonzero(stretches.meet(befores, counts))
        return cls(places, befores[places], counts[places])

    def check(self, level: _Level, stretches: _Stretches) -> None:
        """Raises a ValueError unless the cells ascend, apart, within their rows, and together hold all wanted ranks."""
        places, befores, expected = self
        inside = len(places) == len(befores) == len(expected) and np.all((places >= 0) & (places < level.tally.size))
        if not inside or np.any(places[1:] <= places[:-1]):
            raise ValueError(_DAMAGED)
        row, ends = places // level.tally.shape[1], befores + expected
        within = (befores >= level.befores[row]) & (ends <= level.befores[row] + level.expected[row])
        wanted = stretches.between(befores, ends)
        if not np.all(within & (wanted > 0)) or np.any(befores[1:] < ends[:-1]):
            raise ValueError(_DAMAGED)
        if np.sum(wanted) != np.sum(stretches.between(level.befores, level.befores + level.expected)):
            raise ValueError(_DAMAGED)


class _Stretches(NamedTuple):
    """Wanted ranks, from first to last: within 1..n, ascending and apart."""

    firsts: Integers
    lasts: Integers

    @classmethod
    def of(cls, wanted: Iterable[tuple[int, int]], n: int) -> _Stretches:
        inside = ((max(first, 1), min(last, n)) for first, last in wanted if first <= n and last >= 1)
        firsts, lasts = np.array(_joined_stretches(inside), np.int64).reshape(-1, 2).T
        return cls(firsts, lasts)

    def meet(self, befores: Integers, counts: Integers) -> NDArray[np.bool_]:
        """Which cells hold a wanted rank."""
        at = np.searchsorted(self.lasts, befores + 1)
        return (counts > 0) & (np.append(self.firsts, 2**62)[at] <= befores + counts)

    def between(self, befores: Integers, ends: Integers) -> Integers:
        """How many wanted ranks are greater than each of `befores`, and at most `ends`."""
        lasts, wanted = np.append(0, self.lasts), np.append(0, np.cumsum(self.lasts - self.firsts + 1))

        def up_to(ranks: Integers) -> Any:
            begun = np.searchsorted(self.firsts, ranks, side="right")
            return wanted[begun] - np.maximum(lasts[begun] - np.maximum(ranks, 0), 0)

        return np.asarray(up_to(ends) - up_to(befores))


class _Copied:
    """Cells whose codes are copied, in a pass: no more of them than the first pass counted."""

    def __init__(self, starts: Integers, befores: Integers, expected: Integers, width: int) -> None:
        self.starts, self.befores, self.expected, self.width = starts, befores, expected, width
        self.left = int(expected.sum())
        self.parts: list[Integers] = []

    @property
    def codes(self) -> Integers:
        return _joined(self.parts)

    def add(self, codes: Integers) -> None:
        held = codes[: self.left]
        if held.size:
            self.parts.append(held)
            self.left -= held.size


def _joined(parts: Iterable[Integers]) -> Integers:
    return np.concatenate([np.empty(0, np.int64), *parts])


_NO_MARKS = np.empty(0, np.uint8)


class Ranks(Reading):
    """Order statistics, and the sum of the codes between two of them, exactly and in bounded memory.

    Codes are counted by a digit of at most 18 leading bits. The cells of codes that hold wanted ranks are looked into
    in the next pass: the codes of a cell with few records are copied, a cell with many is counted by its next digit. Of
    the cells within a stretch of wanted ranks no more records are held than ranks are wanted, and at most two cells of
    a stretch reach beyond it, for each a table at the most. The number of passes is that of the digits: one for a grid
    of at most 2**18 points, two up to 2**36, else three.

    Parameters
    ----------
    grid : Grid
    wanted : callable
        The stretches of ranks, pairs (first, last), for n records; at most two, apart, if `sums`.
    finish : callable
        The summary, of an `Ordered`.
    sums : bool
        Whether the sum of the codes between the stretches is needed.
    """

    def __init__(
        self,
        grid: Grid,
        wanted: Callable[[int], Iterable[tuple[int, int]]],
        finish: Callable[[Ordered], Any],
        *,
        sums: bool = False,
    ) -> None:
        self._grid, self._wanted, self._finish, self._sums = grid, wanted, finish, sums
        self._bits = (grid.size - 1).bit_length()
        self.passes = -(-self._bits // _DIGIT)
        self._looked: list[_Cells] = []
        self._copied: list[_Copied] = []
        self._marks: list[tuple[NDArray[np.int32], int]] = []
        self._any = _NO_MARKS
        self._gap: _Gap | None = None
        self._clamped_sum = 0

    @cached_property
    def _level(self) -> _Level:
        """The tables of the present pass: in the first, one by the leading digit."""
        shift, first = self._shift(0), np.zeros(1, np.int64)
        return _Level(shift, first, first, first, _Tally((1, ((self._grid.size - 1) >> shift) + 1)))

    def _shift(self, level: int) -> int:
        return max(self._bits - (level + 1) * -(-self._bits // self.passes), 0)

    def _width(self) -> int:
        """The bits of the next digit."""
        return self._level.shift - self._shift(len(self._looked) + 1)

    def of(self, values: Array, threads: int = 1) -> Any:
        stretches = self._wanted(len(values)) if len(values) else []
        return self._finish(Selected.of(values, stretches, self._grid, sums=self._sums, threads=threads))

    def records(self, x: Any) -> Array:
        return _containers.vector("x", x)

    def add(self, values: Array, threads: int) -> None:
        for start in range(0, len(values), _PIECE):
            self._add(values[start : start + _PIECE], threads)
        if self._gap:
            self._clamped_sum += self._gap.clamped_sum(values, self._grid, threads)

    def _add(self, values: Array, threads: int) -> None:
        many = min(threads, len(values) // _THREAD)
        parts = [values] if many < 2 else np.array_split(values, many)
        newest, read = self._level.tally.newest(len(values)), self._refine if self._looked else self._count

        def add(part: Array) -> tuple[NDArray[np.uint32], Integers | None]:
            table = newest if many < 2 else np.zeros_like(newest)
            return table, read(part, table)

        for table, codes in each(add, parts, threads):
            if table is not newest:
                newest += table
            if codes is not None:
                self._copied[-1].add(codes)

    def _count(self, part: Array, table: NDArray[np.uint32]) -> None:
        _stream.count(part, table[0], self._level.shift, first=self._grid.first, **self._grid.kernel)

    def _refine(self, part: Array, table: NDArray[np.uint32]) -> Integers:
        room = np.empty(min(self._copied[-1].left, len(part)), np.int64)
        filled = _stream.refine(
            part, self._any, self._marks, table, room, self._level.shift, first=self._grid.first, **self._grid.kernel
        )
        return room[:filled].copy() if 2 * filled < room.size else room[:filled]

    def merge(self, other: Ranks) -> None:
        for mine, its in zip(self._looked, other._looked, strict=True):
            if not all(map(np.array_equal, mine, its)):
                raise ValueError("states that went on from different first passes do not merge")
        self._level.tally.add(other._level.tally.counts)
        for held, more in zip(self._copied[-1:], other._copied[-1:], strict=True):
            held.add(more.codes)
        self._clamped_sum += other._clamped_sum

    def advance(self, n: int) -> None:
        self._expect(n)
        self._look_into(_Cells.of(self._level, _Stretches.of(self._wanted(n), n)), n)

    def _expect(self, n: int) -> None:
        if not self._looked:
            self._level = self._level._replace(expected=np.array([n]))

    def _look_into(self, cells: _Cells, n: int) -> None:
        """In the next pass the codes of small cells are copied, and large ones are counted by their next digit."""
        level, width = self._level, self._width()
        rows, digits = level.tally.shape
        row, digit = np.divmod(cells.places, digits)
        starts = level.starts[row] + (digit << level.shift)
        _, befores, expected = cells
        few = expected <= 1 << width

        marks = np.zeros(rows * digits, np.int32)
        marks[cells.places[few]] = 1
        marks[cells.places[~few]] = 2 + np.arange(np.count_nonzero(~few))
        # What was copied before is not looked at again.
        self._marks = [(np.where(old > 1, old, 0).astype(np.int32), at) for old, at in self._marks]
        self._marks.append((marks.reshape(rows, digits), level.shift))
        self._any = (self._marks[0][0][0] != 0).view(np.uint8)
        self._looked.append(cells)
        self._copied.append(_Copied(starts[few], befores[few], expected[few], 1 << level.shift))
        tally = _Tally((int(np.count_nonzero(~few)), 1 << width))
        self._level = _Level(level.shift - width, starts[~few], befores[~few], expected[~few], tally)
        if self._sums and len(self._looked) == self.passes - 1:
            self._gap = _Gap.of(self._known(), n)

    def _known(self) -> tuple[Integers, ...]:
        """First code, last code, records before and records of the cells about which all is known in the end."""
        last = self._level
        width = 1 << self._marks[-1][1] if self._marks else self._grid.size
        rows = [(c.starts, c.starts + (c.width - 1), c.befores, c.expected) for c in self._copied]
        rows.append((last.starts, last.starts + (width - 1), last.befores, last.expected))
        columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
        order = np.argsort(columns[0])
        return tuple(column[order] for column in columns)

    def summary(self, n: int) -> Any:
        self._expect(n)
        last, counts = self._level, self._level.settled()
        row, digit = np.nonzero(counts)
        codes = _joined(part for held in self._copied for part in held.parts)
        codes.sort()
        weights = np.ones_like(codes)
        if row.size:
            counted = last.starts[row] + digit
            at = np.searchsorted(codes, counted)
            codes, weights = np.insert(codes, at, counted), np.insert(weights, at, counts[row, digit])
        order = Order.of(codes, weights, self._known(), n, self._grid)
        if self._gap:
            order = order._replace(between=self._gap.sum(self._clamped_sum))
        return self._finish(order)

    def pack(self) -> Any:
        looked = [list(cells) for cells in self._looked]
        copied = [held.codes for held in self._copied]
        return [looked, self._level.tally.counts.reshape(-1), copied, self._clamped_sum]

    def unpack(self, packed: Any, n: int, number: int) -> None:
        looked, counts, copied, clamped_sum = _items(packed, 4)
        earlier = min(number, self.passes) - 1
        for cells in _items(looked, earlier):
            self._expect(n)
            most = self._level.tally.size
            held = _Cells(*(_array(part, most) for part in _items(cells, 3)))
            held.check(self._level, _Stretches.of(self._wanted(n), n))
            digits = 1 << self._width()
            tables = np.count_nonzero(held.expected > digits)
            last = len(self._looked) + 1 == earlier
            if last and (not isinstance(counts, _Blob) or counts.size != tables * digits):
                raise ValueError(_DAMAGED)  # before there are so many tables
            self._look_into(held, n)
        tally = self._level.tally
        tally.take(_counts(counts, tally.size, n, exact=not earlier))
        for cells, codes in zip(self._copied, _items(copied, earlier), strict=True):
            cells.add(_codes(codes, self._grid, cells.left))
        self._clamped_sum = _whole(clamped_sum, n * (self._grid.size - 1))


class _Gap(NamedTuple):
    """The records between two stretches, whose codes are added up but not held."""

    low: int  # the last code below them
    high: int  # the first code above them
    below: int
    between: int
    above: int

    @classmethod
    def of(cls, cells: tuple[Integers, ...], n: int) -> _Gap | None:
        _, lasts, befores, expected = cells
        ends = befores + expected
        [at] = np.nonzero(befores[1:] > ends[:-1])
        if not at.size:
            return None
        i = int(at[0])
        below, above = int(ends[i]), n - int(befores[i + 1])
        return cls(int(lasts[i]), int(cells[0][i + 1]), below, n - below - above, above)

    def clamped_sum(self, values: Array, grid: Grid, threads: int) -> int:
        """The sum of the codes clamped to low..high."""
        low, high = grid.value(self.low), grid.value(self.high)
        total, _ = _select.moments(
            values, first=grid.first, low=low, high=high, squares=False, workers=threads, **grid.kernel
        )
        return total

    def sum(self, clamped_sum: int) -> int:
        """The sum between, within what it can be if all passes saw the same records."""
        total = clamped_sum - self.below * self.low - self.above * self.high
        return min(max(total, self.between * self.low), self.between * self.high)


class Ordered(Protocol):
    """The sorted codes of n records around the wanted ranks: `Selected` of an array, `Order` of a stream.

    Only wanted ranks may be asked for; of three stretches or more, only those in 1..n.
    """

    @property
    def n(self) -> int:
        """The number of records."""

    def window(self, first: int, last: int) -> Integers:
        """The codes of ranks first..last, with 0 for ranks below 1 and the greatest code for those above n."""

    def total(self, first: int, last: int) -> int:
        """The sum of the codes of ranks first..last."""


class Selected(NamedTuple):
    """Stretches of the order of an array: their codes, from ranks `firsts` on."""

    n: int
    firsts: list[int]
    stretches: list[Integers]
    between: int = 0  # the sum of the codes after the first stretch and before the second

    @classmethod
    def of(
        cls, values: Array, wanted: Iterable[tuple[int, int]], grid: Grid, *, sums: bool = False, threads: int = 1
    ) -> Selected:
        """The stretches that hold all wanted ranks, and the sum between two of them."""
        n, joined = len(values), _joined_stretches(wanted)
        if not joined:
            return cls(n, [], [])
        if len(joined) == 1:
            [(first, last)] = joined
            codes = _select.window(values, first, last, **grid.kernel, workers=threads)
            return cls(n, [first], [grid.encode(codes)])
        if len(joined) == 2:
            low, high, between = _select.windows(
                values, joined[0], joined[1], first=grid.first, sums=sums, **grid.kernel, workers=threads
            )
            return cls(n, [first for first, _ in joined], [grid.encode(low), grid.encode(high)], between)
        return cls(n, *_many(values, joined, grid, threads))

    def window(self, first: int, last: int) -> Integers:
        at = bisect.bisect_right(self.firsts, first) - 1
        start = first - self.firsts[at]
        return self.stretches[at][start : start + last - first + 1]

    def total(self, first: int, last: int) -> int:
        if len(self.stretches) == 1:
            return int(self.window(first, last).sum())
        low, high = self.stretches
        return int(low[first - self.firsts[0] :].sum()) + self.between + int(high[: last - self.firsts[1] + 1].sum())


def _joined_stretches(wanted: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches of ranks, ascending and apart."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(wanted):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined


def _many(
    values: Array, wanted: Iterable[tuple[int, int]], grid: Grid, threads: int
) -> tuple[list[int], list[Integers]]:
    """First ranks and codes of the stretches, cut to the ranks that there are."""
    firsts, lasts = _Stretches.of(wanted, len(values))
    found = grid.encode(_windows.windows(values, firsts, lasts, **grid.kernel, workers=threads))
    return firsts.tolist(), np.split(found, np.cumsum(lasts - firsts + 1)[:-1])


class Order(NamedTuple):
    """What is known of the sorted codes: entry i holds the ranks after ``ends[i] - counts[i]``, up to ``ends[i]``."""

    codes: Integers
    counts: Integers
    ends: Integers
    n: int
    last: int
    between: int = 0  # the sum of the codes of which no entry tells

    @classmethod
    def of(cls, codes: Integers, counts: Integers, cells: tuple[Integers, ...], n: int, grid: Grid) -> Order:
        """From ascending codes, with their counts, that lie in cells.

        If passes saw different records, those of a cell that are too many are left out from its end, and those that
        lack are counted at its start.
        """
        starts, _, befores, expected = cells
        edges = np.append(np.searchsorted(codes, starts), codes.size)
        edges[:1] = 0
        sizes, ends = np.diff(edges), np.cumsum(counts)
        found = np.diff(np.where(edges > 0, ends[edges - 1], 0)) if codes.size else np.zeros_like(expected)
        if not np.array_equal(found, expected):
            codes, counts, sizes = _reconciled(codes, counts, edges, found, cells)
            ends = np.cumsum(counts)
        ends += np.repeat(befores - (np.cumsum(expected) - expected), sizes)
        return cls(codes, counts, ends, n, grid.size - 1)

    def window(self, first: int, last: int) -> Integers:
        """The codes of ranks first..last, with 0 for ranks below 1 and the greatest code for those above n."""
        ranks = np.arange(first, last + 1)
        codes = self.codes[np.searchsorted(self.ends, np.clip(ranks, 1, self.n))]
        codes[ranks < 1] = 0
        codes[ranks > self.n] = self.last
        return codes

    def total(self, first: int, last: int) -> int:
        """The sum of the codes of ranks first..last; `between` is all of it that no entry tells. Below 2**63."""
        begins = self.ends - self.counts
        overlap = np.minimum(self.ends, last) - np.maximum(begins, first - 1)
        return int(np.sum(self.codes * np.maximum(overlap, 0))) + self.between


def _reconciled(
    codes: Integers, counts: Integers, edges: Integers, found: Integers, cells: tuple[Integers, ...]
) -> tuple[Integers, Integers, Integers]:
    """Codes and counts in their cells, as many as expected in each, and how many entries each has."""
    starts, lasts, _, expected = cells
    lacking = found < expected
    at, sizes = edges[:-1][lacking], np.diff(edges) + lacking
    codes = np.insert(codes, at, starts[lacking])
    counts = np.insert(counts, at, (expected - found)[lacking])
    held, most = np.maximum(found, expected), np.repeat(expected, sizes)
    within = np.cumsum(counts) - np.repeat(np.cumsum(held) - held, sizes)
    counts = np.minimum(within, most) - np.minimum(within - counts, most)
    return np.clip(codes, np.repeat(starts, sizes), np.repeat(lasts, sizes)), counts, sizes


class Columns(Reading):
    """A reading of each column.

    Parameters
    ----------
    reading : callable
        That of a column, by ``reading(j, d)``; of as many passes for any d.
    records : callable
        A chunk as numbers, of shape (m, d).
    check : callable
        Raises a ValueError for a d that the mechanism does not take.
    passes : int
    prepared : callable
        Maps the records one by one, by ``prepared(values, threads)``, before they are read.
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
            raise ValueError(f"chunks must have {len(self._columns)} columns as the first has, not {values.shape[1]}")
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
        self._number, d = number, len(_items(packed))
        if d:
            self._check(d)
        for j, part in enumerate(packed):  # a column is made when the one before is known to be right
            self._columns.append(self._reading(j, d))
            self._columns[j].unpack(part, n, number)


def columns_between(records: Array, start: int, stop: int) -> Iterator[tuple[int, Array]]:
    """The columns start..stop - 1 of an array of records, a few copied together where they are not contiguous."""
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
    """The columns that each thread reads."""
    parts = min(threads, count)
    return [range(count * i // parts, count * (i + 1) // parts) for i in range(parts)]


# ---- states ----


class Streamed(Protocol):
    """The part of `dpfast.Mechanism` that a state uses."""

    _ticket: Ticket | None

    @property
    def privacy_profile(self) -> PrivacyProfile: ...

    def reading(self) -> Reading: ...

    def law_of(self, summary: Any) -> Law: ...

    def check_records(self, n: int) -> int: ...

    def drawn(
        self, law: Callable[[], Law], size: SupportsIndex | tuple[SupportsIndex, ...] | None, rng: RandomSource
    ) -> Any: ...


class State:
    """What a mechanism has read of a stream so far: mergeable, serialisable, PRIVATE. Made by ``mechanism.start()``.

    A state reads chunks in one or more passes, each over the same records. States that read different chunks in the
    same pass are merged, in any order; the merged one goes on to the next pass, and its copies read in that.

    Attributes
    ----------
    mechanism : Mechanism
    passes : int
        The number of passes: public, a function of the mechanism's parameters only.
    number : int
        The present pass, from 1.
    n : int
        Records read in the present pass (of `Count`, those that count): as public as the number of records is.

    Notes
    -----
    Privacy: a state, and its bytes, are private data, like the records: only what `release` returns is a release, and
    each one spends the budget of ``mechanism.privacy``. A state is no secret sharing and holds no noise.
    The passes must see the same records. If one sees a different number of them, that is a ValueError; if it sees as
    many but others, there is no error: the counts of the first pass stand, records beyond them in a cell of codes are
    left out, those that lack count at the least code of the cell, and sums are clamped to what they can be. The
    guarantee is about passes over the same records: there is none then.
    A state is not safe to use from several threads at once; `workers` are.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100), epsilon=1.0)
    >>> state, chunks = mechanism.start(), np.split(np.random.default_rng(0).normal(50, 10, 100_000), 10)
    >>> state.passes
    2
    >>> for chunk in chunks:
    ...     state.update(chunk)
    >>> state.next_pass()
    >>> for chunk in chunks:
    ...     state.update(chunk)
    >>> 49 < state.release() < 51
    True
    """

    def __init__(self, mechanism: Streamed) -> None:
        self.mechanism = mechanism
        self.number, self.n = 1, 0
        self._reading = mechanism.reading()
        self._records: int | None = None  # those of the first pass, when it is over

    @property
    def passes(self) -> int:
        """The number of passes. Public."""
        return self._reading.passes

    def __repr__(self) -> str:
        return f"<State of pass {self.number} of {self.passes}, private, for {self.mechanism!r}>"

    def update(self, chunk: Any, *, workers: int = 1) -> None:
        """Read a chunk of records in the present pass.

        Parameters
        ----------
        chunk : array_like of shape (m,) or (m, d)
            As the mechanism takes them; m = 0 will do.
        workers : int
            Threads that read the data, -1 for one per core; the result does not depend on it.
        """
        threads = _checks.threads(workers)
        values = self._reading.records(chunk)
        if len(values) or values.ndim > 1:
            self._reading.add(values, threads)
        self.n += len(values)

    def read(self, chunks: Iterable[Any], *, workers: int = 1) -> State:
        """Read chunks in this pass and in all that follow; the state itself, ready for `release`."""
        while True:
            for chunk in chunks:
                self.update(chunk, workers=workers)
            if self.number == self.passes:
                return self
            self.next_pass()

    def merge(self, other: State) -> None:
        """Add what another state of the same mechanism has read in the same pass.

        Raises
        ------
        TypeError, ValueError
            No state; a state of another mechanism, or of one that cannot be told from it since it has another function
            without a name (`to_bytes`); one of another pass, or whose earlier passes found other
            records around the wanted ranks.
        """
        if not isinstance(other, State):
            raise TypeError(f"a state merges with a state, not with {type(other).__name__}")
        if other is self:
            raise ValueError("a state does not merge with itself: its records would count twice")
        if other.mechanism != self.mechanism and _fingerprint(other.mechanism) != _fingerprint(self.mechanism):
            raise ValueError("states of different mechanisms do not merge")
        if other.number != self.number:
            raise ValueError(f"states of pass {self.number} and pass {other.number} do not merge")
        if other._records != self._records:
            raise ValueError(f"states of {self._records} and {other._records} records do not merge")
        if self.n + other.n > _MOST_RECORDS:
            raise ValueError("states of more than 2**62 records together do not merge")
        self._reading.merge(other._reading)
        self.n += other.n

    def next_pass(self) -> None:
        """Go on to the next pass, in which all records are read again.

        Raises
        ------
        ValueError
            After the last pass, with no records, or with another number of records than in the first pass.
        """
        if self.number == self.passes:
            raise ValueError(f"pass {self.number} is the last: release")
        self._records = self._all_records()
        self._reading.advance(self._records)
        self.number, self.n = self.number + 1, 0

    @property
    def _ticket(self) -> Ticket | None:
        return self.mechanism._ticket

    @refused(LAW)
    def law(self) -> Law:
        """The exact law of the release, after the last pass. PRIVATE."""
        return self._made()

    @refused(EXACT)
    def summary(self) -> Any:
        """What the law is made of, after the last pass. PRIVATE."""
        self._check_last()
        return self._reading.summary(self._all_records())

    def _check_last(self) -> None:
        if self.number != self.passes:
            raise ValueError(f"pass {self.number} of {self.passes}: call next_pass, and read the records again")

    def _made(self) -> Law:
        return self.mechanism.law_of(self.summary())

    def release(
        self, *, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None
    ) -> Any:
        """A release, after the last pass: it spends the budget, each time, as ``mechanism.release`` of all records.

        Parameters
        ----------
        size, rng
            As for `Mechanism.release`: the same releases for the same generator.
        """
        shape = _checks.shape(size)
        bit_generator(rng)
        self._check_last()  # what is wrong without the data costs nothing
        profile, label = self.mechanism.privacy_profile, repr(self.mechanism)
        with spending(profile, times=math.prod(shape), label=label, of=self):
            return self.mechanism.drawn(self._made, size, rng)

    def _all_records(self) -> int:
        if self._records is None:
            return self.mechanism.check_records(self.n)
        if self.n != self._records:
            raise ValueError(
                f"pass {self.number} read {self.n} records, the first pass {self._records}: chunks must be "
                f"the same in all passes"
            )
        return self._records

    # On the wire: docs/guides/streaming.md tells the layout.

    def to_bytes(self) -> bytes:
        """The state for another process or machine: a documented, versioned format without pickle. PRIVATE.

        Raises
        ------
        TypeError
            A mechanism with a function that its module does not know by name: a lambda or a local function, of which
            the bytes could not tell one from another.
        """
        blobs: list[bytes] = []
        header = {
            "mechanism": _fingerprint(self.mechanism),
            "pass": self.number,
            "n": self.n,
            "records": self._records,
            "held": _described(self._reading.pack(), blobs),
        }
        text = json.dumps(header, separators=(",", ":")).encode()
        body = b"".join([struct.pack("<Q", len(text)), text, *blobs])
        return _MAGIC + struct.pack("<HI", _VERSION, zlib.crc32(body)) + body

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, mechanism: Streamed) -> State:
        """The state that `to_bytes` made, for the same mechanism.

        Raises
        ------
        ValueError
            Damaged bytes, bytes of another version of the format, or the state of another mechanism.
        """
        header, held = _opened(bytes(data))
        state = cls(mechanism)
        if header.get("mechanism") != _fingerprint(mechanism):
            raise ValueError(f"the state of another mechanism than {mechanism!r}")
        number, n, records = (header.get(name) for name in ("pass", "n", "records"))
        state.number, state.n = _whole(number, state.passes), _whole(n, _MOST_RECORDS)
        if state.number < 1 or (records is None) != (state.number == 1):
            raise ValueError(_DAMAGED)
        first = state.n
        if records is not None:
            first = state._records = _whole(records, _MOST_RECORDS)
            mechanism.check_records(first)
        state._reading.unpack(held, first, state.number)
        return state

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.to_bytes(), self.mechanism)


def _restored(data: bytes, mechanism: Streamed) -> State:
    return State.from_bytes(data, mechanism)


_MAGIC = b"dpfast\x00S"
_VERSION = 2
_MOST_RECORDS = 2**62
_MOST_SPARSE = 2**22  # entries: what few bytes can stand for in memory
_MOST_DEEP = 8  # lists in lists
_DAMAGED = "damaged bytes: not a state of dpfast"
_HEAD = len(_MAGIC) + 6


class _Blob(NamedTuple):
    """An array of int64 on the wire: `size` entries, all of them or those that are not 0 with their places."""

    size: int
    places: Integers | None
    entries: Integers


def _described(node: Any, blobs: list[bytes]) -> Any:
    """A packed tree as JSON, its arrays moved to blobs."""
    if isinstance(node, list):
        return [_described(part, blobs) for part in node]
    if not isinstance(node, np.ndarray):
        return node
    places = np.flatnonzero(node)
    sparse = 2 * places.size < node.size <= _MOST_SPARSE
    for part in (places, node[places]) if sparse else (node,):
        blobs.append(part.astype("<i8").tobytes())
    return {"size": node.size, "entries": places.size if sparse else None}


def _opened(data: bytes) -> tuple[dict[str, Any], Any]:
    """The header, and the tree that was packed with `_Blob` for each array."""
    if data[: len(_MAGIC)] != _MAGIC or len(data) < _HEAD + 8:
        raise ValueError(_DAMAGED)
    version, check = struct.unpack("<HI", data[len(_MAGIC) : _HEAD])
    if version != _VERSION:
        raise ValueError(f"a state of format {version}: this version of dpfast reads format {_VERSION}")
    body = data[_HEAD:]
    if zlib.crc32(body) != check:
        raise ValueError(_DAMAGED)
    (length,) = struct.unpack("<Q", body[:8])
    try:
        header = json.loads(body[8 : 8 + length])
    except (ValueError, RecursionError):
        raise ValueError(_DAMAGED) from None
    if not isinstance(header, dict):
        raise ValueError(_DAMAGED)
    blobs = _Blobs(body[8 + length :])
    held = blobs.tree(header.get("held"))
    if blobs.left:
        raise ValueError(_DAMAGED)
    return header, held


class _Blobs:
    """The arrays after the header, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def _next(self, size: int) -> Integers:
        if 8 * size > self.left:
            raise ValueError(_DAMAGED)
        part = np.frombuffer(self._data, "<i8", size, self._at).astype(np.int64)
        self._at += 8 * size
        return part

    def tree(self, node: Any, depth: int = 0) -> Any:
        if depth > _MOST_DEEP:
            raise ValueError(_DAMAGED)
        if isinstance(node, list):
            return [self.tree(part, depth + 1) for part in node]
        if not isinstance(node, dict):
            return node
        entries = node.get("entries")
        size = _whole(node.get("size"), len(self._data) if entries is None else _MOST_SPARSE)
        if entries is None:
            return _Blob(size, None, self._next(size))
        entries = _whole(entries, size)
        return _Blob(size, self._next(entries), self._next(entries))


def _items(node: Any, count: int | None = None) -> list[Any]:
    if not isinstance(node, list) or (count is not None and len(node) != count):
        raise ValueError(_DAMAGED)
    return node


def _whole(node: Any, most: int) -> int:
    if type(node) is not int or not 0 <= node <= most:
        raise ValueError(_DAMAGED)
    return node


def _array(node: Any, most: int) -> Integers:
    """An array of at most so many entries; nothing is allocated before its size is known to be right."""
    if not isinstance(node, _Blob) or node.size > most:
        raise ValueError(_DAMAGED)
    if node.places is None:
        return node.entries
    places = node.places
    if np.any((places < 0) | (places >= node.size)) or np.any(places[1:] <= places[:-1]):
        raise ValueError(_DAMAGED)
    array = np.zeros(node.size, np.int64)
    array[places] = node.entries
    return array


def _counts(node: Any, size: int, n: int, *, exact: bool = True) -> Integers:
    """Counts that add up to n; to anything that fits 64 bits, if not `exact`."""
    counts = _array(node, size)
    if counts.size != size or np.any(counts < 0) or np.sum(counts, dtype=np.float64) > 2.0**62:
        raise ValueError(_DAMAGED)
    if exact and int(counts.sum()) != n:
        raise ValueError(_DAMAGED)
    return counts


def _codes(node: Any, grid: Grid, most: int, exactly: int | None = None) -> Integers:
    """At most so many codes of a grid."""
    codes = _array(node, most)
    if np.any((codes < 0) | (codes >= grid.size)) or exactly not in (None, codes.size):
        raise ValueError(_DAMAGED)
    return codes


def _fingerprint(mechanism: Streamed) -> str:
    """A digest of the kind and the public parameters of a mechanism; a TypeError for functions without a name."""
    return hashlib.sha256(repr(_named(mechanism)).encode()).hexdigest()[:32]


def _named(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value) if f.init or f.compare]
        return [type(value).__qualname__, *((name, _named(getattr(value, name))) for name in fields)]
    if isinstance(value, (tuple, list)):
        return [_named(part) for part in value]
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, hashlib.sha256(np.ascontiguousarray(value)).hexdigest()]
    if callable(value):
        return _name(value)
    return [type(value).__name__, repr(value)]


def _name(function: Any) -> list[str]:
    """The module and the name of a function, by which it can be told from all others there."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    for part in name.split(".") if isinstance(name, str) else [""]:
        found = getattr(found, part, None)
    if found is not function:
        raise TypeError(
            "a state with a function that has no name in its module (a lambda, a local function, an object that is "
            "called) has no bytes: define it with `def` in a module"
        )
    return [str(module), str(name)]
