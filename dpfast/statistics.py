"""What is released: each statistic knows its ranks, its value and its attack range on sorted codes.

The attack range ``[lower[t], upper[t]]`` is the least and greatest value after t replaced records; it is all that the
inverse sensitivity mechanism needs. docs/proofs/nested-intervals.md
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast import _checks
from dpfast.grid import Grid


class Statistic(ABC):
    """A public recipe for one number; holds parameters only, never data."""

    @abstractmethod
    def last(self, grid: Grid) -> int:
        """The largest code of a release; the smallest is 0."""

    @abstractmethod
    def breakdown(self, n: int) -> int:
        """The least t at which t replaced records of n can move the statistic anywhere."""

    @abstractmethod
    def ranks(self, n: int, levels: int) -> tuple[int, int]:
        """First and last rank (from 1; outside 1..n stands for the bounds) that the levels 0..levels - 1 look at."""

    @abstractmethod
    def attack_range(self, window: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Least and greatest value after t = 0, 1, ... replaced records, from the sorted codes at `ranks`."""

    def gaps(self, n: int) -> list[tuple[int, int]]:
        """Pairs (L, H) of ranks: one record can change the statistic by ``x_(H+1) - x_(L)`` or ``x_(H) - x_(L-1)``.

        No change is larger than the largest of these. TypeError for a statistic without such pairs.
        """
        raise TypeError(f"{type(self).__name__} has no smooth sensitivity in gaps")

    def stretches(self, n: int) -> list[list[tuple[int, int, int]]]:
        """What one record can change, as gaps: the largest over the lists of the sums of ``weight * (x_(b) - x_(a))``.

        Each entry is (weight, a, b), a < b, ranks from 0 to n + 1, where the bounds stand.
        """
        return [[(1, a, b)] for low, high in self.gaps(n) for a, b in ((low, high + 1), (low - 1, high))]


class OrderStatistic(Statistic):
    """The k-th smallest of n records, k a function of n: attack range ``[x_(k-t), x_(k+t)]``."""

    @abstractmethod
    def rank(self, n: int) -> int:
        """k, from 1 to n."""

    def last(self, grid: Grid) -> int:
        return grid.size - 1

    def breakdown(self, n: int) -> int:
        k = self.rank(n)
        return max(k, n - k + 1)

    def ranks(self, n: int, levels: int) -> tuple[int, int]:
        k = self.rank(n)
        return k - levels + 1, k + levels - 1

    def attack_range(self, window: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        center = len(window) // 2
        return window[center::-1], window[center:]

    def gaps(self, n: int) -> list[tuple[int, int]]:
        return [(self.rank(n), self.rank(n))]


@dataclass(frozen=True)
class Quantile(OrderStatistic):
    """The order statistic of rank ``max(1, ceil(q * n))``: the inverse of the empirical distribution function.

    Parameters
    ----------
    q : float
        In [0, 1]; 0 is the minimum, 1 the maximum.

    Examples
    --------
    >>> from dpfast.statistics import Quantile
    >>> Quantile(0.25).rank(100)
    25
    >>> print(Quantile(0.25))
    0.25-quantile
    """

    q: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", _checks.fraction("q", self.q))

    def __str__(self) -> str:
        return f"{self.q:g}-quantile"

    def rank(self, n: int) -> int:
        return max(1, math.ceil(self.q * n))


@dataclass(frozen=True)
class Median(OrderStatistic):
    """The lower median: the order statistic of rank ``(n + 1) // 2``."""

    def __str__(self) -> str:
        return "median"

    def rank(self, n: int) -> int:
        return (n + 1) // 2
