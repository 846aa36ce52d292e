"""Summaries that Spark's own engine computes, without Python on its workers: exact counts and sums of codes.

They equal the summaries of the same records in one array. Only what the law needs comes to the driver.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast.core.grid import Grid
from dpfast.mechanisms import Mechanism
from dpfast.spark.frames import ChosenColumns, code, present
from dpfast.streaming import CodeSums, Counted, Integers, Ranks, Sums
from dpfast.streaming.state import Planned

_SAMPLE = 2**16  # records at the beginning of a frame that show where the wanted ranks may be
_MARGIN = 4.0  # standard deviations of a rank in a random sample
_DIGIT = 14  # bits of a code by which Spark groups: its fast table of groups has 2**16 entries
_FEW = 2**20  # records whose codes may come to the driver one by one
_MORE = 2**22  # the same, where Spark does not sort or group them
_SMALL = 2**16  # codes of a grid whose counts all come to the driver
_LIMB = 26  # bits of the parts of a number that Spark sums: of up to 2**36 records
_PART = (1 << _LIMB) - 1
_CHANGED = "the frame had different records in two passes: persist it, or make it deterministic"

Interval = tuple[int, int]
Read = tuple[Planned, Any]  # a plan and a summary


def counted(mechanism: Mechanism, chosen: ChosenColumns) -> bool:
    """Whether Spark can compute the mechanism's summary by exact counts or sums of codes."""
    if mechanism.leaves_out and not mechanism.hides_n:  # it would count the records that are not missing
        return False
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


def summary(mechanism: Mechanism, chosen: ChosenColumns) -> Read:
    """Return the plan for the records, and their summary, of a mechanism that is `counted`. PRIVATE."""
    [grid] = mechanism.points
    assert isinstance(grid, Grid)
    counting, reading = Counting(chosen, grid), mechanism.reading()
    if isinstance(reading, Sums):
        sums = code_sums(counting.sums(reading.squares))
        return mechanism.plan(sums.n), sums
    if isinstance(reading, Ranks):
        records = ordered(counting, mechanism, reading)
    else:
        records = Counted.of_codes(grid, *CountedCells.of(counting.histogram()))
    state = mechanism.start().read(records)
    return state.plan(), state.summary()


def summaries(mechanism: Mechanism, chosen: ChosenColumns, by: str, groups: int) -> dict[int, Read] | None:
    """Return the plan for each group with records, and its summary, by its number in the column `by`.

    None if Spark does not count. PRIVATE.
    """
    if not counted(mechanism, chosen):
        return None
    [grid] = mechanism.points
    assert isinstance(grid, Grid)
    counting, reading = Counting(chosen, grid, (by,)), mechanism.reading()
    if isinstance(reading, Sums):
        table = counting.sums(reading.squares)
        sums = {group: code_sums(table, row) for row, group in enumerate(table.column(by).to_pylist())}
        return {group: (mechanism.plan(each.n), each) for group, each in sums.items()}
    if not _by_histogram(mechanism, groups):
        return None
    table = counting.histogram()
    group, codes, counts = (_integers(table, name) for name in (by, "code", "count"))
    made = {}
    for number in np.unique(group).tolist():
        inside = group == number
        state = mechanism.start().read(Counted.of_codes(grid, codes[inside], counts[inside]))
        made[number] = state.plan(), state.summary()
    return made


class Counting:
    """The codes of one column of a frame, as columns of Spark's.

    Parameters
    ----------
    chosen : ChosenColumns
        One column.
    grid : Grid
    by : sequence of str
        Further columns to keep, by which to group.
    """

    def __init__(self, chosen: ChosenColumns, grid: Grid, by: Sequence[str] = ()) -> None:
        [column] = chosen.columns
        frame = chosen.frame if grid.missing != "drop" else chosen.frame.where(present(column))
        self.by, self.grid = tuple(by), grid
        self._codes = frame.selectExpr(*by, f"{code(grid, column)} AS code")

    def sums(self, squares: bool) -> Any:
        """Return an Arrow table of exact sums, in the columns of `_SUMS`, with a row for each group."""
        high, low = f"shiftright(code, {_LIMB})", f"(code & {_PART}L)"
        numbers = {"code": "code"}
        if squares:
            numbers |= {"high": f"{high} * {high}", "both": f"{high} * {low}", "low": f"{low} * {low}"}
        parts = ["1L AS n"]
        for name, number in numbers.items():
            parts += [f"shiftright({number}, {_LIMB}) AS {name}_1", f"({number}) & {_PART}L AS {name}_0"]
        frame = self._codes.selectExpr(*self.by, *parts)
        return frame.groupBy(*self.by).sum(*(part.rpartition(" ")[2] for part in parts)).toArrow()

    def within(self, intervals: Sequence[Interval]) -> Counting:
        """Return the records with codes in intervals."""
        part = copy.copy(self)
        part._codes = self._codes.where(" OR ".join(f"code BETWEEN {first}L AND {last}L" for first, last in intervals))
        return part

    def head(self, rows: int) -> Integers:
        """Codes of some records, of all if there are fewer than `rows`; in increasing order."""
        return np.array(sorted(row.code for row in self._codes.limit(rows).collect()), np.int64)

    def cells(self) -> CountedCells:
        """All codes and their counts; the codes come to the driver one by one."""
        return CountedCells(*np.unique(_integers(self._codes.toArrow(), "code"), return_counts=True))

    def counts(self, intervals: Sequence[Interval]) -> list[int]:
        """Return the number of records with codes in each interval."""
        names = [f"count_if(code BETWEEN {first}L AND {last}L) AS in{i}" for i, (first, last) in enumerate(intervals)]
        return [int(count) for count in self._codes.selectExpr(*names).collect()[0]]

    def histogram(self, key: str = "code") -> Any:
        """Return an Arrow table of the number of records in each group with each value of the expression `key`, as
        "code".
        """
        return self._codes.selectExpr(*self.by, f"{key} AS code").groupBy(*self.by, "code").count().toArrow()


class CountedCells(NamedTuple):
    """Cells of codes in order: the first code of each and the number of its records."""

    starts: Integers
    counts: Integers

    @classmethod
    def of(cls, table: Any, shift: int = 0) -> CountedCells:
        """Return the cells of 2**shift codes, from a table of a histogram by ``code >> shift``."""
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
        """Return the codes of the cells, of `width` codes each, that hold the records of stretches of ranks."""
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

    def replaced(self, inside: NDArray[np.bool_], by: CountedCells) -> CountedCells:
        """Return the cells with others in place of some."""
        starts = np.concatenate([self.starts[~inside], by.starts])
        order = np.argsort(starts, kind="stable")
        return CountedCells(starts[order], np.concatenate([self.counts[~inside], by.counts])[order])


def ordered(counting: Counting, mechanism: Mechanism, reading: Ranks) -> Counted:
    """Return the records with the same order statistics at the wanted ranks, and the same sum between two, as those of
    a frame.

    The records of all cells of codes that hold no wanted rank get the first code of their cell.
    """
    cells, intervals = _near_sample(counting, mechanism, reading) or _refined(counting, mechanism, reading)
    if reading.sums and len(intervals) == 2:
        (_, below), (above, _) = intervals
        inside = cells.within([(below + 1, above - 1)])
        sums = code_sums(counting.within([(below + 1, above - 1)]).sums(squares=False))
        if sums.n != cells.counts[inside].sum():
            raise ValueError(_CHANGED)
        cells = cells.replaced(inside, _with_sum(sums))
    return Counted.of_codes(counting.grid, cells.starts, cells.counts)


def _near_sample(
    counting: Counting, mechanism: Mechanism, reading: Ranks
) -> tuple[CountedCells, list[Interval]] | None:
    """Return the cells, and the intervals of codes that hold the wanted ranks, by two queries: each is a scan without
    groups.

    None if the first records of the frame do not show where these ranks are, as in a sorted frame.
    """
    sample = counting.head(_SAMPLE)
    if len(sample) < _SAMPLE:
        mechanism.plan(len(sample))  # reject an n that is not supported
        return CountedCells(*np.unique(sample, return_counts=True)), []
    intervals = _around(sample, reading.wanted(len(sample)), counting.grid.size)
    parts = _and_between(intervals, counting.grid.size)
    counts = counting.counts(parts)
    mechanism.plan(n := sum(counts))
    coarse = CountedCells(np.array([first for first, _ in parts]), np.array(counts))
    inside = coarse.within(intervals)
    ends = np.cumsum(counts)
    known = [(end - count + 1, end) for end, count in zip(ends[inside], coarse.counts[inside], strict=True)]
    stretches = ((max(first, 1), min(last, n)) for first, last in reading.wanted(n))
    if not all(any(low <= first and last <= high for low, high in known) for first, last in stretches):
        return None
    few_codes = counting.grid.size <= _SMALL
    if coarse.counts[inside].sum() > _MORE and not few_codes:
        return None
    within = counting.within(intervals)
    finer = CountedCells.of(within.histogram()) if few_codes else within.cells()
    if [int(finer.counts[finer.within([interval])].sum()) for interval in intervals] != list(coarse.counts[inside]):
        raise ValueError(_CHANGED)
    return coarse.replaced(inside, finer), intervals


def _around(sample: Integers, wanted: Iterable[tuple[int, int]], size: int) -> list[Interval]:
    """Intervals of codes, in order, that probably hold the wanted ranks of all records, from those of a sample."""
    margin = _MARGIN * math.sqrt(len(sample)) / 2
    found: list[Interval] = []
    for low, high in sorted(wanted):
        below, above = math.floor(low - margin), math.ceil(high + margin)
        first = int(sample[below]) if below >= 0 else 0
        last = int(sample[above]) if above < len(sample) else size - 1
        if found and first <= found[-1][1] + 1:
            first, last = found[-1][0], max(last, found.pop()[1])
        found.append((first, last))
    return found


def _and_between(intervals: list[Interval], size: int) -> list[Interval]:
    """Return the intervals and those between them: all codes, in order."""
    made, start = [], 0
    for first, last in [*intervals, (size, size)]:
        if start < first:
            made.append((start, first - 1))
        if first < size:
            made.append((first, last))
        start = last + 1
    return made


def _refined(counting: Counting, mechanism: Mechanism, reading: Ranks) -> tuple[CountedCells, list[Interval]]:
    """Return the same for any frame: the first query counts cells of codes; each further one refines those of wanted
    ranks.
    """
    shift = max((counting.grid.size - 1).bit_length() - _DIGIT, 0)
    cells = CountedCells.of(counting.histogram(f"shiftright(code, {shift})"), shift)
    mechanism.plan(n := cells.n)
    intervals: list[Interval] = []
    while shift and n:
        intervals = cells.holding(reading.wanted(n), 1 << shift)
        inside = cells.within(intervals)
        expected = int(cells.counts[inside].sum())
        shift = 0 if expected <= _FEW else max(shift - _DIGIT, 0)
        finer = CountedCells.of(counting.within(intervals).histogram(f"shiftright(code, {shift})"), shift)
        if finer.n != expected:
            raise ValueError(_CHANGED)
        cells = cells.replaced(inside, finer)
    return cells, intervals


def _with_sum(sums: CodeSums) -> CountedCells:
    """As many codes with the same sum, each the mean of the codes rounded down or up."""
    if not sums.n:
        return CountedCells(np.empty(0, np.int64), np.empty(0, np.int64))
    mean, rest = divmod(sums.total, sums.n)
    return CountedCells(np.array([mean, mean + 1]), np.array([sums.n - rest, rest]))


def code_sums(table: Any, row: int = 0) -> CodeSums:
    """Return the summary of a group, from a row of `Counting.sums`."""
    taken = {name: table.column(name)[row].as_py() or 0 for name in table.column_names if name.startswith("sum(")}

    def total(name: str) -> int:
        return (taken.get(f"sum({name}_1)", 0) << _LIMB) + taken.get(f"sum({name}_0)", 0)

    squares = (total("high") << 2 * _LIMB) + (total("both") << _LIMB + 1) + total("low")
    return CodeSums(taken["sum(n)"], total("code"), squares)


def _integers(table: Any, name: str) -> Integers:
    return np.asarray(table.column(name)).astype(np.int64, copy=False)
