"""Whether a release may be absurd or a guess, from public numbers.

A release within bounds tells hardly more than they do if its root mean squared error, of noise, exceeds half of the
standard deviation of records that are spread evenly over them, a seventh of their width; of a measure of spread a
quarter of its value for such records (`Mechanism.enough`).
Without bounds it is absurd if it is far outside of all records, by several times their range, as most points are: the
exponential mechanism releases one of them with a probability of about the weight of all points over that near the
quantile, times exp(-epsilon t / 2), t the number of records on the shorter side. The weight near the quantile depends
on the records, so the rule is for a stated class of them. https://dpfast.readthedocs.io/en/latest/guides/bounds.html
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._measures import Measure
from dpfast.core.grid import FloatGrid, Grid
from dpfast.core.traps import Trap, is_guess, of_few_records

if TYPE_CHECKING:
    from dpfast.mechanisms.mechanism import Mechanism

_MOST_CHANCE = 0.01
# The class: numbers of three digits, or spread over at least a thousandth of their size; below 1e6, and not tiny.
_DECADES = range(-3, 6)
_BINADES = range(-10, 20)
_SPREAD = 1e-3
_ENOUGH = (
    50.0  # n epsilon min(q, 1 - q), from which on no release from the columns of docs/results/columns.md was absurd
)
# Standard errors times n epsilon, in widths of the bounds, for records that are spread evenly over them: of Laplace
# noise on a mean, and of the exponential mechanism on estimates that one record moves by 1 / n of the bounds. By
# simulation medians, trimmed and Winsorized means, interquartile ranges, Huber's and M-estimates have 2.6 to 3.2.
OF_NOISE, OF_SELECTION = math.sqrt(2), 2 * math.sqrt(2)
EVEN_VARIANCE = 1 / 12  # of such records
EVEN_RANGE = 1 / 2  # between their quartiles
# A quarter of the width, .87 of the standard deviation of such records, was too much: people's ages within (0, 100) and
# normal numbers with a seventh of the width as their deviation then had errors of 1.2 and 1.6 of their own deviations.
_MOST_ERROR = math.sqrt(EVEN_VARIANCE) / 2
_LEAST_EPSILON = 2.0**-60  # below which no number of records is enough
_NEAR = 4.0  # ranks, times epsilon, around the quantile within which a release is as likely as the quantile itself


@lru_cache(maxsize=256)
def least_product(
    grid: FloatGrid, measure: Measure | None, levels: tuple[float, ...], per_record: float = 1.0
) -> float:
    """Return the least n epsilon for which quantiles of these levels are absurd with a probability of at most 1 %.

    per_record: by how many records one that is changed moves the number below a point; where it is added or removed, q
    or 1 - q. Infinite if one of the levels is 0 or 1. For several quantiles, j of them on one side may be absurd
    together, which takes n times the j-th level replaced records.
    """
    least = min(min(level, 1 - level) for level in levels)
    if least <= 0:
        return math.inf if math.isfinite(_odds(grid, measure)[1]) else 0.0
    low, high = 0.0, 1.0
    while not suffices(grid, measure, levels, high, per_record):
        low, high = high, 2 * high
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(grid, measure, levels, middle, per_record) else (middle, high)
    return high


def suffices(
    grid: FloatGrid, measure: Measure | None, levels: Sequence[float], product: float, per_record: float = 1.0
) -> bool:
    """Whether quantiles of these levels are absurd with a probability of at most 1 % for this n epsilon."""
    ties, spread = _odds(grid, measure)
    if not math.isfinite(spread):  # no number of the class is inside the bounds of the grid
        return True
    target = math.log(len(levels) / _MOST_CHANCE)
    odds = max(ties, spread + math.log(max(product, 1.0)))
    sides = sorted(levels), sorted(1 - level for level in levels)
    needed = [j * odds - math.lgamma(j + 1) + target for j in range(1, len(levels) + 1)]
    if measure is not None:
        needed[0] = min(needed[0], _ENOUGH / 2)
    half = product / per_record / 2
    return all(half * tail >= need for side in sides for tail, need in zip(side, needed, strict=True) if tail <= 0.5)


@lru_cache(maxsize=64)
def _odds(grid: FloatGrid, measure: Measure | None) -> tuple[float, float]:
    """Logarithms of the weight of all points over that of one of three digits, and over n epsilon times that of ranks.

    These are the few ranks around a quantile of records that are spread over a thousandth of their size.
    """
    total = grid.size if measure is None else measure.total
    numbers = np.array([101 * 10.0 ** (d - 2) for d in _DECADES])
    numbers = np.concatenate([numbers, -numbers])
    codes = grid.encode(numbers[(numbers >= grid.lower) & (numbers <= grid.upper)])
    edges = 2.0 ** np.arange(_BINADES.start, _BINADES.stop + 1)
    edges = edges[(edges >= grid.lower) & (edges <= grid.upper)]
    starts, sizes = grid.encode(edges)[:-1], np.diff(grid.encode(edges))
    fine = sizes >= 1 / _SPREAD  # in others records that are not round are tied, or few
    starts, sizes = starts[fine], sizes[fine]
    if not len(codes) or not len(starts):
        return 0.0, math.inf
    ties, even = np.ones(1, np.int64), np.ones(1, np.int64)
    if measure is not None:
        between = starts + sizes // 3 + 1  # a point that is not round
        ties, even = measure.weights(codes, codes), measure.weights(between, between)
    spread = math.log(2) / _SPREAD / _NEAR * total / float(np.min(even * sizes))
    return math.log(total / float(np.min(ties))), math.log(spread)


def are_few(mechanism: Mechanism, sizes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of these numbers of records, public or released ones, are too few for the mechanism.

    Either a count of so many with the same epsilon would be a guess, or a release may be far from all records. A search
    finds the least number that is enough; all below it are few.
    """
    plan, epsilon = mechanism.plan(), mechanism.privacy.epsilon

    def is_enough(n: float) -> bool:
        return n >= 1 and not is_guess(math.sqrt(2) / epsilon, n) and not any(plan.traps_of(int(n)))

    found = np.unique(sizes)
    place = bisect.bisect_left(found.tolist(), True, key=is_enough)
    return sizes < (found[place] if place < len(found) else math.inf)


def enough_for_error(error: float, epsilon: float = 1.0, *, spread: float | None = None) -> float:
    """Return the number of records from which a release tells more than its bounds do: `Mechanism.enough`.

    Parameters
    ----------
    error : float
        The standard error of the release times n epsilon, for records that are spread evenly over bounds of width 1:
        `OF_NOISE`, `OF_SELECTION` or of that kind. Without an epsilon, times n.
    epsilon : float
    spread : float, optional
        Of a measure of spread, its value for such records; the error is to be a quarter of it. None: half of the
        records' standard deviation.
    """
    most = _MOST_ERROR if spread is None else spread / 4
    return error / most / epsilon if epsilon > _LEAST_EPSILON else math.inf


def enough_for_quantiles(grid: Grid, levels: Sequence[float], epsilon: float, per_record: float = 1.0) -> float:
    """Return the number of records from which quantiles within bounds are outside of all with at most 1 %.

    For records that are spread over a thousandth of the bounds, and by exp(-epsilon t), t the number of records on the
    shorter side; of several quantiles by half of epsilon. For records that are spread evenly fewer do.
    """
    inside = [float(min(level, 1 - level)) for level in levels if 0 < level < 1]
    if not inside:  # the least or the greatest record
        return enough_for_error(OF_SELECTION, epsilon)
    needed = math.log(min(grid.size, 1 / _SPREAD)) + math.log(len(levels) / _MOST_CHANCE)
    needed *= (1 + (len(levels) > 1)) * per_record / min(inside)
    return needed / epsilon if epsilon > _LEAST_EPSILON else math.inf


def of_quantiles(
    grid: FloatGrid, measure: Measure | None, levels: tuple[float, ...], n: int, epsilon: float, per_record: float = 1.0
) -> Iterator[Trap]:
    """Yield the trap of quantiles without bounds of too few records."""
    yield from of_few_records(n, epsilon, least_product(grid, measure, levels, per_record))
