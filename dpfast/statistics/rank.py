"""Functions of order statistics: quantiles, trimmed and Winsorized means, interquartile range, Huber's estimate."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfast._kernels import _levels
from dpfast.core import checks, containers
from dpfast.core.grid import Points
from dpfast.statistics.corners import Rest, near_corners
from dpfast.statistics.statistic import Distribution, Statistic, between_points, printed, scaled
from dpfast.streaming import Codes, Integers, Ordered, Ranks, Reading, ascending

__all__ = [
    "Gaps",
    "Huber",
    "InterquartileRange",
    "LinearQuantile",
    "Median",
    "OrderStatistic",
    "Quantile",
    "RankStatistic",
    "Summary",
    "TrimmedMean",
    "WinsorizedMean",
]

_MOST_PARTS = 1000  # of the way between two records


@dataclass(frozen=True)
class Gaps:
    """The ranks, from 1, whose gaps x_(H+u) - x_(L-v) bound the change of a statistic by one record.

    Attributes
    ----------
    pairs : tuple of pairs (L, H)
        Iterating over a `Gaps` yields them. With one pair, ``T = inner * sum(x_(L), ..., x_(H)) + corners[0] * x_(L) +
        corners[1] * x_(H)``. With several pairs, all with ``L == H``, the smooth sensitivity is the largest of those of
        the order statistics.
    corners : tuple of two int
        0, except for Winsorized means, whose ends count more, and for points between two records.
    inner : int

    Notes
    -----
    With corners 0 the smooth sensitivity is the maximum of equation (G) of
    https://dpfast.readthedocs.io/en/latest/proofs/monotone-statistics.html over ``pairs``, exactly, times `inner`. With
    corners (l, h), it is bounded, up to a factor of 3, by the larger of ``inner S(L, H + 1) + l S(L, L + 1) + h S(H, H
    + 1)`` and ``inner S(L - 1, H) + l S(L - 1, L) + h S(H - 1, H)``, one for each direction, S(i, j) the maximum of
    ``exp(-beta ((i - a) + (b - j))) (x_(b) - x_(a))`` over a <= i, b >= j.
    """

    pairs: tuple[tuple[int, int], ...]
    corners: tuple[int, int] = (0, 0)
    inner: int = 1

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.pairs)


@dataclass(frozen=True, eq=False)
class Summary:
    """The summary for a rank statistic: the order statistics around its ranks and the sum between them. PRIVATE.

    Attributes
    ----------
    grid : Grid or FloatGrid
    n, levels : int
        Public: the number of records, and the number of values t = 0..levels - 1 of replaced records.
    windows : tuple of ndarray of int64
        Sorted codes. For each rank r of the statistic, the codes of the ranks r - levels + 1 .. r + levels - 1, with 0
        for ranks below 1 and ``grid.size - 1`` for ranks above n. (`Huber`: one window with all n codes, or with those
        near its corners.)
    total : int
        The sum of the codes from the first rank to the last, for a statistic that needs it; else 0.
    rest : tuple of int, optional
        For `Huber`, what its attack range takes of the other codes.
    """

    grid: Points
    n: int
    levels: int
    windows: tuple[Integers, ...]
    total: int = 0
    rest: Rest | None = None


class RankStatistic(Statistic):
    """A statistic of the sorted records with a closed-form attack range."""

    adds = False  # whether the sum between the ranks is needed
    order_only = False  # whether it is a record, so that the order of grid points is enough

    @abstractmethod
    def ranks(self, n: int) -> tuple[int, ...]:
        """One rank, or the first and last of two, around which the statistic needs order statistics."""

    @abstractmethod
    def breakdown(self, n: int) -> int:
        """Return a number of records, at most n, whose replacement can move the statistic anywhere: the last useful
        level.
        """

    def codes_per_step(self, n: int) -> int:
        """Return the number of release codes per step of the grid: g if the release is a mean of g records."""
        return 1

    @abstractmethod
    def attack_range(self, summary: Summary) -> tuple[Integers, Integers]:
        """Return the least and greatest T after t = 0..levels - 1 replaced records: the ends of nested intervals."""

    @abstractmethod
    def gaps(self, n: int) -> Gaps:
        """Return the ranks whose gaps bound the change by one record, for smooth sensitivity."""

    def reading(self, grid: Points, levels: Callable[[int], int]) -> Reading:
        """Return the reading of the `Summary` that `attack_range` needs, with the public number of levels
        ``levels(n)``.
        """

        def wanted(n: int) -> list[tuple[int, int]]:
            reach = levels(n) - 1
            return [(rank - reach, rank + reach) for rank in self.ranks(n)]

        def finish(order: Ordered) -> Summary:
            n, windows = order.n, tuple(order.window(first, last) for first, last in wanted(order.n))
            total = order.total(*self.ranks(n)) if self.adds else 0
            return Summary(grid, n, (len(windows[0]) + 1) // 2, windows, total)

        return Ranks(grid, wanted, finish, sums=self.adds)


class OrderStatistic(RankStatistic):
    """The k-th smallest of n records, k a function of n: attack range ``[x_(k-t), x_(k+t)]``."""

    order_only = True

    @abstractmethod
    def rank(self, n: int) -> int:
        """Return the rank k, from 1 to n."""

    @property
    @abstractmethod
    def level(self) -> float:
        """The level of the quantile, about rank / n."""

    def functional(self, distribution: Distribution) -> Any:
        return distribution.quantile(printed(self.level))

    def ranks(self, n: int) -> tuple[int, ...]:
        return (self.rank(n),)

    def last(self, grid: Points, n: int) -> int:
        return grid.size - 1

    def value(self, grid: Points, n: int, code: int) -> float:
        return grid.value(code)

    def valued(self, grid: Points, n: int) -> Callable[[int], float]:
        return grid.value

    def decode(self, grid: Points, n: int, codes: ArrayLike | int) -> Any:
        if isinstance(codes, int):
            return self.value(grid, n, codes)
        values = grid.decode(codes)
        return values if values.ndim else float(values)

    def breakdown(self, n: int) -> int:
        k = self.rank(n)
        return max(k, n - k + 1)

    def attack_range(self, summary: Summary) -> tuple[Integers, Integers]:
        [window] = summary.windows
        center = summary.levels - 1
        return window[center::-1], window[center:]

    def gaps(self, n: int) -> Gaps:
        return Gaps(((self.rank(n), self.rank(n)),))


@dataclass(frozen=True)
class Quantile(OrderStatistic):
    """The order statistic of rank ``max(1, ceil(q * n))``: the inverse of the empirical distribution function.

    Parameters
    ----------
    q : float
        In [0, 1]; 0 is the minimum, 1 the maximum.

    Examples
    --------
    >>> from dpfast.statistics.rank import Quantile
    >>> Quantile(0.25).rank(100)
    25
    >>> print(Quantile(0.25))
    0.25-quantile
    """

    q: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", checks.fraction("q", self.q))

    def __str__(self) -> str:
        return f"{self.q:g}-quantile"

    def rank(self, n: int) -> int:
        return max(1, math.ceil(self.q * n))

    @property
    def level(self) -> float:
        return self.q


@dataclass(frozen=True)
class Median(OrderStatistic):
    """The lower median: the order statistic of rank ``(n + 1) // 2``."""

    def __str__(self) -> str:
        return "median"

    def rank(self, n: int) -> int:
        return (n + 1) // 2

    @property
    def level(self) -> float:
        return 0.5


class BetweenPoints(RankStatistic):
    """A statistic between points of the grid: a release code is one of `codes_per_step` parts of a step."""

    def last(self, grid: Points, n: int) -> int:
        return checks.code_range(self.codes_per_step(n) * (grid.size - 1))

    def value(self, grid: Points, n: int, code: int) -> float:
        return between_points(grid, self.codes_per_step(n), code)

    def valued(self, grid: Points, n: int) -> Callable[[int], float]:
        return partial(between_points, grid, self.codes_per_step(n))


@dataclass(frozen=True)
class LinearQuantile(BetweenPoints):
    """The q-quantile of ``np.quantile(x, q)``: at the place (n - 1) q, between two records, the mean of both for a
    median of an even number of records.

    Parameters
    ----------
    q : float
        In [0, 1]: the decimal that it prints as.

    Notes
    -----
    ``T = (m - w) x_(k) + w x_(k+1)`` in release codes of 1 / m of a step, k - 1 the integer part of (n - 1) q and w / m
    the rest, to the nearest fraction with m <= 1000. A replaced record shifts both ranks by one:
    https://dpfast.readthedocs.io/en/latest/proofs/monotone-statistics.html.

    Examples
    --------
    >>> from dpfast.statistics.rank import LinearQuantile
    >>> LinearQuantile(0.5).ranks(100), LinearQuantile(0.5).ranks(101)
    ((50, 51), (51,))
    """

    q: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", checks.fraction("q", self.q))

    def __str__(self) -> str:
        return f"linear {self.q:g}-quantile"

    def functional(self, distribution: Distribution) -> Any:
        return distribution.quantile(printed(self.q))

    @property
    def level(self) -> float:
        """The level of the quantile."""
        return self.q

    def _place(self, n: int) -> tuple[int, Fraction]:
        """Return the first rank k, and the share of the way to the next one, below 1."""
        before, share = divmod((n - 1) * printed(self.q), 1)
        share = share.limit_denominator(_MOST_PARTS)
        return (before + 2, Fraction(0)) if share == 1 else (before + 1, share)

    def ranks(self, n: int) -> tuple[int, ...]:
        first, share = self._place(n)
        return (first, first + 1) if share else (first,)

    def codes_per_step(self, n: int) -> int:
        return self._place(n)[1].denominator

    def cut(self, n: int) -> int:
        """Return the number of records on the side that has fewer."""
        ranks = self.ranks(n)
        return min(ranks[0] - 1, n - ranks[-1])

    def breakdown(self, n: int) -> int:
        ranks = self.ranks(n)
        return max(ranks[-1], n - ranks[0] + 1)

    def attack_range(self, summary: Summary) -> tuple[Integers, Integers]:
        share, center = self._place(summary.n)[1], summary.levels - 1
        low, high = summary.windows[0], summary.windows[-1]
        both = (share.denominator - share.numerator) * low + share.numerator * high
        return both[center::-1], both[center:]

    def gaps(self, n: int) -> Gaps:
        share, ranks = self._place(n)[1], self.ranks(n)
        after, before = share.numerator, share.denominator - share.numerator
        if len(ranks) == 1:
            return Gaps(((ranks[0], ranks[0]),))
        inner = min(before, after)
        return Gaps(((ranks[0], ranks[1]),), (before - inner, after - inner), inner)


class TrimmedSum(BetweenPoints):
    """The sum x_(L) + ... + x_(H), L = m + 1, H = n - m, divided by a number of records in `decode`.

    Replacing the t smallest records by the upper bound shifts every rank by t: ``upper[t] = x_(L+t) + ... + x_(H+t)``,
    and ``lower[t] = x_(L-t) + ... + x_(H-t)``.
    """

    adds = True

    @abstractmethod
    def cut(self, n: int) -> int:
        """m, the number of records left out of the sum on each side: 2 m < n."""

    def codes_per_step(self, n: int) -> int:
        return n - 2 * self.cut(n)

    def ranks(self, n: int) -> tuple[int, ...]:
        return self.cut(n) + 1, n - self.cut(n)

    def breakdown(self, n: int) -> int:
        return n - self.cut(n)

    def corner(self, n: int) -> int:
        """How often both ends of the sum are added once more."""
        return 0

    def attack_range(self, summary: Summary) -> tuple[Integers, Integers]:
        low, high = summary.windows
        lower, upper = np.empty(summary.levels, np.int64), np.empty(summary.levels, np.int64)
        _levels.shifted_sums(low, high, summary.total, self.corner(summary.n), lower, upper)
        return lower, upper

    def gaps(self, n: int) -> Gaps:
        first, last = self.ranks(n)
        corner = self.corner(n)
        return Gaps(((first, last),), (corner, corner))


@dataclass(frozen=True)
class TrimmedMean(TrimmedSum):
    """The mean of the records without the floor(trim * n) smallest and the floor(trim * n) largest.

    Parameters
    ----------
    trim : float
        Fraction cut from each side, in [0, 0.5). 0 is the mean.

    Examples
    --------
    >>> from dpfast.statistics.rank import TrimmedMean
    >>> TrimmedMean(0.1).ranks(100)
    (11, 90)
    """

    trim: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "trim", checks.trim(self.trim))

    def __str__(self) -> str:
        return f"{self.trim:g}-trimmed mean"

    def cut(self, n: int) -> int:
        return math.floor(self.trim * n)

    def functional(self, distribution: Distribution) -> Any:
        share = printed(self.trim)
        return distribution.between(share, 1 - share) / (1 - 2 * share)


@dataclass(frozen=True)
class WinsorizedMean(TrimmedSum):
    """The mean after replacing the floor(trim * n) smallest and largest records by the nearest remaining record.

    Parameters
    ----------
    trim : float
        Fraction replaced on each side, in [0, 0.5). 0 is the mean.
    """

    trim: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "trim", checks.trim(self.trim))

    def __str__(self) -> str:
        return f"{self.trim:g}-Winsorized mean"

    def cut(self, n: int) -> int:
        return math.floor(self.trim * n)

    def codes_per_step(self, n: int) -> int:
        return n

    def functional(self, distribution: Distribution) -> Any:
        share = printed(self.trim)
        inner = distribution.between(share, 1 - share)
        if not share:
            return inner
        return inner + share * distribution.quantile(share, above=True) + share * distribution.quantile(1 - share)

    def corner(self, n: int) -> int:
        return self.cut(n)


@dataclass(frozen=True)
class InterquartileRange(RankStatistic):
    """``Quantile(0.75)`` minus ``Quantile(0.25)``: ``x_(k2) - x_(k1)``. It is 0 for a single record.

    If a of t replaced records move the upper end and b the lower end, ``upper[t] = max(x_(k2+a) - x_(k1-b))`` and
    ``lower[t] = min(max(0, x_(k2-a) - x_(k1+b)))`` over a + b = t.
    """

    def __str__(self) -> str:
        return "interquartile range"

    def functional(self, distribution: Distribution) -> Any:
        low, high = distribution.quantile(Fraction(1, 4)), distribution.quantile(Fraction(3, 4))
        return high - low if high != low else Fraction(0)  # both may be infinite

    def turns(self, sample: Distribution, moved: Callable[[float], Distribution]) -> list[Any]:
        return [moved(end).quantile(Fraction(k, 4)) for end in (-math.inf, math.inf) for k in (1, 3)]

    def ranks(self, n: int) -> tuple[int, ...]:
        return Quantile(0.25).rank(n), Quantile(0.75).rank(n)

    def last(self, grid: Points, n: int) -> int:
        checks.released_range(lambda: (0.0, self.value(grid, n, grid.size - 1)))
        return grid.size - 1

    def value(self, grid: Points, n: int, code: int) -> float:
        return scaled(code, 1, grid.step)

    def decode(self, grid: Points, n: int, codes: ArrayLike | int) -> Any:
        values = containers.integers("codes", codes) * grid.step
        return values if values.ndim else float(values)

    def breakdown(self, n: int) -> int:
        first, last = self.ranks(n)
        return min(n, max(n - last + 1 + first, last - first))

    def attack_range(self, summary: Summary) -> tuple[Integers, Integers]:
        low, high = summary.windows
        lower, upper = np.empty(summary.levels, np.int64), np.empty(summary.levels, np.int64)
        first, last = self.ranks(summary.n)
        if first == last:
            lower[:] = upper[:] = 0
        else:
            _levels.difference_ranges(low, high, lower, upper)
        return lower, upper

    def gaps(self, n: int) -> Gaps:
        first, last = self.ranks(n)
        return Gaps(((first, first), (last, last)))


@dataclass(frozen=True)
class Huber(RankStatistic):
    """Huber's estimate of location: the least grid point theta with ``sum(clip(theta - x, -k, k)) >= 0``.

    It is near the mean of the records within distance k, and a farther record has the influence of one at distance k.

    Parameters
    ----------
    k : float
        The corner, in data units, positive; rounded to a multiple of the grid's step, at least one.
    """

    k: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.positive("k", self.k))

    def __str__(self) -> str:
        return f"Huber location with corner {self.k:g}"

    def functional(self, distribution: Distribution) -> Any:
        return distribution.huber(printed(self.k))

    def corner(self, grid: Points) -> int:
        """Return the corner in steps, at most the width of the grid: a larger corner has the same effect."""
        return max(1, round(min(self.k / grid.step, grid.size - 1)))

    def ranks(self, n: int) -> tuple[int, ...]:
        return 1, n

    def last(self, grid: Points, n: int) -> int:
        checks.code_range(n * (grid.size - 1))  # bounds the sums of clipped differences
        return grid.size - 1

    def value(self, grid: Points, n: int, code: int) -> float:
        return grid.value(code)

    def decode(self, grid: Points, n: int, codes: ArrayLike | int) -> Any:
        if isinstance(codes, int):
            return self.value(grid, n, codes)
        values = grid.decode(codes)
        return values if values.ndim else float(values)

    def breakdown(self, n: int) -> int:
        return n

    def reading(self, grid: Points, levels: Callable[[int], int]) -> Reading:
        def finish(codes: Integers) -> Summary:
            n, wanted = len(codes), levels(len(codes))
            if near := near_corners(codes[:, 0], self.corner(grid), grid.size - 1, wanted):
                return Summary(grid, n, wanted, (near[0],), rest=near[1])
            return Summary(grid, n, wanted, (ascending(codes),))

        return Codes((grid,), finish)

    def attack_range(self, summary: Summary) -> tuple[Integers, Integers]:
        [codes] = summary.windows
        lower, upper = np.empty(summary.levels, np.int64), np.empty(summary.levels, np.int64)
        _levels.huber_ranges(codes, self.corner(summary.grid), summary.grid.size - 1, lower, upper, summary.rest)
        return lower, upper

    def gaps(self, n: int) -> Gaps:
        raise TypeError("Huber has no gap form: use InverseSensitivity")
