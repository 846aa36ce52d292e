"""The ranks of several quantiles if some of n records are missing: each missing record takes away one place."""

from __future__ import annotations

import bisect
import itertools
import math
from dataclasses import dataclass

from dpfast.statistics import OrderStatistic

_GOLDEN = 0.618


@dataclass(frozen=True)
class Slots:
    """The places 1..n of sorted records, of which missing records take away one after the other, evenly spread.

    The i-th missing record takes away the place ``1 + (i * stride mod n)``, the n-th the place 1. A rank is lowered by
    each place up to it that is taken away.

    Parameters
    ----------
    n : int
        The public number of records.
    ranks : tuple of int
        Of n records, distinct and in order.

    Notes
    -----
    A further missing record lowers the distance of one rank from that before, and no other
    (https://dpfast.readthedocs.io/en/latest/proofs/missing.html). Cost: O(log n) for each rank.
    """

    n: int
    ranks: tuple[int, ...]

    @property
    def stride(self) -> int:
        """A number near the golden section of n, without a common divisor."""
        near = max(round(_GOLDEN * self.n), 1)
        candidates = (near + sign * away for away in itertools.count() for sign in (1, -1))
        return next(s for s in candidates if 1 <= s <= self.n and math.gcd(s, self.n) == 1)

    def ranks_without(self, absent: int) -> list[int]:
        """Return the ranks if so many records are missing."""
        return [rank - _multiples_below(rank, self.n, self.stride, absent) for rank in self.ranks]

    def left_out(self, absent: int) -> int:
        """Return how many of the missing records can be left out so that the ranks are distinct, and at least 1."""
        return bisect.bisect_left(range(absent), True, key=lambda k: not self._distinct(k + 1))

    def _distinct(self, absent: int) -> bool:
        places = [0, *self.ranks_without(absent), self.n - absent + 1]
        return all(low < high for low, high in itertools.pairwise(places))


@dataclass(frozen=True)
class Anchored(Slots):
    """The places if missing records take away those beyond all ranks, as the rank of one quantile of n moves.

    Parameters
    ----------
    n, ranks
        As for `Slots`.
    anchor : OrderStatistic
        Several ranks keep their distances from that of this quantile, as far as there are as many records on that side,
        and are then 1, or the last. One rank keeps its distance; records beyond it are left out as far as there are.
    """

    anchor: OrderStatistic

    def ranks_without(self, absent: int) -> list[int]:
        n = self.n - absent
        ranks = [rank - taken_below(self.anchor, self.n, absent) for rank in self.ranks]
        return [min(max(rank, 1), n) for rank in ranks] if len(ranks) > 1 else ranks


def taken_below(statistic: OrderStatistic, n: int, absent: int) -> int:
    """Return by how much the rank of a quantile is less if so many of n records are missing."""
    return statistic.rank(n) - (statistic.rank(n - absent) if absent < n else 0)


def _multiples_below(limit: int, n: int, stride: int, count: int) -> int:
    """Return how many i of 1..count have ``i * stride mod n < limit``, for a limit from 0 to n."""
    return _floors(count, n, stride, stride) - _floors(count, n, stride, stride - limit + n) + count


def _floors(count: int, n: int, factor: int, start: int) -> int:
    """Return the sum of ``(factor * i + start) // n`` for i = 0..count - 1, by Euclid's algorithm."""
    total = 0
    while count > 0:
        total += (count - 1) * count // 2 * (factor // n) + count * (start // n)
        factor, start = factor % n, start % n
        reached = factor * count + start
        if reached < n:
            break
        count, start, n, factor = reached // n, reached % n, factor, n
    return total
