"""Expected absolute errors under an assumed distribution, in milliseconds: from the laws for a few samples.

A choice among mechanisms needs errors to about 10 % before a first call; `dpfast.mechanisms.assumptions` has more
precise ones, from the laws for many imagined samples. For an average, one evenly spaced sample is enough; the noise on
an order statistic depends on the gaps around it, which are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, singledispatch
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfast.core.grid import Grid, Points
from dpfast.core.spending import imagined
from dpfast.laws import ClampedNoise, NestedIntervals
from dpfast.laws.nested import distinct
from dpfast.mechanisms.assumptions import Assumed, code_moments, samples_of_records, summaries, target, target_of_user
from dpfast.mechanisms.prediction import Expected
from dpfast.statistics import (
    Huber,
    InterquartileRange,
    LinearQuantile,
    Mean,
    OrderStatistic,
    RankStatistic,
    Statistic,
    Summary,
    TrimmedMean,
    UserStatistic,
    WinsorizedMean,
)
from dpfast.streaming import Integers

_Law = TypeVar("_Law")
_Sample = TypeVar("_Sample")
_SAMPLES = 32  # imagined samples for the gaps around an order statistic
_GROWTH = 35  # knots per factor e: cells of 3 %


def expected_error(
    law_of: Callable[[Summary], NestedIntervals | ClampedNoise],
    statistic: RankStatistic,
    assumed: Assumed,
    grid: Points,
    n: int,
    levels: int,
) -> Expected:
    """Return the expected error of a release with these laws, from summaries of so many levels.

    The bias of a mean that is cut at the bounds counts as noise.
    """
    sampling = _sampling_error(statistic, assumed, grid, n)
    if statistic.adds or isinstance(statistic, Huber):
        law = law_for(law_of, even_summary(statistic, assumed, grid, n, levels))
        population = target(statistic, assumed) if isinstance(statistic, Mean) else None
        return Expected(mean_distances(law, population)[0], sampling)
    laws = [law_for(law_of, sample) for sample in summaries(statistic, assumed, grid, n, levels, _SAMPLES)]
    population = target(statistic, assumed)
    noise, joint = np.mean([mean_distances(law, None, population) for law in laws], axis=0).tolist()
    return Expected(noise, sampling, joint)


def expected_error_of_user(
    law_of: Callable[[Summary], ClampedNoise], statistic: UserStatistic, assumed: Assumed, grid: Points, n: int
) -> Expected:
    """Return the expected error of a release of a statistic of the user with these laws."""
    population = target_of_user(statistic, assumed, grid, n)
    laws = [law_for(law_of, sample) for sample in samples_of_records(assumed, grid, n, _SAMPLES)]
    noise, joint = np.mean([mean_distances(law, None, population) for law in laws], axis=0).tolist()
    sampling = float(np.mean([abs(law.value(law.center) - population) for law in laws]))
    return Expected(noise, sampling, joint)


def law_for(law_of: Callable[[_Sample], _Law], sample: _Sample) -> _Law:
    """Return the law of the release given an imagined sample, also within a ledger."""
    with imagined():
        return law_of(sample)


def mean_magnitude(deviation: float) -> float:
    """E|X| of a normal variable X of mean 0."""
    return math.sqrt(2 / math.pi) * deviation


def even_summary(statistic: RankStatistic, assumed: Assumed, grid: Points, n: int, levels: int) -> Summary:
    """Return the summary of n records at the quantiles of the levels (i - 1/2) / n."""
    reach, ranks = levels - 1, statistic.ranks(n)
    if isinstance(statistic, Huber):
        return Summary(grid, n, levels, (_codes(assumed, grid, np.arange(1, n + 1), n),))
    windows = tuple(_codes(assumed, grid, np.arange(rank - reach, rank + reach + 1), n) for rank in ranks)
    return Summary(grid, n, levels, windows, _even_total(statistic, assumed, grid, n) if statistic.adds else 0)


@lru_cache(maxsize=64)
def _even_total(statistic: RankStatistic, assumed: Assumed, grid: Points, n: int) -> int:
    """Return the sum of the codes from the first to the last rank."""
    first, last = statistic.ranks(n)
    codes = grid.encode(assumed.nodes[0]).astype(np.float64)
    start, stop = assumed.integral(codes)(np.array([(first - 1) / n, last / n])).tolist()
    total: int = round(n * (stop - start))
    return total


@lru_cache(maxsize=64)
def _sampling_error(statistic: RankStatistic, assumed: Assumed, grid: Points, n: int) -> float:
    """Return E|exact statistic of n records - population value|, which mechanisms and epsilons share."""
    return mean_magnitude(sampling_deviation(statistic, assumed, grid, n))


def _codes(assumed: Assumed, grid: Points, ranks: Integers, n: int) -> Integers:
    """Return the codes of the records of these ranks: 0 below rank 1, the last one above rank n."""
    codes = np.asarray(grid.encode(assumed.points((np.clip(ranks, 1, n) - 0.5) / n)))
    return np.where(ranks < 1, 0, np.where(ranks > n, grid.size - 1, codes))


def mean_distances(law: NestedIntervals | ClampedNoise, *targets: float | None) -> list[float]:
    """E|release - target| for each target of a law whose values are evenly spaced; None is the exact statistic.

    The codes between two knots count with their middle. The knots are the ends of the intervals of equal score, or lie
    around the exact integer at distances that grow by 3 %.
    """
    first, last = law.support
    if isinstance(law, NestedIntervals):
        center, around = int(law.lower[0]), law.knots
    else:
        center = law.center
        away = np.geomspace(1, last + 1, 2 + int(_GROWTH * math.log(last + 2))).astype(np.int64)
        around = np.concatenate([center + away, center + 1 - away])
    start, stop = law.value(first), law.value(last)
    if start == stop:  # the variance of one record
        return [0.0 if target is None else abs(float(target - start)) for target in targets]
    unit = (stop - start) / max(last - first, 1)
    places = [center if target is None else first + (target - start) / unit for target in targets]
    cuts = [math.floor(min(max(place, first), last)) for place in places]  # a place may be infinite
    ends = [first, last + 1, *cuts, *(cut + 1 for cut in cuts)]
    knots = distinct(np.concatenate([around, ends]).clip(first, last + 1))
    middles, shares = (knots[:-1] + knots[1:] - 1) / 2, np.diff(law.cdf(knots - 1))
    return [float(np.sum(shares * np.abs(middles - place))) * float(unit) for place in places]


@singledispatch
def sampling_deviation(statistic: Statistic, assumed: Assumed, grid: Points, n: int) -> float:
    """Return the asymptotic standard deviation of the exact statistic of n records."""
    raise TypeError(f"no sampling error is known for the {statistic}")


@sampling_deviation.register
def _(statistic: OrderStatistic | LinearQuantile, assumed: Assumed, grid: Points, n: int) -> float:
    return _rises(assumed, grid, n, statistic.level)


@sampling_deviation.register
def _(statistic: InterquartileRange, assumed: Assumed, grid: Points, n: int) -> float:
    low, high = _rises(assumed, grid, n, 0.25), _rises(assumed, grid, n, 0.75)
    return math.sqrt(low**2 + high**2 - 2 / 3 * low * high)  # the correlation of two quartiles is 1/3


@sampling_deviation.register
def _(statistic: TrimmedMean, assumed: Assumed, grid: Points, n: int) -> float:
    low, high, values, mass = _clipped(statistic.trim, assumed, grid)
    return _deviation(np.clip(values, low, high), mass) / (1 - 2 * statistic.trim) / math.sqrt(n)


@sampling_deviation.register
def _(statistic: WinsorizedMean, assumed: Assumed, grid: Points, n: int) -> float:
    low, high, values, mass = _clipped(statistic.trim, assumed, grid)
    trim = statistic.trim
    influence = np.clip(values, low, high)
    if trim:  # a record below the first quantile moves this quantile down
        scale = trim / math.sqrt(trim * (1 - trim) / n)
        influence = influence - (values < low) * scale * _rises(assumed, grid, n, trim)
        influence = influence + (values > high) * scale * _rises(assumed, grid, n, 1 - trim)
    return _deviation(influence, mass) / math.sqrt(n)


@sampling_deviation.register
def _(statistic: Huber, assumed: Assumed, grid: Points, n: int) -> float:
    values, mass = assumed.nodes
    away = np.clip(values, *_ends(grid)) - float(statistic.functional(assumed))
    inside = float(np.sum(mass[np.abs(away) < statistic.k]))
    return math.sqrt(float(np.sum(mass * np.clip(away, -statistic.k, statistic.k) ** 2)) / n) / max(inside, 1 / n)


@sampling_deviation.register
def _(statistic: Mean, assumed: Assumed, grid: Grid, n: int) -> float:
    return math.sqrt(code_moments(assumed, grid)[1] / n) * grid.step


def _ends(grid: Points) -> tuple[float, float]:
    return grid.value(0), grid.value(grid.size - 1)


def _rises(assumed: Assumed, grid: Points, n: int, level: float) -> float:
    """Half of the rise of the quantile function within one standard deviation of the level of a quantile."""
    away = math.sqrt(max(level * (1 - level), 1 / n) / n)
    low, high = np.clip(assumed.points(np.clip([level - away, level + away], 0.5 / n, 1 - 0.5 / n)), *_ends(grid))
    return float(high - low) / 2


def _clipped(
    trim: float, assumed: Assumed, grid: Points
) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the quantiles at which a mean is cut, and the values and masses of the nodes within the bounds."""
    values, mass = assumed.nodes
    values = np.clip(values, *_ends(grid))
    unit = _unit(values)
    low, high = (np.interp([trim, 1 - trim], np.cumsum(mass), values / unit) * unit).tolist()
    return low, high, values, mass


def _deviation(values: NDArray[np.float64], mass: NDArray[np.float64]) -> float:
    unit = _unit(values)
    away = values / unit - float(np.sum(mass * (values / unit)))
    return unit * math.sqrt(float(np.sum(mass * away**2)))


def _unit(values: NDArray[np.float64]) -> float:
    """Return a power of two near the largest magnitude: in these units, squares and slopes are doubles."""
    return 2.0 ** (math.frexp(float(np.max(np.abs(values))))[1] - 1)
