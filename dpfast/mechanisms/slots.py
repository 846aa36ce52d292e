"""The ranks of several quantiles if some of n records are missing: each missing record takes away one place."""

from __future__ import annotations

import bisect
import itertools
import math
from dataclasses import dataclass

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
        ranks = self.ranks_without(absent)
        return all(low < high for low, high in itertools.pairwise([0, *ranks]))


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
