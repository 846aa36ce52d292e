"""The inverse sensitivity mechanism: pure epsilon, for every statistic with an attack range."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks
from dpfast._kernels import _levels, _select
from dpfast.assumptions import Assumed, averaged, error, huber_law, summaries, target
from dpfast.grid import Grid
from dpfast.laws import NestedIntervals, score_cap
from dpfast.mechanism import StatisticMechanism
from dpfast.privacy import Privacy
from dpfast.random import RandomSource, bit_generator
from dpfast.statistics import Huber, OrderStatistic, RankStatistic, Statistic, Summary
from dpfast.streaming import Chunks, Reading, chunked
from dpfast.theory.quantiles import quantile_error


@dataclass(frozen=True, repr=False)
class InverseSensitivity(StatisticMechanism):
    """Release a statistic by inverse sensitivity: each grid point g with weight ``exp(-epsilon / 2 * score(g))``.

    score(g) is the least number of records to replace so that the statistic can be on both sides of g, or at g: the
    least t with g in the statistic's attack range. Pure epsilon-differential privacy under one replaced record; the
    number of records is public.

    Parameters
    ----------
    statistic : dpfast.statistics.RankStatistic
        ``Median()``, ``Quantile(0.9)``, ``TrimmedMean(0.1)``, ``WinsorizedMean(0.1)``, ``Mean()``, ``Huber(2.0)`` or
        ``InterquartileRange()``.
    grid : Grid
        Public bounds and granularity of data and release, in data units.
    epsilon : float
        Positive; rounded down to a double. Above 20 or so the release is, but for negligible probability, the exact
        statistic: private in name only.
    radius : float
        At least 0, in data units, rounded to a multiple of the step: every value within `radius` of a possible value of
        the statistic scores as well as that value. 0 by default.
    neighbors : {"replace-one"}

    Raises
    ------
    TypeError, ValueError
        Before any data are looked at. From a call, where the number of records is known: a mean of g records on a grid
        with g times points of 2**63 or more.

    Notes
    -----
    Privacy: the score changes by at most 1 with one record, so the exponential mechanism of exponent epsilon / 2 is
    epsilon-DP; capping the score at a public number keeps that, and lets a window of order statistics suffice
    (docs/proofs/nested-intervals.md). The law is exact: no float decides it.
    Cost: O(n) to select, about the time of two or three sums of x, and O(window) to draw, window = 4 (log(size) + 42) /
    epsilon order statistics. Timing is outside the guarantee.

    References
    ----------
    Asi and Duchi 2020, "Near instance-optimality in differential privacy"; Chaudhuri and Hsu 2012 for the problem.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.statistics import Median
    >>> mechanism = dpf.InverseSensitivity(Median(), grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    >>> mechanism
    <InverseSensitivity release of the median on 101 points from 0.0 to 100.0, step 1.0: epsilon = 1 (pure \
differential privacy) for one record replaced (the number of records is public)>
    >>> ages = np.random.default_rng(0).integers(18, 90, 1000)
    >>> 50 <= mechanism(ages) <= 58
    True
    """

    statistic: RankStatistic
    grid: Grid = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    radius: float = field(kw_only=True, default=0.0)
    neighbors: str = field(kw_only=True, default="replace-one")

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise TypeError(f"statistic must be one of dpfast.statistics, not {type(self.statistic).__name__}")
        if not isinstance(self.statistic, RankStatistic):
            raise TypeError(
                f"the {self.statistic} has no attack range in a few order statistics: use GlobalSensitivity"
            )
        if not isinstance(self.grid, Grid):
            raise TypeError(f"grid must be a dpfast.Grid, not {type(self.grid).__name__}")
        if self.neighbors != "replace-one":
            raise ValueError(f"neighbors must be 'replace-one' here, not {self.neighbors!r}")
        epsilon = _checks.positive_down("epsilon", self.epsilon)
        radius = _checks.nonnegative("radius", self.radius)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "radius", radius)

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, 0.0, self.neighbors)

    def __repr__(self) -> str:
        grid = self.grid
        within = f" within {self.radius!r}" if self.radius else ""
        return (
            f"<InverseSensitivity release of the {self.statistic}{within} on {grid.size} points from {grid.lower!r} to "
            f"{grid.upper!r}, step {grid.step!r}: {self.privacy}>"
        )

    def cap(self, n: int) -> int:
        """The public number of scores that are told apart for n records: all from here on count alike.

        ``1 + ceil(2 / epsilon * (log(V) + 42))`` for V possible releases: together they have at most e**-42 of the
        probability.
        """
        return score_cap(self.epsilon, math.log(self.statistic.last(self.grid, n) + 1))

    def __call__(self, x: ArrayLike | Chunks, *, rng: RandomSource = None, workers: int = 1) -> float:
        source = bit_generator(rng)
        if isinstance(x, Chunks):
            return float(self.start().read(x, workers=workers).release(rng=source))
        grid, statistic = self.grid, self.statistic
        values, threads = _records(x, workers)
        n = values.shape[0]
        if isinstance(statistic, OrderStatistic):
            code = _levels.draw_order_statistic(
                source,
                self._window(values, threads),
                self.epsilon,
                self._radius_codes(n),
                grid.lower,
                grid.upper,
                grid.step,
                grid.first,
                grid.size - 1,
            )
            return grid.value(code)
        lower, upper = self._boxes(self._summary(values, threads))
        out = np.empty(1, np.int64)
        _levels.fill(source, lower, upper, self.epsilon, statistic.last(grid, n), out)
        return statistic.value(grid, n, int(out[0]))

    @chunked
    def law(self, x: ArrayLike, *, workers: int = 1) -> NestedIntervals:
        """The exact law of the release. PRIVATE."""
        values, threads = _records(x, workers)
        return self._law(self._summary(values, threads))

    def _reading(self) -> Reading:
        return self.statistic.reading(self.grid, self._levels)

    def _law(self, summary: Summary) -> NestedIntervals:
        n = summary.n
        lower, upper = self._boxes(summary)
        return NestedIntervals(
            lower,
            upper,
            epsilon=self.epsilon,
            last=self.statistic.last(self.grid, n),
            grid=self.grid,
            decode=partial(self.statistic.decode, self.grid, n),
        )

    def _error_under(self, n: int, assumed: Assumed, confidence: float) -> float:
        statistic, grid = self.statistic, self.grid
        population, last, levels = target(statistic, assumed), statistic.last(grid, n), self._levels(n)
        if isinstance(statistic, Huber):
            cdf = huber_law(statistic, assumed, grid, n, levels, self._law)
        else:
            cdf = averaged([self._law(summary) for summary in summaries(statistic, assumed, grid, n, levels)])
        ends = statistic.value(grid, n, 0), statistic.value(grid, n, last)
        return error(cdf, last, ends, population, confidence)

    def _error_at_density(self, n: int, density: float, confidence: float) -> float:
        if not isinstance(self.statistic, OrderStatistic):
            raise TypeError(f"a density does not tell the error of the {self.statistic}: give distribution=")
        if self.radius:
            raise TypeError("a density does not tell the error with a radius: give distribution=")
        q, width = self.statistic.level, self.grid.upper - self.grid.lower
        return quantile_error(n, q, density=density, width=width, epsilon=self.epsilon, confidence=confidence)

    def _window(self, values: NDArray[Any], threads: int) -> NDArray[np.float64]:
        """The order statistics that the levels look at, for the kernel that goes from them to the draw in one call."""
        n, grid = values.shape[0], self.grid
        [rank], reach = self.statistic.ranks(n), self._levels(n) - 1
        return _select.window(
            values,
            rank - reach,
            rank + reach,
            lower=grid.lower,
            upper=grid.upper,
            step=grid.step,
            missing=grid.missing,
            workers=threads,
        )

    def _summary(self, values: NDArray[Any], threads: int) -> Summary:
        return self.statistic.summarize(values, self.grid, self._levels(values.shape[0]), threads)

    def _boxes(self, summary: Summary) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The attack ranges of all levels, widened by the radius."""
        last, radius = self.statistic.last(self.grid, summary.n), self._radius_codes(summary.n)
        lower, upper = self.statistic.attack_range(summary)
        if radius == 0:
            return lower, upper
        return np.maximum(lower - radius, 0), upper + np.minimum(last - upper, radius)

    def _levels(self, n: int) -> int:
        """How many levels are looked at: public, like the number of order statistics they need."""
        return min(self.cap(n), self.statistic.breakdown(n))

    def _radius_codes(self, n: int) -> int:
        """The radius in release codes, rounded."""
        if not self.radius:
            return 0
        codes = self.radius / self.grid.step * self.statistic.records(n)
        return round(min(codes, self.statistic.last(self.grid, n)))


def _records(x: ArrayLike, workers: int) -> tuple[NDArray[Any], int]:
    threads = _checks.threads(workers)
    values = _checks.vector("x", x)
    _checks.records(values.shape[0])
    return values, threads
