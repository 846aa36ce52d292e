"""Summaries that Spark's own engine computes, without Python on its workers: exact counts and sums of codes.

They equal the summaries of the same records in one array. Only what the law needs comes to the driver.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast.grid import Grid
from dpfast.mechanisms import Mechanism
from dpfast.spark.frames import Chosen, code, present
from dpfast.streaming import CodeSums, Counted, Integers, Ranks, Sums

_DIGIT = 14  # bits of a code by which Spark groups: its fast table of groups has 2**16 entries
_FEW = 2**20  # records whose codes may come to the driver one by one
_SMALL = 2**16  # codes of a grid whose counts all come to the driver
_LIMB = 26  # bits of the parts of a number that Spark sums: of up to 2**36 records
_PART = (1 << _LIMB) - 1
_CHANGED = "the frame had different records in two passes: persist it, or make it deterministic"

Interval = tuple[int, int]


def counted(mechanism: Mechanism, chosen: Chosen) -> bool:
    """Whether Spark can compute the mechanism's summary by exact counts or sums of codes."""
    if mechanism.dimensions != 1 or chosen.several or len(mechanism.points) != 1:
        return False
    [grid] = mechanism.points
    return isinstance(grid, Grid) and (isinstance(mechanism.reading(), (Ranks, Sums)) or _by_histogram(mechanism))


def _by_histogram(mechanism: Mechanism, groups: int = 1) -> bool:
    """Whether the counts of all codes may come to the driver, and are enough for the mechanism."""
    [grid] = mechanism.points
    try:
        mechanism.start().update(Counted.of_codes(grid, [], []))
    except TypeError:
        return False
    return groups * grid.size <= _SMALL


def summary(mechanism: Mechanism, chosen: Chosen) -> Any:
    """The summary of the records for the law, of a mechanism that is `counted`. PRIVATE."""
    [grid] = mechanism.points
    assert isinstance(grid, Grid)
    counting, reading = Counting(chosen, grid), mechanism.reading()
    if isinstance(reading, Sums):
        sums = code_sums(counting.sums(reading.squares))
        mechanism.check_records(sums.n)
        return sums
    if isinstance(reading, Ranks) and grid.size > _SMALL:
        records = ordered(counting, mechanism, reading)
    else:
        records = Counted.of_codes(grid, *Cells.of(counting.histogram()))
    return mechanism.start().read(records).summary()


def summaries(mechanism: Mechanism, chosen: Chosen, by: str, groups: int) -> dict[int, Any] | None:
    """The summary of each group with records, by its number in the column `by`; None if Spark does not count here.

    PRIVATE.
    """
    if not counted(mechanism, chosen):
        return None
    [grid] = mechanism.points
    assert isinstance(grid, Grid)
    counting, reading = Counting(chosen, grid, (by,)), mechanism.reading()
    if isinstance(reading, Sums):
        table = counting.sums(reading.squares)
        return {group: code_sums(table, row) for row, group in enumerate(table.column(by).to_pylist())}
    if not _by_histogram(mechanism, groups):
        return None
    table = counting.histogram()
    group, codes, counts = (_integers(table, name) for name in (by, "code", "count"))
    made = {}
    for number in np.unique(group).tolist():
        inside = group == number
        made[number] = mechanism.start().read(Counted.of_codes(grid, codes[inside], counts[inside])).summary()
    return made


class Counting:
    """The codes of one column of a frame, as columns of Spark's.

    Parameters
    ----------
    chosen : Chosen
        One column.
    grid : Grid
    by : sequence of str
        Further columns to keep, by which to group.
    """

    def __init__(self, chosen: Chosen, grid: Grid, by: Sequence[str] = ()) -> None:
        [column] = chosen.columns
        frame = chosen.frame if grid.missing != "drop" else chosen.frame.where(present(column))
        self.by, self.grid = tuple(by), grid
        self._codes = frame.selectExpr(*by, f"{code(grid, column)} AS code")

    def sums(self, squares: bool) -> Any:
        """An Arrow table of exact sums, in the columns of `_SUMS`, with a row for each group."""
        high, low = f"shiftright(code, {_LIMB})", f"(code & {_PART}L)"
        numbers = {"code": "code"}
        if squares:
            numbers |= {"high": f"{high} * {high}", "both": f"{high} * {low}", "low": f"{low} * {low}"}
        parts = ["1L AS n"]
        for name, number in numbers.items():
            parts += [f"shiftright({number}, {_LIMB}) AS {name}_1", f"({number}) & {_PART}L AS {name}_0"]
        frame = self._codes.selectExpr(*self.by, *parts)
        return frame.groupBy(*self.by).sum(*(part.rpartition(" ")[2] for part in parts)).toArrow()

    def between(self, first: int, last: int) -> Counting:
        """The records with codes from `first` to `last`."""
        part = copy.copy(self)
        part._codes = self._codes.where(f"code BETWEEN {first}L AND {last}L")
        return part

    def histogram(self, key: str = "code") -> Any:
        """An Arrow table of the number of records in each group with each value of the expression `key`, as "code"."""
        return self._codes.selectExpr(*self.by, f"{key} AS code").groupBy(*self.by, "code").count().toArrow()


class Cells(NamedTuple):
    """Cells of codes in order: the first code of each and the number of its records."""

    starts: Integers
    counts: Integers

    @classmethod
    def of(cls, table: Any, shift: int = 0) -> Cells:
        """The cells of 2**shift codes, from a table of a histogram by ``code >> shift``."""
        starts, counts = _integers(table, "code") << shift, _integers(table, "count")
        order = np.argsort(starts)
        return cls(starts[order], counts[order])

    @property
    def n(self) -> int:
        """The number of records."""
        return int(self.counts.sum())

    def within(self, intervals: list[Interval]) -> NDArray[np.bool_]:
        """Which cells are in intervals, which are whole cells in order."""
        at = np.searchsorted([first for first, _ in intervals], self.starts, side="right") - 1
        lasts = np.array([-1, *(last for _, last in intervals)])
        return np.asarray(self.starts <= lasts[at + 1])

    def holding(self, stretches: Iterable[tuple[int, int]], width: int) -> list[Interval]:
        """The codes of the cells, of `width` codes each, that hold the records of stretches of ranks."""
        ends, n = np.cumsum(self.counts), self.n
        held: list[Interval] = []
        for stretch in sorted(stretches):
            low, high = np.searchsorted(ends, np.clip(stretch, 1, n)).tolist()
            first, last = int(self.starts[low]), int(self.starts[high]) + width - 1
            if held and first <= held[-1][1] + 1:
                held[-1] = (held[-1][0], max(last, held[-1][1]))
            else:
                held.append((first, last))
        return held

    def replaced(self, inside: NDArray[np.bool_], by: Cells) -> Cells:
        """The cells with others in place of some."""
        starts = np.concatenate([self.starts[~inside], by.starts])
        order = np.argsort(starts, kind="stable")
        return Cells(starts[order], np.concatenate([self.counts[~inside], by.counts])[order])


def ordered(counting: Counting, mechanism: Mechanism, reading: Ranks) -> Counted:
    """Records with the same order statistics at the wanted ranks, and the same sum between two, as those of a frame.

    The first query counts cells of codes; each further one refines the cells that hold wanted ranks. The records of all
    other cells get the first code of their cell.
    """
    grid = counting.grid
    shift = max((grid.size - 1).bit_length() - _DIGIT, 0)
    cells = Cells.of(counting.histogram(f"shiftright(code, {shift})"), shift)
    n = mechanism.check_records(cells.n)
    intervals: list[Interval] = []
    while shift and n:
        intervals = cells.holding(reading.wanted(n), 1 << shift)
        inside = cells.within(intervals)
        shift = 0 if cells.counts[inside].sum() <= _FEW else max(shift - _DIGIT, 0)
        wanted = " OR ".join(f"code BETWEEN {first}L AND {last}L" for first, last in intervals)
        table = counting.histogram(f"CASE WHEN {wanted} THEN shiftright(code, {shift}) ELSE -1L END")
        finer = Cells.of(table, shift)
        if finer.n != n:
            raise ValueError(_CHANGED)
        kept = finer.starts >= 0
        cells = cells.replaced(inside, Cells(finer.starts[kept], finer.counts[kept]))
    if reading.sums and len(intervals) == 2:
        (_, below), (above, _) = intervals
        inside = cells.within([(below + 1, above - 1)])
        sums = code_sums(counting.between(below + 1, above - 1).sums(squares=False))
        if sums.n != cells.counts[inside].sum():
            raise ValueError(_CHANGED)
        cells = cells.replaced(inside, _with_sum(sums))
    return Counted.of_codes(grid, cells.starts, cells.counts)


def _with_sum(sums: CodeSums) -> Cells:
    """As many codes with the same sum, each the mean of the codes rounded down or up."""
    if not sums.n:
        return Cells(np.empty(0, np.int64), np.empty(0, np.int64))
    mean, rest = divmod(sums.total, sums.n)
    return Cells(np.array([mean, mean + 1]), np.array([sums.n - rest, rest]))


def code_sums(table: Any, row: int = 0) -> CodeSums:
    """The summary of a group, from a row of `Counting.sums`."""
    taken = {name: table.column(name)[row].as_py() or 0 for name in table.column_names if name.startswith("sum(")}

    def total(name: str) -> int:
        return (taken.get(f"sum({name}_1)", 0) << _LIMB) + taken.get(f"sum({name}_0)", 0)

    squares = (total("high") << 2 * _LIMB) + (total("both") << _LIMB + 1) + total("low")
    return CodeSums(taken["sum(n)"], total("code"), squares)


def _integers(table: Any, name: str) -> Integers:
    return np.asarray(table.column(name)).astype(np.int64, copy=False)
