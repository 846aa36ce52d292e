"""The nested boxes mechanism: robust location in d dimensions within public bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _boxes, _select
from dpfast._kernels._samplers import in_one_piece
from dpfast._kernels._threads import each
from dpfast.core import checks
from dpfast.core.grid import Grid
from dpfast.laws import Boxes, score_cap
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.ranged import BoundedRange
from dpfast.mechanisms.usefulness import OF_SELECTION, enough_for_error
from dpfast.statistics import OrderStatistic, Summary
from dpfast.streaming import Chunks, Integers, columns_between, shares
from dpfast.theory.robust import gaussian_mean_error

if TYPE_CHECKING:
    pass
from dpfast.robust.grids import Coordinate, OnGrids

_KEPT = 2**20  # boxes times columns that are always kept


@dataclass(frozen=True, repr=False)
class NestedBoxes(OnGrids, BoundedRange):
    """Release a robust location in d dimensions: each grid point g with weight ``exp(-epsilon / 2 * score(g))``.

    score(g) is the maximum over the coordinates of the scores of `InverseSensitivity`. The points of score at most t
    are a box, the product of the attack ranges of t replaced records. Pure epsilon-differential privacy under one
    replaced record (row); the number of records is public.

    Parameters
    ----------
    statistic : dpfast.statistics.RankStatistic
        The statistic of each column. Default: ``Median()``.
    grid : Grid or sequence of d Grids
        Public bounds and granularity of data and release, in data units; one grid for any number of columns, or d.
    epsilon : float
        Positive, for all coordinates together; rounded down to a double.
    radius, scale, transform
        See `robust_mean`.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call: a wrong shape.

    Notes
    -----
    Privacy: each coordinate's score changes by at most 1 with one record, and therefore so does their maximum. The rest
    is as for `InverseSensitivity`, which has this law for d = 1 and measure="uniform", if records are not tied
    (https://dpfast.readthedocs.io/en/latest/proofs/nested-boxes.html). The law is exact: no float decides it. A
    `transform` maps each record separately, and its inverse maps the release.
    Cost: a selection in each column and O(d levels), levels = min(n / 2, 2 (d log(size) + 42) / epsilon) for a median;
    the columns are sorted if this is a large part of the data. A second pass over the data, of the same cost, is needed
    if the drawn level is far from ``2 (d + 1) / epsilon``. Timing is outside the guarantee.

    References
    ----------
    Hopkins, Kamath, Majid and Narayanan 2023; Asi and Duchi 2020.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.NestedBoxes(grid=dpf.Grid(-1000, 1000), epsilon=1.0)
    >>> mechanism
    <NestedBoxes release of the coordinate-wise median on 4194304001 points from -1000.0 to 1000.0 in each coordinate: \
epsilon = 1 (pure differential privacy) for one record replaced (the number of records is public)>
    >>> X = np.random.default_rng(0).normal(size=(10_000, 3)) + [1, 2, 3]
    >>> bool(np.abs(mechanism(X) - [1, 2, 3]).max() < 0.1)
    True
    """

    def cap(self, n: SupportsIndex, d: SupportsIndex) -> int:
        """Return the public cap on the score for n records: all scores from the cap on get the same weight.

        ``1 + ceil(2 / epsilon * (log(V) + 42))`` for V possible releases. The points at the cap together have at most
        e**-42 of the probability.
        """
        n, d = checks.whole("n", n), checks.whole("d", d, least=1)
        if isinstance(self.grid, Grid):
            volume = d * math.log(self._column(0, n).last + 1)
        else:
            volume = math.fsum(math.log(self._column(j, n).last + 1) for j in range(d))
        return score_cap(self.epsilon, volume)

    def _enough(self) -> float:
        """By simulation 1.3 and 2.6 times as many for two and five columns as for one, of which it is if any may be."""
        d = 1 if isinstance(self.grid, Grid) else len(self.grid)
        return enough_for_error(OF_SELECTION * (d + 1) / 2, self.epsilon)

    def _make_plan(self, n: int | None) -> Plan:
        return super()._make_plan(n) if n is None else _FromBoxes(self, checks.records(n))

    def _drawn_from(self, values: NDArray[Any], source: np.random.BitGenerator, threads: int) -> NDArray[np.float64]:
        """Return a draw from the rows of an array: of the volumes of the boxes first, then of one box."""
        (n, d), records = values.shape, self._transformed(values, threads)
        levels = self._levels(n, d)
        kept = _Kept.around(2 * (d + 1) / self.epsilon, levels, n, d)

        def read(part: range) -> _boxes.Volumes:
            volumes = _boxes.Volumes(levels + 1)
            for j, column in columns_between(records, part.start, part.stop):
                _multiply(self._column(j, n), column, levels, volumes, kept, j)
            return volumes

        volumes, *others = each(read, shares(d, threads), threads)
        for other in others:
            volumes.merge(other)
        level, codes = np.empty(1, np.int64), np.empty((1, d), np.int64)
        with in_one_piece(source):
            volumes.fill_levels(source, self.epsilon, lambda: self._widths(records, levels), level)
            lower, upper = self._box(records, levels, int(level[0]), kept)
            _boxes.fill_points(source, lower, upper, np.zeros(1, np.int64), codes)
        return self._decode(n, codes[0])

    def law_of(self, summaries: list[Summary]) -> Boxes:
        """Return the exact law of the release. PRIVATE. It holds all boxes, in 16 d levels bytes."""
        n, d, levels = summaries[0].n, len(summaries), summaries[0].levels
        lower, upper = np.zeros((levels + 1, d), np.int64), np.empty((levels + 1, d), np.int64)
        for j, summary in enumerate(summaries):
            column = self._column(j, n)
            lower[:-1, j], upper[:-1, j] = column.widened(summary)
            upper[-1, j] = column.last
        return Boxes(lower, upper, epsilon=self.epsilon, decode=lambda codes: self._decode(n, codes))

    def error(
        self,
        n: SupportsIndex,
        *,
        deviation: float,
        dimension: SupportsIndex | None = None,
        confidence: float = 0.95,
        contamination: float = 0.0,
    ) -> float:
        """Return an upper bound on the maximum error of a coordinate, for normal records:
        `dpfast.theory.gaussian_mean_error`.

        Parameters
        ----------
        n : int
            The number of records, at least 1.
        deviation : float
            The assumed standard deviation of each coordinate, positive, in data units.
        dimension : int, optional
            d; required if one grid is for all columns.
        confidence : float
            In (0, 1).
        contamination : float
            In [0, 0.5): the fraction of the records that an adversary replaces.

        Raises
        ------
        TypeError
            If the statistic is not the median, or with a radius, scale or transform: no theory gives the error.
        """
        self._check_known_error()
        deviation = checks.positive("deviation", deviation)
        if dimension is None:
            if isinstance(self.grid, Grid):
                raise TypeError("give dimension=, the number of columns, because one grid is for all of them")
            dimension = len(self.grids)
        return deviation * gaussian_mean_error(
            n,
            dimension=dimension,
            epsilon=self.epsilon,
            width=max(grid.upper - grid.lower for grid in self.grids) / deviation,
            confidence=confidence,
            contamination=contamination,
            step=max(grid.step for grid in self.grids) / deviation,
        )

    def _levels(self, n: int, d: int, j: int = 0) -> int:
        """Return the number of levels, the same for all columns."""
        return min(self.cap(n, d), self.statistic.breakdown(n))

    def _widths(self, records: NDArray[Any], levels: int) -> Iterator[Sequence[int]]:
        n, d = records.shape
        for j, values in columns_between(records, 0, d):
            column = self._column(j, n)
            lower, upper = column.ranges(values, levels)
            yield [*(upper - lower + 1).tolist(), column.last + 1]

    def _box(self, records: NDArray[Any], levels: int, level: int, kept: _Kept) -> tuple[Integers, Integers]:
        n, d = records.shape
        if level in kept.levels:
            i = level - kept.levels.start
            return np.ascontiguousarray(kept.lower[None, :, i]), np.ascontiguousarray(kept.upper[None, :, i])
        lower, upper = np.zeros((1, d), np.int64), np.empty((1, d), np.int64)
        if level == levels:
            upper[0] = [self._column(j, n).last for j in range(d)]
        else:
            for j, values in columns_between(records, 0, d):
                low, high = self._column(j, n).ranges(values, levels)
                lower[0, j], upper[0, j] = low[level], high[level]
        return lower, upper


class _FromBoxes(Plan):
    """A draw from the nested boxes of the rows of an array."""

    mechanism: NestedBoxes

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> NDArray[np.float64]:
        if isinstance(values, Chunks) or self.mechanism.resolves:
            return np.asarray(super().draw(values, source, threads))
        return self.mechanism._drawn_from(values, source, threads)


@dataclass(frozen=True)
class _Kept:
    """The boxes of the levels that are likely to be drawn, for each column; their number is public."""

    levels: range
    lower: Integers
    upper: Integers

    @classmethod
    def around(cls, likely: float, levels: int, n: int, d: int) -> _Kept:
        count = min(levels, max(_KEPT // d, n // 16))
        start = max(0, min(int(min(likely, levels)) - count // 2, levels - count))
        return cls(range(start, start + count), np.empty((d, count), np.int64), np.empty((d, count), np.int64))


def _multiply(
    column: Coordinate, values: NDArray[Any], levels: int, volumes: _boxes.Volumes, kept: _Kept, j: int
) -> None:
    """Multiply the volumes by the widths of all levels of a column; store the ends of the kept levels in row j."""
    grid, statistic = column.grid, column.statistic
    if isinstance(statistic, OrderStatistic):
        rank = statistic.rank(column.n)
        window = _select.window(values, rank - levels + 1, rank + levels - 1, **grid.kernel, workers=1)
        volumes.add_window(
            window,
            column.radius,
            column.last,
            grid.lower,
            grid.upper,
            grid.step,
            grid.first,
            kept.lower[j],
            kept.upper[j],
            kept.levels.start,
        )
        return
    lower, upper = column.ranges(values, levels)
    volumes.add_ranges(np.append(lower, 0), np.append(upper, column.last))
    where = slice(kept.levels.start, kept.levels.stop)
    kept.lower[j], kept.upper[j] = lower[where], upper[where]
