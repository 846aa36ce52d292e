"""Estimates with an interval for the population value, from one private release."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.choosing import split
from dpfast.core import checks, containers
from dpfast.core.grid import Grid, Points, check_grid, check_points
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import down, up
from dpfast.core.traps import Trap, of_few_records
from dpfast.laws import DiscreteLaplace, Independent, IntegerNoise, NoisyIntegers
from dpfast.mechanisms.assumptions import normal_plus_noise_error
from dpfast.mechanisms.foreseen import GUESS, Foreseen
from dpfast.mechanisms.globally import GlobalSensitivity
from dpfast.mechanisms.integer_noise import integer_noise
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.present import PresentMean
from dpfast.mechanisms.quantiles import Quantiles
from dpfast.mechanisms.released import Estimate
from dpfast.mechanisms.resized import Resized, resized
from dpfast.mechanisms.slots import Anchored, Slots, taken_below
from dpfast.mechanisms.subsampled import RecordsPlan
from dpfast.statistics import Count, Mean, Median, Quantile, Statistic, Sum, UnboundedStatistic, Variance
from dpfast.streaming import Array, Chunks, CodeSums, Counts, Integers, PresentSum, PresentSums, Reading, Sums


def interval_for(
    statistic: Statistic,
    grid: Points,
    epsilon: float,
    confidence: float,
    neighbors: str = "replace-one",
    *,
    root: bool = False,
) -> Mechanism:
    """Return the mechanism that releases an `Estimate` of a statistic; `root` for the standard deviation.

    Raises a TypeError for a statistic without an interval.
    """
    if not isinstance(statistic, (Median, Quantile, Mean, Variance, Sum, Count)):
        raise TypeError(f"no interval is known for {statistic!r}: use a median, quantile, mean, variance, sum or count")
    if neighbors != "replace-one" and not isinstance(statistic, UnboundedStatistic):
        return _ResizedInterval(statistic, grid, epsilon, confidence, root)
    if isinstance(statistic, (Median, Quantile)):
        check_points(grid)
        return _QuantileInterval(statistic, grid, epsilon, confidence)
    check_grid(grid)
    assert isinstance(grid, Grid)
    if isinstance(statistic, Mean):
        return _MeanInterval(statistic, grid, epsilon, confidence)
    if isinstance(statistic, Variance):
        return _VarianceInterval(statistic, grid, epsilon, confidence, root)
    return _NoiseInterval(statistic, grid, epsilon, confidence, neighbors)


@dataclass(frozen=True, repr=False)
class IntervalMechanism(Mechanism):
    """A release of an `Estimate`, described by public parameters."""

    releases_numbers: ClassVar[bool] = False

    statistic: Statistic
    grid: Points
    epsilon: float
    confidence: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "confidence", checks.between("confidence", self.confidence, 0, 1))
        self.check_missing()
        _ = self.privacy_profile  # makes the parts, whose constructors check the parameters

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    @property
    def parts(self) -> tuple[str, ...]:
        return "value", "low", "high"

    @abstractmethod
    def _make_plan(self, n: int | None) -> Plan:
        return super()._make_plan(n)

    def range_of(self, n: int | None) -> tuple[float, float]:
        """Return the public range of the value for n records; None for a private number."""
        return self.grid.lower, self.grid.upper

    def estimate(self, value: float, low: float, high: float, *, n: int | None) -> Estimate:
        """Return the released numbers as an estimate from n records; None for a private number."""
        return Estimate(value, low, high, self.confidence, self.privacy, self.range_of(n))

    def __repr__(self) -> str:
        return f"<estimate of the {self._what} with a {100 * self.confidence:.10g} % interval: {self.privacy}>"

    @property
    def _what(self) -> str:
        """What is estimated."""
        return str(self.statistic)


# ---- private numbers of records ----

_OF_SIZE = 0.02  # the share of the probability that an interval is wrong because its sample is filled up


class _OfSample(RecordsPlan):
    """A draw of an estimate from a sample of a noisy number of records."""

    mechanism: _ResizedInterval

    @property
    def traps(self) -> tuple[Trap, ...]:  # type: ignore[override]
        return self.mechanism._sampling.plan().traps

    def traps_of(self, n: int) -> Iterable[Trap]:
        return self.mechanism._sampling.plan().traps_of(n)

    def read(self, values: Any, threads: int = 1) -> tuple[Plan, Any]:
        return self, self.mechanism._sampling.plan().read(values, threads)[1]

    def release(self, records: Any, source: np.random.BitGenerator, threads: int) -> Estimate:
        sampling = self.mechanism._sampling.plan()
        assert isinstance(sampling, RecordsPlan)
        return self.mechanism.estimate(*sampling.release(records, source, threads), n=None)


@dataclass(frozen=True, repr=False)
class _ResizedInterval(IntervalMechanism):
    """Release an estimate with an interval for a public number of records, and keep their number private.

    Parameters
    ----------
    statistic : Median, Quantile, Mean or Variance
    grid : Grid or FloatGrid
    epsilon, confidence : float
    root : bool
        Whether to release the standard deviation.

    Notes
    -----
    A random sample of independent records is one of the same population: given its size, its interval is wrong with 49
    parts of 50 of the allowed probability. The sample is filled up with the other part.
    """

    root: bool

    counts_first = Resized.counts_first

    @cached_property
    def _sampling(self) -> Resized:
        """The release of the estimate from a sample."""
        drops, wrong = self.grid.missing == "drop", 1 - self.confidence
        grid = self.grid.with_missing("lower") if drops else self.grid
        confidence = 1 - wrong * (1 - _OF_SIZE)

        def made(epsilon: float) -> Mechanism:
            return interval_for(self.statistic, grid, epsilon, confidence, root=self.root)

        missing = "drop" if drops else None
        return resized(made, epsilon=self.epsilon, missing=missing, filled=wrong * _OF_SIZE)

    @property
    def _what(self) -> str:
        return self._inner._what

    @property
    def _inner(self) -> IntervalMechanism:
        assert isinstance(self._sampling.mechanism, IntervalMechanism)
        return self._sampling.mechanism

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, neighbors="add-remove")

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return self._sampling.privacy_profile

    def range_of(self, n: int | None) -> tuple[float, float]:
        return self._inner.range_of(n)

    def values_of(self, x: Any) -> Any:
        return x if isinstance(x, Chunks) else containers.vector("x", x)

    def _make_plan(self, n: int | None) -> Plan:
        return _OfSample(self, None)

    def _explained_split(self, n: int | None) -> str:
        return self._sampling._explained_split(n)

    def _explained_error(self, n: int | None) -> str:
        inner, known = self._inner, self._sampling._explained_error(None)
        if not isinstance(inner, _QuantileInterval):
            return known
        return f"{known}. {inner.explained_few(inner.least_narrow + self._sampling.margin)}"

    def _foreseen_of_many(self, n: int) -> Foreseen | None:
        return self._sampling.foreseen(n)


# ---- quantiles ----

# The shares of epsilon of the candidates, of the counts beyond them, and of the counts beyond second candidates. These
# and the numbers below are by simulation, for n epsilon from 300 to 1e5: with shares of .4, .4 and .2, a margin of 12,
# a second one of 4 and a stretch of 2 intervals were 4 to 12 % wider on average, the widest tenth 20 to 30 %.
_CANDIDATES, _FIRST, _SECOND = Fraction(9, 20), Fraction(2, 5), Fraction(3, 20)
_OF_FIRST = 0.9  # the share of the first candidate in the probability that an end of the interval is wrong
_MARGIN = 4, 4  # ranks, times epsilon, by which a first candidate is beyond its limit: and more with log10(n epsilon)
_LEAST_MARGIN = 12
_SECOND_MARGIN = 3  # noise scales by which a second candidate aims beyond its limit
_STRETCH = 1.5  # of the distance of a second candidate: tails are sparser
_MOST_RECORDS = 2**50
_MOST_EXCESS = 36  # records, times epsilon, above its limit, for which a second candidate is extrapolated


@dataclass(frozen=True, repr=False)
class _QuantileInterval(IntervalMechanism):
    """Release a quantile and an interval whose ends are certified by noisy counts of the records beyond them.

    Parameters
    ----------
    statistic : Median or Quantile
    grid : Grid or FloatGrid
    epsilon, confidence : float

    Notes
    -----
    The joint release of `Quantiles` gives the estimate and a candidate for each end. A candidate is an end if the noisy
    number of records strictly beyond it is at most a public limit, which is exceeded with the stated probability
    whenever the population quantile is beyond the candidate. Else there is a second one: extrapolated and counted
    again, or, where counts show ties, an order statistic so far out that a bound of the exponential mechanism for all
    data suffices; else the end of the grid. Valid for any population and grid, with ties
    (https://dpfast.readthedocs.io/en/latest/proofs/intervals.html).
    """

    statistic: Median | Quantile

    @property
    def leaves_out(self) -> bool:
        """Whether missing records are left out: the interval is for the population of the others."""
        return self.grid.missing == "drop"

    @cached_property
    def _shares(self) -> tuple[float, float, float]:
        """The parts of epsilon, rounded down."""
        candidates, first, second = (
            checks.positive_down("epsilon", Fraction(self.epsilon) * share) for share in (_CANDIDATES, _FIRST, _SECOND)
        )
        return candidates, first, second

    def _explained_split(self, n: int | None) -> str:
        of = f"the {self.statistic} and candidates for the ends", "counts beyond these", "further candidates"
        return split(dict(zip(of, self._shares, strict=True)))

    def _explained_error(self, n: int | None) -> str:
        return f"{super()._explained_error(n)}. {self.explained_few(self.least_narrow)}"

    def _foreseen_of_many(self, n: int) -> Foreseen | None:
        candidates = self._candidates([1, 2, 3], 3)
        few = candidates.foreseen(n) is GUESS
        return GUESS if few else Foreseen.of_rank(candidates.ranks_away, self.statistic.level, n)

    def explained_few(self, least: int) -> str:
        """Return what becomes of intervals from fewer records."""
        return f"With fewer than about {least:,} records, ends of the interval are often the bounds of the grid"

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """Of the candidates, of two counts that a record changes by 1 each, and of one such count, which costs more."""
        candidates, first, second = self._shares
        parts = ("bounded-range", candidates, 1), ("discrete-laplace", first / 2, 2), ("discrete-laplace", second, 1)
        return PrivacyProfile(self.privacy, parts)

    counts_first = "an interval is made in steps, each of which reads all records: use Chunks"

    def values_of(self, x: Any) -> Any:
        return x if isinstance(x, Chunks) else containers.vector("x", x)

    def _make_plan(self, n: int | None) -> Plan:
        return super()._make_plan(n) if n is None else _Certified(self, checks.records(n))

    def _limits(self, n: int) -> _Limits:
        rank = self.statistic.rank(n) if self.leaves_out else None
        return _limits(n, self.statistic.level, rank, self.confidence, *self._shares[1:], self._log_points)

    def _places(self, n: int, limits: _Limits) -> tuple[list[int], tuple[int, int, int]]:
        """Return the ranks of the candidates, counted from either end, 0 for none; and those of the release, from
        below.
        """
        middle = self.statistic.rank(n)
        inner, margin = (middle, n + 1 - middle), self._margin(n)
        ranks = [min(max(limit - margin, 1), most) for limit, most in zip(limits.first, inner, strict=True)]
        ranks = [rank if limit >= 0 else 0 for rank, limit in zip(ranks, limits.first, strict=True)]
        return ranks, (ranks[0] or middle, middle, n + 1 - (ranks[1] or inner[1]))

    def _margin(self, n: int) -> int:
        """Return the ranks by which first candidates are beyond their limit.

        An interval of more records is wider in ranks, so that a candidate which is more often confirmed costs less.
        """
        first, more = _MARGIN
        scaled = first + more * (math.log10(n) + math.log10(self.epsilon))  # the product may be infinite
        return math.ceil(max(scaled, _LEAST_MARGIN) / self.epsilon)

    @cached_property
    def least_narrow(self) -> int:
        """The number of records from which on candidates have their margin; with fewer, ends may be those of the grid.

        Public.
        """

        def is_few(n: int) -> bool:
            return min(self._limits(n).first) <= self._margin(n)

        low, high = 1, 2
        while is_few(high) and high < _MOST_RECORDS:
            low, high = high, 2 * high
        while high - low > max(low // 100, 1):
            middle = (low + high) // 2
            low, high = (middle, high) if is_few(middle) else (low, middle)
        return high

    def _candidates(self, places: Sequence[int], n: int) -> Quantiles:
        """Return the release of the first candidates and the quantile, of these ranks."""
        return self._around([(place - 0.5) / n for place in places], self._shares[0])

    def _statistic_of_order(self, end: int, rank: int, n: int, epsilon: float) -> Quantiles:
        """Return the release of the order statistic of this rank from the lower or the upper end, 0 or 1."""
        return self._around([((n + 1 - rank if end else rank) - 0.5) / n], epsilon, absent_last=end == 1)

    def _around(self, levels: Sequence[float], epsilon: float, *, absent_last: bool = False) -> Quantiles:
        return _Around(levels, grid=self.grid, epsilon=epsilon, statistic=self.statistic, absent_last=absent_last)

    @cached_property
    def _log_points(self) -> float:
        """The logarithm of the number of points, or of the weight of all over the least weight of one."""
        measure = self._candidates([1], 1).base_measure
        return math.log(self.grid.size if measure is None else measure.total / measure.least)


@dataclass(frozen=True, repr=False)
class _Around(Quantiles):
    """Release order statistics at public distances from a quantile, in ranks of the records that are not missing.

    Parameters
    ----------
    qs, grid, epsilon
        As for `Quantiles`.
    statistic : Median or Quantile
        That from whose rank the others keep their distances if records are missing.
    absent_last : bool
        Whether missing records that cannot be left out, as a single rank would be beyond the others, are above them.
    """

    statistic: Median | Quantile = field(kw_only=True)
    absent_last: bool = field(kw_only=True, default=False)

    def slots(self, n: int, ranks: tuple[int, ...]) -> Slots:
        return Anchored(n, ranks, self.statistic)


class _Certified(Plan):
    """A draw of an interval from n records.

    Ranks and codes of both ends are counted outward from the middle: from 1 and 0 at the ends; 0 is no candidate.
    """

    mechanism: _QuantileInterval
    n: int

    def __init__(self, mechanism: _QuantileInterval, n: int) -> None:
        super().__init__(mechanism, n)
        self._limits = mechanism._limits(n)
        self._ranks, self._places = mechanism._places(n, self._limits)

    @cached_property
    def _first(self) -> Quantiles:
        """The release of the quantile and of the first candidates."""
        return self.mechanism._candidates(self._places, self.n)

    @cached_property
    def traps(self) -> tuple[Trap, ...]:  # type: ignore[override]
        if isinstance(self.mechanism.grid, Grid) or not self._first.plan(self.n).traps:
            return ()
        epsilon = self._first.epsilon
        return tuple(of_few_records(self.n, epsilon, (self._enough() - 0.5) * epsilon))

    def _enough(self) -> float:
        """Return a number of records above n that is not too few without bounds, at their own ranks; or infinity."""

        def is_few(n: int) -> bool:
            return bool(_Certified(self.mechanism, n)._first.plan(n).traps)

        low, high = self.n, 2 * self.n
        while is_few(high):
            if high >= _MOST_RECORDS:
                return math.inf
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_few(middle) else (low, middle)
        return high

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> Estimate:
        mechanism, n, limits, ranks, places = self.mechanism, self.n, self._limits, self._ranks, self._places
        grid, last, shares = mechanism.grid, mechanism.grid.size - 1, mechanism._shares

        def quantiles(finding: Quantiles) -> list[float]:
            released: list[float] = finding.plan(n).draw(values, source, threads).tolist()
            return released

        def counts(ends: list[int], scale: Fraction) -> list[int]:
            counting = _Beyond(mechanism.statistic, grid, ends[0], last - ends[1], scale)
            beyond: list[int] = counting.plan(n).draw(values, source, threads).tolist()
            return beyond

        def outward(end: int, value: float) -> int:
            code = int(grid.encode(np.array([value]))[0])  # a list takes twice as long
            return last - code if end else code

        found = quantiles(self._first)
        ends = [outward(end, found[2 * end]) if ranks[end] else 0 for end in (0, 1)]
        beyond = counts(ends, 2 / Fraction(shares[1]))
        failed = [end for end in (0, 1) if ends[end] and beyond[end] > limits.first[end]]
        if failed:
            second, k = Fraction(shares[2]), len(failed)
            between, spacing = places[2] - places[0], (found[2] - found[0]) / max(places[2] - places[0], 1)
            tied = all(ranks) and n - sum(beyond) < between / 2
            tries = [0, 0]
            for end in failed:
                excess, limit = beyond[end] - limits.first[end], limits.counts[k - 1][end]
                rank = limits.ranks[k - 1][end]
                if rank > 0 and (tied or limit < 0 or excess > _MOST_EXCESS / mechanism.epsilon):
                    [value] = quantiles(mechanism._statistic_of_order(end, rank, n, float(second / k)))
                    ends[end] = outward(end, value)
                    continue
                aim = max(limit - math.ceil(_SECOND_MARGIN * k / second), 0)
                further = _STRETCH * (beyond[end] - aim) * spacing
                moved = outward(end, found[2 * end] + (further if end else -further))
                tries[end] = max(min(moved, ends[end] - 1), 0) if limit >= 0 else 0
                ends[end] = 0
            again = counts(tries, k / second)
            ends = [
                tried if tried and count <= limit else end
                for end, tried, count, limit in zip(ends, tries, again, limits.counts[k - 1], strict=True)
            ]
        ends[0] = min(ends[0], last - ends[1])  # order statistics that are released one after another may cross
        center = min(max(outward(0, found[1]), ends[0]), last - ends[1])
        value, lower, upper = grid.decode([center, ends[0], last - ends[1]]).tolist()
        return mechanism.estimate(value, lower, upper, n=n)


class _Limits:
    """The public limits of both ends, which are exceeded with the stated probability if the quantile is beyond an end.

    A limit of a count is the largest noisy number of records beyond a candidate, -1 for none; one of a rank is the
    largest, counted from the end, whose order statistic is released without a count, at most 0 for none. Those of the
    second candidates are found when they are first needed: four fifths of the work, for one release of about ten.

    Parameters
    ----------
    n : int
    level : float
    rank : int or None
        That of the quantile if missing records are left out.
    confidence : float
    first, second : float
        The epsilons of counts beyond first and beyond second candidates.
    log_points : float
    """

    def __init__(
        self, n: int, level: float, rank: int | None, confidence: float, first: float, second: float, log_points: float
    ) -> None:
        self._n, self._level, self._rank, self._log_points = n, level, rank, log_points
        self._epsilons, self._wrong = (first, second), (1 - confidence) / 2

    @cached_property
    def first(self) -> tuple[int, int]:
        """Those of the counts beyond first candidates."""
        return self._of_counts(2 / Fraction(self._epsilons[0]), _OF_FIRST * self._wrong)

    @cached_property
    def counts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Those of the counts beyond one second candidate, beyond two."""
        second = Fraction(self._epsilons[1])
        return self._of_counts(1 / second, self._of_second), self._of_counts(2 / second, self._of_second)

    @cached_property
    def ranks(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Those of the ranks for one end, for both."""
        second = self._epsilons[1]
        return self._of_ranks(second), self._of_ranks(second / 2)

    @property
    def _of_second(self) -> float:
        return (1 - _OF_FIRST) / 2 * self._wrong

    def _of_counts(self, scale: Fraction, allowed: float) -> tuple[int, int]:
        return self._both(DiscreteLaplace(scale).cdf, allowed)

    def _of_ranks(self, epsilon: float) -> tuple[int, int]:
        def exceeds(z: NDArray[np.float64]) -> NDArray[np.float64]:
            """Return the probability that a point with a score of 1 - z is released: rank - count below = z."""
            with np.errstate(over="ignore"):
                exponents = self._log_points + epsilon / 2 * (z - 1)
            return np.exp(np.minimum(exponents, 0.0)) + 2.0**-50

        return self._both(exceeds, self._of_second)

    def _both(self, cdf: Callable[[NDArray[np.float64]], NDArray[np.float64]], allowed: float) -> tuple[int, int]:
        n, level, rank = self._n, self._level, self._rank
        if rank is None:
            low = certified_count(n, level, cdf, allowed)
            return low, low if level == 0.5 else certified_count(n, 1 - level, cdf, allowed)
        low, high = (certified_count(n, of / n, cdf, allowed, most=of) for of in (rank - 1, n - rank))
        return low, high


_limits = lru_cache(maxsize=64)(_Limits)


_CELLS = 2**12


def certified_count(
    n: int,
    p: float,
    cdf: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    allowed: float,
    *,
    most: int | None = None,
) -> int:
    """Return the largest k with ``E cdf(k - B) <= allowed`` for a nondecreasing cdf; -1 if k would be less.

    B is binomial(n, p), cut at `most`. With the cdf of noise Z this is ``P(B + Z <= k)``. If n is large, B is rounded
    down to one of 4096 cells, which makes k smaller.
    """
    reach = 10 * math.sqrt(n * p * (1 - p)) + 100
    start, stop = max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach))
    width = -(-(stop + 1 - start) // _CELLS)
    cells = np.arange(start, stop + 1, width)
    first = np.append(cells, stop + 1).astype(np.float64)
    inner = np.clip(first, 1.0, n)
    below = np.where(
        first > n, 1.0, np.where(first < 1, 0.0, scipy.special.betainc(n + 1 - inner, inner, 1 - p))
    )  # P(B < first)
    masses, least = np.diff(below), float(below[0])
    values = cells if most is None else np.minimum(cells, most)

    def wrong(k: int) -> float:
        with np.errstate(under="ignore"):  # whatever a caller raises for
            return least + float(masses @ cdf((k - values).astype(np.float64)))

    low, high = -1, stop
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if wrong(middle) <= allowed else (low, middle - 1)
    return low


@dataclass(frozen=True, repr=False)
class _Beyond(Mechanism):
    """Release the numbers of records below a code and above another one, with discrete Laplace noise of this scale.

    If missing records are left out, they count in the share of the quantile: as many as its rank falls without them
    are below, the others above.
    """

    statistic: Median | Quantile
    grid: Points
    low: int
    high: int
    scale: Fraction

    @property
    def privacy(self) -> Privacy:
        return Privacy(up(2 / self.scale))

    def reading(self) -> Counts:
        def records(x: Any) -> Array:
            return containers.vector("x", x)

        def locate(values: Array) -> Integers:
            absent = self._absent(values)
            codes = self._points.encode(values)
            return np.where(absent, 3, 1 - (codes < self.low) + (codes > self.high))

        return Counts((4,), records, self._count, locate)

    @property
    def leaves_out(self) -> bool:
        return self.grid.missing == "drop"

    @cached_property
    def _points(self) -> Points:
        """The grid by which all records have a code."""
        return self.grid.with_missing("lower") if self.leaves_out else self.grid

    def _absent(self, values: Array) -> NDArray[np.bool_]:
        """Return which records are left out."""
        return np.isnan(values) if self.leaves_out and values.dtype.kind == "f" else np.zeros(len(values), np.bool_)

    def _count(self, values: Array, threads: int) -> Integers:
        beyond = self._by_value if values.dtype.kind == "f" and self._values is not None else self._by_code
        parts = [beyond(values[start : start + _BLOCK]) for start in range(0, len(values), _BLOCK)]
        below, above, absent = (sum(part) for part in zip((0, 0, 0), *parts, strict=True))
        return np.array([below, len(values) - below - above - absent, above, absent], np.int64)

    def _by_code(self, values: Array) -> tuple[int, int, int]:
        absent = self._absent(values)
        codes = self._points.encode(values[~absent] if absent.any() else values)
        below, above = int(np.count_nonzero(codes < self.low)), int(np.count_nonzero(codes > self.high))
        return below, above, int(np.count_nonzero(absent))

    def _by_value(self, values: Array) -> tuple[int, int, int]:
        assert self._values is not None
        low, high = self._values
        below, above = int(np.count_nonzero(values < low)), int(np.count_nonzero(values >= high))
        missing = int(self._points.encode([self._points.nan_value])[0])
        if not self.leaves_out and self.low <= missing <= self.high:
            return below, above, 0
        unknown = int(np.count_nonzero(values != values))
        if self.leaves_out:
            return below, above, unknown
        return below + unknown * (missing < self.low), above + unknown * (missing > self.high), 0

    @cached_property
    def _values(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The least doubles of the codes `low` and `high` + 1, as arrays of size 1; None if not next to midpoints."""
        found = []
        for code in (self.low, self.high + 1):
            if code == 0 or code == self.grid.size:
                found.append(math.nan)  # no value compares as beyond it
                continue
            middle = self.grid.value(code - 1) / 2 + self.grid.value(code) / 2
            around = [math.nextafter(middle, -math.inf), middle, math.nextafter(middle, math.inf)]
            reached = (self.grid.encode(np.array(around)) >= code).tolist()
            if reached[0] or not reached[2]:
                return None
            found.append(around[reached.index(True)])
        return np.array(found[:1]), np.array(found[1:])

    def law_of(self, summary: tuple[Integers, int]) -> NoisyIntegers:
        (below, _, above, absent), n = summary
        share = taken_below(self.statistic, n, int(absent))
        counts = np.array([below + share, above + absent - share], np.int64)
        noise = Independent(DiscreteLaplace(self.scale), 2)
        return NoisyIntegers(counts, noise=noise, most=2**61, decode=lambda codes: codes)


_BLOCK = 2**16


# ---- means, variances, sums and counts ----

_OF_MEAN = Fraction(3, 5)  # the share of epsilon of a mean; the rest is that of the variance
# Of the allowed probability: that of the noise on the number of missing records, and on the sum in their spread.
_OF_NUMBER, _OF_SUM = 0.1, 0.05


class _OfSums(Plan):
    """A draw of an estimate from exact sums."""

    mechanism: _MeanInterval | _IntervalOfOne

    def draw_from(self, summary: CodeSums, source: np.random.BitGenerator) -> Estimate:
        return self.mechanism._estimate(summary, source)


@dataclass(frozen=True, repr=False)
class _MeanInterval(IntervalMechanism):
    """Release a mean and a variance, and an interval for the mean of the population, clamped to the bounds.

    Parameters
    ----------
    statistic : Mean
    grid : Grid
    epsilon, confidence : float

    Notes
    -----
    The half width is the quantile of the sum of the exact noise and a normal variable of variance ``S / n + (W log(1 /
    a) / (n z))**2``: S is the released variance times n / (n - 1), at most W**2 / 4, W the width of the bounds, a = 1 -
    confidence and z the two-sided normal quantile. The second term is for skewness: n records without one of
    probability log(1 / a) / n are no evidence against it
    (https://dpfast.readthedocs.io/en/latest/proofs/intervals.html). If missing records are left out, it is that for the
    least number of records that may be present, and wider by what the noise on their number can do to the mean.
    """

    statistic: Mean
    grid: Grid

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2.0**-40 <= self.confidence <= 1 - 2.0**-40:  # a share of what is left of 1 is a double, too
            raise ValueError(f"confidence must be from 2**-40 to 1 - 2**-40 for a mean, not {self.confidence!r}")

    @cached_property
    def _releases(self) -> tuple[GlobalSensitivity | PresentMean, GlobalSensitivity]:
        """The mechanisms of the mean and of the variance."""
        epsilon, grid = Fraction(self.epsilon), self.grid
        kind = PresentMean if self.leaves_out else GlobalSensitivity
        of_all = grid.with_missing("lower") if self.leaves_out else grid
        mean = kind(Mean(), grid=grid, epsilon=down(epsilon * _OF_MEAN))
        return mean, GlobalSensitivity(Variance(), grid=of_all, epsilon=down(epsilon * (1 - _OF_MEAN)))

    @property
    def leaves_out(self) -> bool:
        return self.grid.missing == "drop"

    def _explained_split(self, n: int | None) -> str:
        mean, variance = self._releases
        return split({"the mean": mean.epsilon, "the variance": variance.epsilon})

    def _foreseen_of_many(self, n: int) -> Foreseen | None:
        return self._releases[0].foreseen(n)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        mean, variance = self._releases
        return PrivacyProfile(self.privacy, (*mean.privacy_profile.parts, *variance.privacy_profile.parts))

    def _make_plan(self, n: int | None) -> Plan:
        for release in self._releases:
            release.plan(n)  # reject an n that is not supported
        _check_squares(self.grid)
        return _OfSums(self, n)

    def reading(self) -> Sums:
        return (PresentSums if self.leaves_out else Sums)(self.grid, squares=True)

    def _estimate(self, sums: CodeSums | PresentSum, source: np.random.BitGenerator) -> Estimate:
        if isinstance(sums, PresentSum):
            return self._estimate_of_present(sums, source)
        plans: Iterator[Plan] = (release.plan(sums.n) for release in self._releases)
        mean, variance = (plan.draw_from(sums, source) for plan in plans)
        grid, n = self.grid, sums.n
        noise = integer_noise("auto", grid.size - 1, grid.size - 1, self._releases[0].epsilon)
        reach = self._reach(n, n, variance * n, noise, grid.step, 1 - self.confidence)
        return self.estimate(mean, max(mean - reach, grid.lower), min(mean + reach, grid.upper), n=n)

    def _estimate_of_present(self, sums: PresentSum, source: np.random.BitGenerator) -> Estimate:
        """Return that of the records which are not missing.

        Their number may be less than the released one, so that their mean is further from the middle of the bounds, or
        more, so that it is nearer.
        """
        release, of_all = self._releases
        assert isinstance(release, PresentMean)
        grid, n, wrong = self.grid, sums.n, 1 - self.confidence
        total, absent = release.plan(n).pair(n, sums.total, sums.absent, source)
        mean, present = release.mean(n, total, absent), release.present(n, absent)
        # A missing record at the middle makes the sum of squared distances larger, never smaller.
        variance = of_all.plan(n).draw_from(sums.with_absent((grid.size - 1) // 2), source)
        of_sum, of_number = release.noises
        noise = of_number.magnitude(1 - _OF_NUMBER * wrong)
        least, most = (n - min(max(absent + sign * noise, 0), n) for sign in (1, -1))
        if least < 2:
            return self.estimate(mean, grid.lower, grid.upper, n=n)
        fewer, more = (present - least) / least, (most - present) / most  # the latter below 0 if few count as none
        unit, off = grid.step * release.unit / 2, mean - (grid.lower + grid.upper) / 2
        # The missing records are as far from the mean as the middle is: what that surely makes of the squares.
        away = max(abs(off) - of_sum.magnitude(1 - _OF_SUM * wrong) * unit / present, 0.0) * present / most
        between = min(least * (n - least), most * (n - most)) / n * away**2
        squares = max(variance * n - between, 0.0)
        reach = self._reach(least, n, squares, of_sum, unit, (1 - _OF_NUMBER - _OF_SUM) * wrong)
        low, high = sorted((mean + off * fewer, mean - off * more))
        return self.estimate(mean, max(low - reach, grid.lower), min(high + reach, grid.upper), n=n)

    def _reach(self, n: int, of: int, squares: float, noise: IntegerNoise, unit: float, wrong: float) -> float:
        """Return the half width for n of all records, from their squared distances, and noise in units on their sum."""
        width = self.grid.upper - self.grid.lower
        spread = min(squares / (n - 1), width**2 / 4) if n > 1 else width**2 / 4
        skew = width * math.log(1 / wrong) / (n * -float(scipy.special.ndtri(wrong / 2)))
        share = n / of  # in units of all, which are public: the cells of the noise are kept by them
        deviation = share * math.hypot(math.sqrt(spread / n), skew)
        return normal_plus_noise_error(deviation, noise, unit / of, 1 - wrong) / share


def _check_squares(grid: Grid) -> None:
    """Raise a ValueError if squares within the bounds overflow; the variance of one record, without noise, does not."""
    width = grid.upper - grid.lower
    checks.finite_scale(width * width)


class _IntervalOfOne(IntervalMechanism):
    """An estimate from one release, which has its cost, and its interval."""

    @cached_property
    @abstractmethod
    def _release(self) -> GlobalSensitivity:
        """The mechanism of the release."""

    @abstractmethod
    def _estimate(self, sums: CodeSums, source: np.random.BitGenerator) -> Estimate:
        """Return the estimate, with its interval, from a draw of the release."""

    def _foreseen_of_many(self, n: int) -> Foreseen | None:
        return self._release.foreseen(n)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return self._release.privacy_profile

    def _make_plan(self, n: int | None) -> Plan:
        self._release.plan(n)  # reject an n that is not supported
        return _OfSums(self, n)

    def reading(self) -> Reading:
        return self._release.reading()


@dataclass(frozen=True, repr=False)
class _VarianceInterval(_IntervalOfOne):
    """Release a variance or a standard deviation, and an interval for that of the population, clamped to the bounds.

    Parameters
    ----------
    statistic : Variance
    grid : Grid
    epsilon, confidence : float
    root : bool
        Whether to release the standard deviation.

    Notes
    -----
    The deviation of n records, with n - 1 in the denominator, is within ``W sqrt(2 log(1 / b) / (n - 1))`` of that of
    the population on each side, W the width of the bounds, except with probability b (Maurer and Pontil 2009, theorem
    10). Half of the allowed probability is for the noise, a quarter for each side of this bound: it holds for any
    population, and is wide.
    """

    statistic: Variance
    grid: Grid
    root: bool

    @property
    def _what(self) -> str:
        return "standard deviation" if self.root else super()._what

    @cached_property
    def _release(self) -> GlobalSensitivity:
        return GlobalSensitivity(Variance(), grid=self.grid, epsilon=self.epsilon)

    def _foreseen_of_many(self, n: int) -> Foreseen | None:
        found = super()._foreseen_of_many(n)
        return found.of_root() if found and self.root else found

    def _make_plan(self, n: int | None) -> Plan:
        _check_squares(self.grid)
        return super()._make_plan(n)

    def range_of(self, n: int | None) -> tuple[float, float]:
        most = (self.grid.upper - self.grid.lower) / 2
        return 0.0, most if self.root else most**2

    def _estimate(self, sums: CodeSums, source: np.random.BitGenerator) -> Estimate:
        n = sums.n
        variance = self._release.plan(n).draw_from(sums, source)
        most, wrong = (self.grid.upper - self.grid.lower) / 2, 1 - self.confidence
        low, high = 0.0, most
        if n > 1:
            exact = self._release.noise_interval(variance, 1 - wrong / 2, n=n)
            sampling = 2 * most * math.sqrt(2 * math.log(4 / wrong) / (n - 1))
            low, high = (math.sqrt(end * n / (n - 1)) for end in exact)
            low, high = max(low - sampling, 0.0), min(high + sampling, most)
        ends = (low, high) if self.root else (low**2, high**2)
        return self.estimate(math.sqrt(variance) if self.root else variance, *ends, n=n)


@dataclass(frozen=True, repr=False)
class _NoiseInterval(_IntervalOfOne):
    """Release a sum or count, and an interval for that of the records: what the noise can have done.

    Parameters
    ----------
    statistic : Sum or Count
    grid : Grid
    epsilon, confidence : float
    neighbors : {"replace-one", "add-remove"}
    """

    statistic: UnboundedStatistic
    grid: Grid
    neighbors: str

    @cached_property
    def _release(self) -> GlobalSensitivity:
        return GlobalSensitivity(self.statistic, grid=self.grid, epsilon=self.epsilon, neighbors=self.neighbors)

    def _explained_missing(self) -> str:
        return self._release._explained_missing()

    @property
    def privacy(self) -> Privacy:
        return self._release.privacy

    def range_of(self, n: int | None) -> tuple[float, float]:
        if isinstance(self.statistic, Count):
            return 0.0, math.inf
        return (-math.inf, math.inf) if n is None else (n * self.grid.lower, n * self.grid.upper)

    def _estimate(self, sums: CodeSums, source: np.random.BitGenerator) -> Estimate:
        value = self._release.plan(sums.n).draw_from(sums, source)
        n = None if self.hides_n else sums.n
        return self.estimate(value, *self._release.noise_interval(value, self.confidence, n=n), n=n)
