"""The reading of order statistics around public ranks, and of the sum between two ranks, in one to three passes."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _select, _stream, _windows
from dpfast._kernels._threads import each
from dpfast.core import containers
from dpfast.core.grid import Grid, Points

if TYPE_CHECKING:
    pass
from dpfast.streaming.reading import Array, Reading, weighted_sum
from dpfast.streaming.wire import DAMAGED, Blob, Integers, read_array, read_codes, read_counts, read_items, read_whole

_DIGIT = 18  # bits of a code that one pass counts: 3 MB of 64-bit and 32-bit counts
_THREAD = 2**18  # records for which a thread pays off
_CONVERTED = 2**15  # records that are converted to codes at once
_PIECE = 2**31  # maximum number of records added at once: half the range of 32-bit counts


class _Tally:
    """A table of 64-bit counts, with a 32-bit table for the newest counts, to which kernels add faster."""

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
        """All counts, read-only. The property changes no state, since other threads may read, too."""
        return self._counts + self._newest if self._added else self._counts

    def newest(self, n: int) -> NDArray[np.uint32]:
        """Return the table to which to add the next n records, at most `_PIECE`."""
        if self._added + n >= 2 * _PIECE:
            self._counts += self._newest
            self._newest[:] = 0
            self._added = 0
        self._added += n
        return self._newest

    def add(self, counts: Integers) -> None:
        """Add the counts of another table."""
        self._counts += counts

    def add_at(self, rows: Integers, digits: Integers, counts: Integers) -> None:
        """Add counts to the entries at these places."""
        np.add.at(self._counts.reshape(-1), rows * self.shape[1] + digits, counts)

    def take(self, counts: Integers) -> None:
        """Set the counts of an empty table. Takes ownership without a copy: untouched zeros take no memory."""
        self._counts = counts.reshape(self.shape)


class _Level(NamedTuple):
    """Tables of counts by one digit of the codes, with a row for each refined cell of the level above."""

    shift: int
    starts: Integers  # the first code of each row
    befores: Integers  # the number of records with smaller codes
    expected: Integers  # the number of records that the row should count
    tally: _Tally  # of shape (rows, digits)

    def settled(self) -> Integers:
        """Return the counts that sum to the expected number in each row, unchanged if all passes saw the same records.

        Otherwise surplus counts are removed from the end of the row and missing ones are added at its start.
        """
        ends = np.minimum(np.cumsum(self.tally.counts, axis=1), self.expected[:, None])
        counts = np.diff(ends, axis=1, prepend=0)
        counts[:, 0] += self.expected - ends[:, -1]
        return counts


class _WantedCells(NamedTuple):
    """The cells of a level that hold a wanted rank, in ascending order; after a pass only these are kept."""

    places: Integers  # flat indices into the tables of the level
    befores: Integers  # the number of records with codes below the cell
    expected: Integers  # the number of records in the cell

    @classmethod
    def of(cls, level: _Level, stretches: _Stretches) -> _WantedCells:
        counts = level.settled()
        befores = (level.befores[:, None] + np.cumsum(counts, axis=1) - counts).reshape(-1)
        counts = counts.reshape(-1)
        places = np.flatnonzero(stretches.meet(befores, counts))
        return cls(places, befores[places], counts[places])

    def check(self, level: _Level, stretches: _Stretches) -> None:
        """Raise a ValueError unless the cells are ascending, disjoint, inside their rows, and hold all wanted ranks."""
        places, befores, expected = self
        inside = len(places) == len(befores) == len(expected) and np.all((places >= 0) & (places < level.tally.size))
        if not inside or np.any(places[1:] <= places[:-1]):
            raise ValueError(DAMAGED)
        row, ends = places // level.tally.shape[1], befores + expected
        within = (befores >= level.befores[row]) & (ends <= level.befores[row] + level.expected[row])
        wanted = stretches.between(befores, ends)
        if not np.all(within & (wanted > 0)) or np.any(befores[1:] < ends[:-1]):
            raise ValueError(DAMAGED)
        if np.sum(wanted) != np.sum(stretches.between(level.befores, level.befores + level.expected)):
            raise ValueError(DAMAGED)


class _Stretches(NamedTuple):
    """Stretches of wanted ranks, from first to last: within 1..n, ascending and not adjacent."""

    firsts: Integers
    lasts: Integers

    @classmethod
    def of(cls, wanted: Iterable[tuple[int, int]], n: int) -> _Stretches:
        return cls.of_joined(_joined_stretches(wanted), n)

    @classmethod
    def of_joined(cls, joined: list[tuple[int, int]], n: int) -> _Stretches:
        firsts, lasts = np.array(joined, np.int64).reshape(-1, 2).T
        inside = (firsts <= n) & (lasts >= 1)
        return cls(np.maximum(firsts[inside], 1), np.minimum(lasts[inside], n))

    def meet(self, befores: Integers, counts: Integers) -> NDArray[np.bool_]:
        """Return a mask of the cells that hold a wanted rank."""
        at = np.searchsorted(self.lasts, befores + 1)
        return (counts > 0) & (np.append(self.firsts, 2**62)[at] <= befores + counts)

    def between(self, befores: Integers, ends: Integers) -> Integers:
        """Return the number of wanted ranks greater than each of `befores` and at most `ends`."""
        lasts, wanted = np.append(0, self.lasts), np.append(0, np.cumsum(self.lasts - self.firsts + 1))

        def up_to(ranks: Integers) -> Any:
            begun = np.searchsorted(self.firsts, ranks, side="right")
            return wanted[begun] - np.maximum(lasts[begun] - np.maximum(ranks, 0), 0)

        return np.asarray(up_to(ends) - up_to(befores))


class _Copied:
    """The cells whose codes a pass copies, never more codes than the previous pass counted."""

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

    def repeat(self, codes: Integers, counts: Integers) -> None:
        """Add each code as often as it is counted."""
        self.add(np.repeat(codes, np.diff(np.minimum(np.cumsum(counts), self.left), prepend=0)))


def _joined(parts: Iterable[Integers]) -> Integers:
    return np.concatenate([np.empty(0, np.int64), *parts])


_NO_MARKS = np.empty(0, np.uint8)


class Ranks(Reading):
    """Exact order statistics, and the sum of the codes between two of them, in bounded memory.

    The first pass counts codes by a digit of at most 18 leading bits. The next pass refines the cells of codes that
    hold wanted ranks: it copies the codes of a cell with few records, and counts a cell with many by the next digit.
    The cells inside a stretch of wanted ranks hold at most as many records as there are wanted ranks; at most two cells
    per stretch extend beyond it, and each needs at most one table. There is one pass per digit: one for a grid of at
    most 2**18 points, two up to 2**36, else three.

    Parameters
    ----------
    grid : Points
    wanted : callable
        ``wanted(n)`` returns the stretches of ranks, pairs (first, last); with `sums` at most two, not overlapping.
    finish : callable
        Makes the summary from an `Ordered`.
    sums : bool
        Whether the sum of the codes between the stretches is needed.
    """

    joins = True

    def __init__(
        self,
        grid: Points,
        wanted: Callable[[int], Iterable[tuple[int, int]]],
        finish: Callable[[Ordered], Any],
        *,
        sums: bool = False,
    ) -> None:
        self._grid, self.wanted, self._finish, self.sums = grid, wanted, finish, sums
        self._bits = (grid.size - 1).bit_length()
        self.passes = -(-self._bits // _DIGIT)
        self._looked: list[_WantedCells] = []
        self._copied: list[_Copied] = []
        self._marks: list[tuple[NDArray[np.int32], int]] = []
        self._any = _NO_MARKS
        self._gap: _Gap | None = None
        self._clamped_sum = 0

    @cached_property
    def _level(self) -> _Level:
        """The tables of the current pass; in the first pass a single row, by the leading digit."""
        shift, first = self._shift(0), np.zeros(1, np.int64)
        return _Level(shift, first, first, first, _Tally((1, ((self._grid.size - 1) >> shift) + 1)))

    def _shift(self, level: int) -> int:
        return max(self._bits - (level + 1) * -(-self._bits // self.passes), 0)

    def _width(self) -> int:
        """Return the number of bits of the next digit."""
        return self._level.shift - self._shift(len(self._looked) + 1)

    def of(self, values: Array, threads: int = 1) -> Any:
        stretches = self.wanted(len(values)) if len(values) else []
        return self._finish(Selected.of(values, stretches, self._grid, sums=self.sums, threads=threads))

    def of_counted(self, values: Array, counts: Integers) -> tuple[int, Any]:
        """Sort the codes, which are few: tables of 2**18 counts would take a millisecond."""
        codes = self._grid.encode(values)
        order = np.argsort(codes, kind="stable")
        codes, counts = codes[order], counts[order]
        n = int(counts.sum())
        return n, self._finish(Order(codes, counts, np.cumsum(counts), n, self._grid.size - 1))

    def records(self, x: Any) -> Any:
        return containers.column("x", x)

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

    def add_counted(self, values: Array, counts: Integers) -> int:
        codes, n, level = self._grid.encode(values), int(counts.sum()), self._level
        if self._gap:
            self._clamped_sum += weighted_sum(np.clip(codes, self._gap.low, self._gap.high), counts)
        row, rest = np.zeros(len(codes), np.int64), codes  # the place of each code among the cells of a level
        for marks, shift in self._marks:
            mark = marks[row, rest >> shift]
            self._copied[-1].repeat(codes[mark == 1], counts[mark == 1])
            inside = mark > 1
            codes, counts, row = codes[inside], counts[inside], mark[inside] - 2
            rest = rest[inside] & ((1 << shift) - 1)
        level.tally.add_at(row, rest >> level.shift, counts)
        return n

    def _count(self, part: Array, table: NDArray[np.uint32]) -> None:
        for grid, values in self._evenly(part):
            _stream.count(values, table[0], self._level.shift, first=grid.first, **grid.kernel)

    def _refine(self, part: Array, table: NDArray[np.uint32]) -> Integers:
        room = np.empty(min(self._copied[-1].left, len(part)), np.int64)
        filled, marks, shift = 0, self._marks, self._level.shift
        for grid, values in self._evenly(part):
            left = room[filled:]
            filled += _stream.refine(values, self._any, marks, table, left, shift, first=grid.first, **grid.kernel)
        return room[:filled].copy() if 2 * filled < room.size else room[:filled]

    def _evenly(self, part: Array) -> Iterator[tuple[Grid, Array]]:
        """Yield the records as the kernels of codes read them: on a grid of floats, converted in pieces that fit a
        cache.
        """
        if isinstance(self._grid, Grid):
            yield self._grid, part
            return
        room = np.empty(min(len(part), _CONVERTED))
        for start in range(0, len(part), _CONVERTED):
            piece = part[start : start + _CONVERTED]
            yield self._grid.evenly(piece, room[: len(piece)])

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
        self._look_into(_WantedCells.of(self._level, _Stretches.of(self.wanted(n), n)), n)

    def _expect(self, n: int) -> None:
        if not self._looked:
            self._level = self._level._replace(expected=np.array([n]))

    def _look_into(self, cells: _WantedCells, n: int) -> None:
        """Prepare the next pass, which copies the codes of small cells and counts large cells by their next digit."""
        level, width = self._level, self._width()
        rows, digits = level.tally.shape
        row, digit = np.divmod(cells.places, digits)
        starts = level.starts[row] + (digit << level.shift)
        _, befores, expected = cells
        few = expected <= 1 << width

        marks = np.zeros(rows * digits, np.int32)
        marks[cells.places[few]] = 1
        marks[cells.places[~few]] = 2 + np.arange(np.count_nonzero(~few))
        # Cells copied in an earlier pass are skipped.
        self._marks = [(np.where(old > 1, old, 0).astype(np.int32), at) for old, at in self._marks]
        self._marks.append((marks.reshape(rows, digits), level.shift))
        self._any = (self._marks[0][0][0] != 0).view(np.uint8)
        self._looked.append(cells)
        self._copied.append(_Copied(starts[few], befores[few], expected[few], 1 << level.shift))
        tally = _Tally((int(np.count_nonzero(~few)), 1 << width))
        self._level = _Level(level.shift - width, starts[~few], befores[~few], expected[~few], tally)
        if self.sums and len(self._looked) == self.passes - 1:
            self._gap = _Gap.of(self._known(), n)

    def _known(self) -> tuple[Integers, ...]:
        """Return the first code, last code, records before and records in each cell that is fully known in the end."""
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
        looked, counts, copied, clamped_sum = read_items(packed, 4)
        earlier = min(number, self.passes) - 1
        for cells in read_items(looked, earlier):
            self._expect(n)
            most = self._level.tally.size
            held = _WantedCells(*(read_array(part, most) for part in read_items(cells, 3)))
            held.check(self._level, _Stretches.of(self.wanted(n), n))
            digits = 1 << self._width()
            tables = np.count_nonzero(held.expected > digits)
            last = len(self._looked) + 1 == earlier
            if last and (not isinstance(counts, Blob) or counts.size != tables * digits):
                raise ValueError(DAMAGED)  # before allocating so many tables
            self._look_into(held, n)
        tally = self._level.tally
        tally.take(read_counts(counts, tally.size, n, exact=not earlier))
        for cells, codes in zip(self._copied, read_items(copied, earlier), strict=True):
            cells.add(read_codes(codes, self._grid, cells.left))
        self._clamped_sum = read_whole(clamped_sum, n * (self._grid.size - 1))


class PresentRanks(Ranks):
    """Order statistics of records of which some are missing: these count as an end of the grid, the least point unless
    the grid says otherwise, and their number, private unlike that of all, decides which ranks are wanted. Without sums.

    Parameters
    ----------
    grid : Points
    wanted : callable
        ``wanted(n, absent)`` returns the stretches of ranks among all n records, of which so many are missing.
    finish : callable
        ``finish(order, absent)`` makes the summary.
    """

    def __init__(
        self,
        grid: Points,
        wanted: Callable[[int, int], Iterable[tuple[int, int]]],
        finish: Callable[[Ordered, int], Any],
    ) -> None:
        super().__init__(grid, lambda n: wanted(n, self._absent), lambda order: finish(order, self._absent))
        self._absent = 0  # the number of missing records in the first pass

    @classmethod
    def of_the_rest(cls, ranks: Ranks, empty: Any) -> PresentRanks:
        """Return the reading of what `ranks` reads of the records that are not missing; `empty` if all are."""

        def wanted(n: int, absent: int) -> list[tuple[int, int]]:
            stretches = ranks.wanted(n - absent) if n > absent else []
            return [(first + absent, last + absent) for first, last in stretches]

        def finish(order: Ordered, absent: int) -> Any:
            return ranks._finish(_Rest(order, absent)) if order.n > absent else empty

        return cls(ranks._grid, wanted, finish)

    def of(self, values: Array, threads: int = 1) -> Any:
        if not len(values):
            return super().of(values, threads)
        found = Selected.if_none_is_missing(values, self.wanted(len(values)), self._grid, threads=threads)
        if found is not None:
            return self._finish(found)
        self._absent = absent_in(values)
        return super().of(values, threads)

    def of_counted(self, values: Array, counts: Integers) -> tuple[int, Any]:
        return super().of_counted(self._present(values, counts), counts)

    def add(self, values: Array, threads: int) -> None:
        super().add(values, threads)
        self._count_absent(absent_in(values))

    def add_counted(self, values: Array, counts: Integers) -> int:
        return super().add_counted(self._present(values, counts), counts)

    def _present(self, values: Array, counts: Integers) -> Array:
        """Return the values with a point for missing ones, which are counted."""
        if values.dtype.kind != "f":
            return values
        absent = np.isnan(values)
        self._count_absent(int(counts[absent].sum()))
        return np.where(absent, self._grid.nan_value, values)

    def _count_absent(self, n: int) -> None:
        self._absent += 0 if self._looked else n

    def merge(self, other: Ranks) -> None:
        assert isinstance(other, PresentRanks)
        super().merge(other)
        self._count_absent(other._absent)

    def pack(self) -> Any:
        return [self._absent, super().pack()]

    def unpack(self, packed: Any, n: int, number: int) -> None:
        absent, held = read_items(packed, 2)
        self._absent = read_whole(absent, n)
        super().unpack(held, n, number)


def absent_in(values: Array) -> int:
    """Return the number of missing records: if there are some, they are counted in parts that fit a cache."""
    if values.dtype.kind != "f" or not len(values):
        return 0
    with np.errstate(invalid="ignore"):  # a signalling NaN
        if isinstance(values, np.ndarray) and not math.isnan(np.minimum.reduce(values)):
            return 0
    starts = range(0, len(values), _CONVERTED)
    return sum(int(np.count_nonzero(np.isnan(values[start : start + _CONVERTED]))) for start in starts)


class _Rest(NamedTuple):
    """The records that are not missing: those after the first ones, which are."""

    order: Ordered
    absent: int

    @property
    def n(self) -> int:
        return self.order.n - self.absent

    def window(self, first: int, last: int) -> Integers:
        return self.order.window(first + self.absent, last + self.absent)

    def total(self, first: int, last: int) -> int:
        return self.order.total(first + self.absent, last + self.absent)


class _Gap(NamedTuple):
    """The records between two stretches, whose codes are summed but not kept."""

    low: int  # the last code below the gap
    high: int  # the first code above the gap
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

    def clamped_sum(self, values: Array, grid: Points, threads: int) -> int:
        """Return the sum of the codes clamped to low..high."""
        low, high = grid.value(self.low), grid.value(self.high)
        total, *_ = _select.moments(
            values, first=grid.first, low=low, high=high, squares=False, absent=False, workers=threads, **grid.kernel
        )
        return total

    def sum(self, clamped_sum: int) -> int:
        """Return the sum of the codes in the gap, clamped to the values possible if all passes saw the same records."""
        total = clamped_sum - self.below * self.low - self.above * self.high
        return min(max(total, self.between * self.low), self.between * self.high)


class Ordered(Protocol):
    """The sorted codes of n records around the wanted ranks: `Selected` of an array, `Order` of a stream.

    Only wanted ranks are available; with three stretches or more, only wanted ranks in 1..n.
    """

    @property
    def n(self) -> int:
        """The number of records."""

    def window(self, first: int, last: int) -> Integers:
        """Return the codes of ranks first..last, with 0 for ranks below 1 and the greatest code for those above n."""

    def total(self, first: int, last: int) -> int:
        """Return the sum of the codes of ranks first..last."""


class Selected(NamedTuple):
    """Stretches of the sorted codes of an array, starting at the ranks `firsts`."""

    n: int
    firsts: list[int]
    stretches: list[Integers]
    between: int = 0  # the sum of the codes after the first stretch and before the second

    @classmethod
    def of(
        cls, values: Array, wanted: Iterable[tuple[int, int]], grid: Points, *, sums: bool = False, threads: int = 1
    ) -> Selected:
        """Return the stretches that hold all wanted ranks, and the sum between two of them."""
        found = cls._found(values, wanted, grid, grid.kernel, sums=sums, threads=threads)
        assert found is not None
        return found

    @classmethod
    def if_none_is_missing(
        cls, values: Array, wanted: Iterable[tuple[int, int]], grid: Points, *, threads: int = 1
    ) -> Selected | None:
        """Return the stretches of at least one record, or None if some are missing.

        The selection sees them: a pass that looks for them before takes a quarter of its time.
        """
        return cls._found(values, wanted, grid, {**grid.kernel, "missing": math.nan}, sums=False, threads=threads)

    @classmethod
    def _found(
        cls,
        values: Array,
        wanted: Iterable[tuple[int, int]],
        grid: Points,
        kernel: dict[str, float],
        *,
        sums: bool,
        threads: int,
    ) -> Selected | None:
        """Return the stretches; None if there are missing records, and NaN stands for them."""
        n, joined = len(values), _joined_stretches(wanted)
        if not joined:
            return cls(n, [], [])
        if len(joined) == 1:
            [(first, last)] = joined
            keys: Any = _select.window(values, first, last, **kernel, workers=threads)
            return None if isinstance(keys, int) else cls(n, [first], [grid.encode(keys)])
        if len(joined) == 2:
            low, high = joined
            pair = _select.windows(values, low, high, first=grid.first, sums=sums, workers=threads, **kernel)
            return pair and cls(n, [low[0], high[0]], [grid.encode(window) for window in pair[:2]], pair[2])
        firsts, lasts = _Stretches.of_joined(joined, n)  # cut to the ranks 1..n
        windows = _windows.windows(values, firsts, lasts, **kernel, workers=threads)
        if windows is None:
            return None
        codes, ends = grid.encode(windows), (lasts - firsts + 1).cumsum().tolist()
        return cls(n, firsts.tolist(), [codes[start:end] for start, end in zip([0, *ends], ends, strict=False)])

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
    """Merge overlapping and adjacent stretches of ranks; return them in ascending order."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(wanted):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined


class Order(NamedTuple):
    """The known sorted codes: entry i holds the ranks from ``ends[i] - counts[i] + 1`` to ``ends[i]``."""

    codes: Integers
    counts: Integers
    ends: Integers
    n: int
    last: int
    between: int = 0  # the sum of the codes without an entry

    @classmethod
    def of(cls, codes: Integers, counts: Integers, cells: tuple[Integers, ...], n: int, grid: Points) -> Order:
        """Make an order from ascending codes in cells and their counts.

        If passes saw different records, surplus records are removed from the end of a cell and missing records are
        counted at its start.
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
        """Return the codes of ranks first..last, with 0 for ranks below 1 and the greatest code for those above n."""
        ranks = np.arange(first, last + 1)
        codes = self.codes[np.searchsorted(self.ends, np.clip(ranks, 1, self.n))]
        codes[ranks < 1] = 0
        codes[ranks > self.n] = self.last
        return codes

    def total(self, first: int, last: int) -> int:
        """Return the sum of the codes of ranks first..last; `between` is the part of it without entries."""
        begins = self.ends - self.counts
        overlap = np.minimum(self.ends, last) - np.maximum(begins, first - 1)
        return weighted_sum(self.codes, np.maximum(overlap, 0)) + self.between


def _reconciled(
    codes: Integers, counts: Integers, edges: Integers, found: Integers, cells: tuple[Integers, ...]
) -> tuple[Integers, Integers, Integers]:
    """Codes and counts, with the expected number of records in each cell, and the number of entries of each cell."""
    starts, lasts, _, expected = cells
    lacking = found < expected
    at, sizes = edges[:-1][lacking], np.diff(edges) + lacking
    codes = np.insert(codes, at, starts[lacking])
    counts = np.insert(counts, at, (expected - found)[lacking])
    held, most = np.maximum(found, expected), np.repeat(expected, sizes)
    within = np.cumsum(counts) - np.repeat(np.cumsum(held) - held, sizes)
    counts = np.minimum(within, most) - np.minimum(within - counts, most)
    return np.clip(codes, np.repeat(starts, sizes), np.repeat(lasts, sizes)), counts, sizes
