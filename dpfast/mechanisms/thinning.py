"""Draws from nested intervals with very many levels: a few of them, and a coin for the score between two."""

from __future__ import annotations

import bisect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _levels, _select
from dpfast._kernels._measures import Measure
from dpfast._kernels._samplers import in_one_piece
from dpfast.core.grid import Grid
from dpfast.statistics import Summary
from dpfast.streaming import Selected

# A draw from more levels reads a few of them; the intervals of the interquartile range take the square of their number.
MOST_LEVELS, MOST_SQUARED_LEVELS = 2**16, 2**12
_PLACES, _BLOCKS = 2**8, 2**10  # of a block of places, and blocks that are read at once


class Levels(ABC):
    """The nested intervals of the points of score at most t, for t = 0..count - 1, each computed when it is needed.

    Parameters
    ----------
    count : int
        The score of the points outside all intervals.
    last : int
        The points are 0..last.
    """

    def __init__(self, count: int, last: int) -> None:
        self.count, self.last = count, last

    def boxes(self, levels: list[int]) -> list[tuple[int, int]]:
        """Return the least and the greatest point of score at most t, for each of these t, which increase."""
        return [self.box(t) for t in levels]

    @abstractmethod
    def box(self, t: int) -> tuple[int, int]:
        """Return the least and the greatest point of score at most t."""

    @abstractmethod
    def score(self, code: int) -> int:
        """Return the least t whose interval holds the point, at most `count`."""

    def depth(self) -> int:
        """Return the greatest t < count for which the interval t is one point, or 0."""
        low, high = self.box(0)
        if low != high:
            return 0
        return self.alone(low) - 1

    def alone(self, code: int) -> int:
        """How many intervals hold only this point, which is the first of them."""
        inside, outside = 0, self.count
        while outside - inside > 1:
            middle = (inside + outside) // 2
            inside, outside = (middle, outside) if self.box(middle) == (code, code) else (inside, middle)
        return outside


class ChosenLevels(NamedTuple):
    """Which levels a draw reads, the common factor of their exponents, and the depth in units of it."""

    levels: list[int]
    stride: int
    depth: int


def chosen_of(count: int, depth: int, epsilon: float) -> ChosenLevels:
    """Levels whose exponents are about 1 / epsilon apart.

    The exponent of a point of score s > 0 is s + depth. The chosen intervals are those of the points with (s +
    depth) // stride <= v, v = first, first + 1, ..., after the interval 0 itself if first > 0.
    """
    stride = 1
    while stride < 2**31 and epsilon * stride <= 0.5:
        stride *= 2
    first, final = (1 + depth) // stride, (count + depth) // stride
    levels = [(v + 1) * stride - depth - 1 for v in range(first, final)]
    return ChosenLevels([0, *levels] if first else levels, stride, max(first - 1, 0))


def draw(
    source: np.random.BitGenerator,
    levels: Levels,
    *,
    epsilon: float,
    deep: bool = True,
    radius: int = 0,
    measure: Measure | None = None,
    exact: bool = False,
) -> int:
    """One draw from `dpfast.laws.NestedIntervals` of these levels, each widened by the radius.

    **Law** exact: a point is proposed with the weight ``exp(-epsilon / 2 * stride * (exponent // stride))`` and
    accepted by a coin of probability ``exp(-epsilon / 2 * (exponent % stride))``, at least exp(-1/2).
    **Assumes** count >= 1; 0 <= radius. **Cost** that of about epsilon * count levels and, for each proposal, 1.3 on
    average, of a score. **Reference** https://dpfast.readthedocs.io/en/latest/proofs/nested-intervals.html, claim 6.
    """
    depth, last = levels.depth() if deep else 0, levels.last
    chosen, stride, units = chosen_of(levels.count, depth, epsilon)
    boxes = np.array(levels.boxes(chosen) or [(0, last)], np.int64)
    lower, upper = np.maximum(boxes[:, 0] - radius, 0), boxes[:, 1] + np.minimum(last - boxes[:, 1], radius)
    out, rate = np.empty(1, np.int64), Fraction(epsilon) / 2
    with in_one_piece(source):
        while True:
            _levels.fill(source, lower, upper, epsilon * stride, last, out, measure, units, exact=exact)
            score = levels.score(int(out[0]))
            exponent = score + depth if score else 0
            if _levels.draw_coin(source, rate * (exponent % stride), exact=exact):
                return int(out[0])


@dataclass(frozen=True)
class Ranked:
    """What the score of an order statistic is in ranks; public numbers and n.

    Attributes
    ----------
    ranks : callable
        The ranks between which the points of score at most t lie; points may be padded outside 1..n.
    score : callable
        The score of a point with so many records below it, and so many not above it.
    """

    ranks: Callable[[int], tuple[int, int]]
    score: Callable[[int, int], int]

    @classmethod
    def of_public_n(cls, rank: int) -> Ranked:
        """By replaced records, for the order statistic of this rank."""
        return cls(lambda t: (rank - t, rank + t), lambda below, not_above: max(0, below - rank + 1, rank - not_above))

    @classmethod
    def of_private_n(cls, q: Fraction, n: int) -> Ranked:
        """By added or removed records, for the q-quantile of n records."""
        middle, most = q * n, max(q, 1 - q)
        return cls(
            lambda t: (math.ceil(middle - t * most), math.floor(middle + t * most) + 1),
            lambda below, not_above: math.ceil(max(Fraction(0), below - middle, middle - not_above) / most),
        )


class RankLevels(Levels):
    """The levels of an order statistic of the records of an array. PRIVATE.

    A level is two order statistics; a score is two counts, each of which is a pass over the records.
    """

    def __init__(
        self, values: NDArray[Any], ranked: Ranked, *, count: int, grid: Grid, radius: int = 0, threads: int = 1
    ) -> None:
        super().__init__(count, grid.size - 1)
        self._values, self._ranked, self._grid = values, ranked, grid
        self._radius, self._threads = radius, threads

    def boxes(self, levels: list[int]) -> list[tuple[int, int]]:
        ranks, n = [self._ranked.ranks(t) for t in levels], len(self._values)
        wanted = sorted({rank for pair in ranks for rank in pair if 1 <= rank <= n})
        order = Selected.of(self._values, [(rank, rank) for rank in wanted], self._grid, threads=self._threads)
        codes = {rank: int(order.window(rank, rank)[0]) for rank in wanted}
        return [(codes.get(low, 0), codes.get(high, self.last)) for low, high in ranks]

    def box(self, t: int) -> tuple[int, int]:
        return self.boxes([t])[0]

    def score(self, code: int) -> int:
        below, not_above = self._below(code - self._radius), self._below(code + self._radius + 1)
        return min(self._ranked.score(below, not_above), self.count)

    def alone(self, code: int) -> int:
        below, not_above = self._below(code), self._below(code + 1)

        def alone(t: int) -> bool:
            low, high = self._ranked.ranks(t)
            return (code == 0 or low > below) and (code == self.last or high <= not_above)

        return bisect.bisect_left(range(self.count), True, lo=1, key=lambda t: not alone(t))

    def _below(self, code: int) -> int:
        """Return the number of records with a smaller code."""
        n, grid = len(self._values), self._grid
        if not 0 < code <= self.last:
            return 0 if code <= 0 else n
        low, high = grid.value(code - 1), grid.value(code)
        total, *_ = _select.moments(
            self._values,
            first=grid.first,
            low=low,
            high=high,
            squares=False,
            absent=False,
            workers=self._threads,
            **grid.kernel,
        )
        return n * code - total


class DifferenceLevels(Levels):
    """The levels of the interquartile range, from the order statistics around both ranks. PRIVATE."""

    def __init__(self, summary: Summary, *, last: int, radius: int = 0) -> None:
        super().__init__(summary.levels, last)
        (self._low, self._high), self._radius = summary.windows, radius

    def box(self, t: int) -> tuple[int, int]:
        low, high, middle = self._low, self._high, self.count - 1
        after, before = slice(middle, middle + t + 1), slice(middle - t, middle + 1)
        return max(_least_difference(high[before], low[after]), 0), -_least_difference(low[before], high[after])

    def score(self, code: int) -> int:
        low, high, middle = self._low, self._high, self.count - 1

        def upward(moved: NDArray[np.int64]) -> NDArray[np.int64]:
            """Return how many records above must move, if so many on the side of the lower rank do."""
            return np.searchsorted(high[middle:], low[middle - moved] + (code - self._radius))

        def downward(moved: NDArray[np.int64]) -> NDArray[np.int64]:
            wide = low[middle + moved] + (code + self._radius)
            return middle + 1 - np.searchsorted(high[: middle + 1], wide, side="right")

        return min(max(_least_sum(upward, self.count), _least_sum(downward, self.count)), self.count)


def _least_difference(first: NDArray[np.int64], second: NDArray[np.int64]) -> int:
    """Return min(first - second) of two nondecreasing arrays of one length."""
    return _least(
        lambda places: first[places] - second[places], lambda starts, ends: first[starts] - second[ends], len(first)
    )


def _least_sum(falling: Callable[[NDArray[np.int64]], NDArray[np.int64]], count: int) -> int:
    """Return the least j + falling(j), j = 0..count - 1, of a function that does not increase."""
    return _least(lambda places: places + falling(places), lambda starts, ends: starts + falling(ends), count)


def _least(
    values: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    bounds: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]],
    count: int,
) -> int:
    """Return the least value at 0..count - 1, given lower bounds on those from starts to ends.

    Few blocks of places have a bound below the least value at a start: 99 levels of up to 5e6 places take a thirtieth
    of the time of all differences.
    """
    starts = np.arange(0, count, _PLACES)
    least = int(values(starts).min())
    kept = starts[bounds(starts, np.minimum(starts + _PLACES, count) - 1) < least]
    for some in np.array_split(kept, max(len(kept) // _BLOCKS, 1)):
        places = (some[:, None] + np.arange(_PLACES)).ravel()
        least = min(least, int(values(places[places < count]).min(initial=least)))
    return least
