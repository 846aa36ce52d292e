"""The inverse sensitivity mechanism: pure epsilon-differential privacy for every statistic with an attack range."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks, _containers
from dpfast._kernels import _groups, _levels, _select
from dpfast.grid import FloatGrid, Grid, Points, check_grid, check_points
from dpfast.laws import NestedIntervals, score_cap
from dpfast.mechanisms.assumptions import Assumed, averaged, error, error_on_floats, huber_law, summaries, target
from dpfast.mechanisms.statistic import StatisticMechanism
from dpfast.privacy import Privacy, PrivacyProfile
from dpfast.random import RandomSource, bit_generator
from dpfast.statistics import Huber, OrderStatistic, RankStatistic, Statistic, Summary
from dpfast.streaming import Chunks, Ordered, Ranks, Reading
from dpfast.theory.quantiles import quantile_error


@dataclass(frozen=True, repr=False)
class InverseSensitivity(StatisticMechanism):
    """Release a statistic by inverse sensitivity: each grid point g with weight ``exp(-epsilon / 2 * score(g))``.

    score(g) is the least t such that g lies in the statistic's attack range: replacing t records can move the statistic
    to g, or to both sides of g. Pure epsilon-differential privacy under one replaced record; the number of records is
    public. For quantiles also under one record added or removed, with a private number of records: score(g) is then the
    least number of records to add or remove so that g is a q-quantile, and for the 0- and the 1-quantile the weight is
    ``exp(-epsilon * score(g))``.

    Parameters
    ----------
    statistic : dpfast.statistics.RankStatistic
        ``Median()``, ``Quantile(0.9)``, ``TrimmedMean(0.1)``, ``WinsorizedMean(0.1)``, ``Mean()``, ``Huber(2.0)`` or
        ``InterquartileRange()``.
    grid : Grid or FloatGrid
        Public bounds and granularity of data and release, in data units. A `FloatGrid`, which needs no bounds, is for
        quantiles.
    epsilon : float
        Positive; rounded down to a double. Above about 20 the release is the exact statistic except with negligible
        probability: private in name only.
    radius : float
        At least 0, in data units, rounded to a multiple of the step: every value within `radius` of a possible value of
        the statistic scores as well as that value. 0 by default, and always on a `FloatGrid`.
    neighbors : {"replace-one", "add-remove"}
        "add-remove" is for one quantile: n is private and may be 0, and a q-quantile is any g with at most q n records
        below and at least q n records at or below g. The median then has half the error at the same epsilon; the
        0-quantile is any point up to the least record, the 1-quantile any point from the greatest record on.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call, once n is known: for a mean of g records, g times the
        number of grid points is 2**63 or more.

    Notes
    -----
    Privacy: the score changes by at most 1 with one record, so the exponential mechanism of exponent epsilon / 2 is
    epsilon-DP. Capping the score at a public number preserves this and makes a window of order statistics sufficient
    (docs/proofs/nested-intervals.md, docs/proofs/add-remove.md). For the 0- and the 1-quantile under "add-remove" a
    record moves all scores in the same direction, and the exponent is epsilon. The law is exact: no float decides it.
    Cost: O(n) to select, about the time of two or three sums of x, and O(window) to draw, window = 4 (log(size) + 42) /
    epsilon order statistics. Timing is outside the guarantee.

    References
    ----------
    Asi and Duchi 2020, "Near instance-optimality in differential privacy"; Chaudhuri and Hsu 2012 (the problem).

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
    grid: Points = field(kw_only=True)
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
        (check_points if self.statistic.order_only else check_grid)(self.grid)
        object.__setattr__(self, "epsilon", _checks.positive_down("epsilon", self.epsilon))
        _checks.choice("neighbors", self.neighbors, ("replace-one", "add-remove"))
        if self.hides_n and not isinstance(self.statistic, OrderStatistic):
            raise ValueError(f"neighbors must be 'replace-one' for the {self.statistic}, not 'add-remove'")
        object.__setattr__(self, "radius", _checks.nonnegative("radius", self.radius))
        if self.radius and isinstance(self.grid, FloatGrid):
            raise ValueError(f"radius must be 0 on a FloatGrid, not {self.radius!r}")
        self.statistic.last(self.grid, 1)  # reject a grid that fails for every n

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, 0.0, self.neighbors)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return PrivacyProfile(self.privacy, (("bounded-range", self.epsilon, 1),))

    def __repr__(self) -> str:
        within = f" within {self.radius!r}" if self.radius else ""
        return f"<InverseSensitivity release of the {self.statistic}{within} on {self.grid}: {self.privacy}>"

    def cap(self, n: int) -> int:
        """The public cap on the score for n records: all scores from the cap on get the same weight.

        ``1 + ceil(2 / epsilon * (log(V) + 42))`` for V possible releases, with 2 epsilon in place of epsilon if the
        exponent is epsilon. The points at the cap together have at most e**-42 of the probability.
        """
        return score_cap(self._rate, math.log(self.statistic.last(self.grid, n) + 1))

    @property
    def _rate(self) -> float:
        """Twice the exponent per unit of score: epsilon, or 2 epsilon if a record moves all scores in one direction."""
        if self.hides_n and _level(self.statistic) in (0, 1):
            return min(2 * self.epsilon, sys.float_info.max)
        return self.epsilon

    def __call__(self, x: ArrayLike | Chunks, *, rng: RandomSource = None, workers: int = 1) -> float:
        source = bit_generator(rng)
        grid, statistic = self.grid, self.statistic
        if isinstance(statistic, OrderStatistic) and not self.hides_n and not isinstance(x, Chunks):
            threads, values = _checks.threads(workers), _containers.vector("x", x)
            n = _checks.records(values.shape[0])
            even, window = grid.evenly(self._window(values, threads))
            code = _levels.draw_order_statistic(
                source,
                window,
                self.epsilon,
                self._radius_codes(n),
                even.lower,
                even.upper,
                even.step,
                even.first,
                even.size - 1,
            )
            return grid.value(code)
        summary = self._summary(x, workers)
        out = np.empty(1, np.int64)
        _levels.fill(source, *self._boxes(summary), self._rate, statistic.last(grid, summary.n), out)
        return statistic.value(grid, summary.n, int(out[0]))

    def reading(self) -> Reading:
        if not self.hides_n:
            return self.statistic.reading(self.grid, self._levels)

        def finish(order: Ordered) -> _PrivateWindow:
            n = order.n
            return _PrivateWindow(n, order.window(*self._stretch(n)) if n else self._empty_window())

        return Ranks(self.grid, lambda n: [self._stretch(n)], finish)

    def law_of(self, summary: Summary | _PrivateWindow) -> NestedIntervals:
        return NestedIntervals(
            *self._boxes(summary),
            epsilon=self._rate,
            last=self.statistic.last(self.grid, summary.n),
            grid=self.grid,
            decode=partial(self.statistic.decode, self.grid, summary.n),
        )

    def _error_under(self, n: int, assumed: Assumed, confidence: float) -> float:
        statistic, grid = self.statistic, self.grid
        if self.hides_n:
            return self._with_public_n()._error_under(n, assumed, confidence)
        population, last, levels = target(statistic, assumed), statistic.last(grid, n), self._levels(n)
        if isinstance(statistic, Huber):
            cdf = huber_law(statistic, assumed, grid, n, levels, self.law_of)
        else:
            cdf = averaged([self.law_of(summary) for summary in summaries(statistic, assumed, grid, n, levels)])
        if isinstance(grid, FloatGrid):
            return error_on_floats(cdf, grid, population, confidence)
        ends = statistic.value(grid, n, 0), statistic.value(grid, n, last)
        return error(cdf, last, ends, population, confidence)

    def _error_at_density(self, n: int, density: float, confidence: float) -> float:
        if not isinstance(self.statistic, OrderStatistic):
            raise TypeError(f"a density does not determine the error of the {self.statistic}: give distribution=")
        if self.radius:
            raise TypeError("a density does not determine the error with a radius: give distribution=")
        if isinstance(self.grid, FloatGrid):
            raise TypeError("a density does not determine the error on a FloatGrid: give distribution=")
        if self.hides_n:
            return self._with_public_n()._error_at_density(n, density, confidence)
        q, width = self.statistic.level, self.grid.upper - self.grid.lower
        return quantile_error(n, q, density=density, width=width, epsilon=self.epsilon, confidence=confidence)

    def _window(self, values: NDArray[Any], threads: int) -> NDArray[np.float64]:
        """The order statistics that the levels need, for the kernel that turns them into a draw in one call."""
        n, grid = values.shape[0], self.grid
        [rank], reach = self.statistic.ranks(n), self._levels(n) - 1
        return _select.window(values, rank - reach, rank + reach, **grid.kernel, workers=threads)

    def _with_public_n(self) -> InverseSensitivity:
        """The "replace-one" mechanism with the same error to within a rank: its weight per rank is the same."""
        q = _level(self.statistic)
        return replace(self, epsilon=float(Fraction(self._rate) / max(q, 1 - q)), neighbors="replace-one")

    def _stretch(self, n: int) -> tuple[int, int]:
        """The first and last rank needed if n is private; outside 1..n one rank on each side is enough."""
        first, final = self._private_ranks(n)
        return min(max(int(first[-1]), 0), n), max(min(int(final[-1]), n + 1), 1)

    def _private_ranks(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The ranks between which the points of score at most t lie, for t below the cap; all points from t = n on."""
        return private_ranks(_level(self.statistic), n, min(self.cap(n), max(n, 1)))

    def _empty_window(self) -> NDArray[np.int64]:
        """The codes of the ranks 0 and 1 of an empty data set."""
        return np.array([0, self.grid.size - 1])

    def _private_boxes(self, window: _PrivateWindow) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The least and greatest code of score at most t, if n is private."""
        n, codes = window
        (start, stop), last, radius = self._stretch(n), self.grid.size - 1, self._radius_codes(n)
        first, final = self._private_ranks(n)
        lower, upper = codes[np.clip(first, start, stop) - start], codes[np.clip(final, start, stop) - start]
        return np.maximum(lower - radius, 0), upper + np.minimum(last - upper, radius)

    def group_plan(self, offsets: NDArray[np.int64], largest: int) -> dict[str, Any]:
        """The keyword arguments of `_groups.draw_quantiles`, for groups of at most `largest` records."""
        assert isinstance(self.statistic, OrderStatistic)
        powers = np.empty(largest + 1)
        _groups.powers(self._rate, powers)
        q = ranks = None
        if self.hides_n:
            q = _share(_level(self.statistic))
        else:
            ranks = np.zeros(largest + 1, np.int64)
            sizes = np.diff(offsets)
            for n in np.flatnonzero(np.bincount(sizes[(sizes > 0) & (sizes <= largest)], minlength=1)).tolist():
                ranks[n] = self.statistic.rank(n)
        radius, cap = self._radius_codes(1), self.cap(1)
        return {
            "epsilon": self._rate,
            "powers": powers,
            "cap": cap,
            "ranks": ranks,
            "q": q,
            "radius": radius,
            "last": self.grid.size - 1,
        }

    def draw_code(self, values: NDArray[np.float64], grid: Grid, source: np.random.BitGenerator) -> int:
        """Draw the code that a call would release, for records on another grid with the same number of points.

        The step of that grid is the step of the mechanism's grid, or 1.
        """
        radius = self.radius if not self.radius or grid.step == self.grid.step else float(self._radius_codes(1))
        other = replace(self, grid=grid, radius=radius)
        return int(grid.encode([other(values, rng=source)])[0])

    def _boxes(self, summary: Summary | _PrivateWindow) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The attack ranges of all levels, widened by the radius: the points of score at most t."""
        if isinstance(summary, _PrivateWindow):
            return self._private_boxes(summary)
        lower, upper = self.statistic.attack_range(summary)
        radius = self._radius_codes(summary.n)
        if radius == 0:
            return lower, upper
        last = self.statistic.last(self.grid, summary.n)
        return np.maximum(lower - radius, 0), upper + np.minimum(last - upper, radius)

    def _levels(self, n: int) -> int:
        """The number of levels, public like the number of order statistics that they need."""
        return min(self.cap(n), self.statistic.breakdown(n))

    def _radius_codes(self, n: int) -> int:
        """The radius in release codes, rounded."""
        if not self.radius:
            return 0
        codes = self.radius / self.grid.step * self.statistic.codes_per_step(n)
        return round(min(codes, self.statistic.last(self.grid, n)))


class _PrivateWindow(NamedTuple):
    """n and the codes of the ranks that the mechanism needs."""

    n: int
    codes: NDArray[np.int64]


def _level(statistic: Statistic) -> Fraction:
    """The q of a quantile as an exact fraction."""
    assert isinstance(statistic, OrderStatistic)
    return Fraction(statistic.level)


def private_ranks(q: Fraction, n: int, levels: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``ceil(q n - t c)`` and ``floor(q n + t c) + 1``, c = max(q, 1 - q), t = 0..levels - 1; levels at most n + 1.

    Adding or removing t records can make the points between the order statistics of these ranks a q-quantile.
    """
    first, final = np.empty(levels, np.int64), np.empty(levels, np.int64)
    _groups.private_ranks(_share(q), n, first, final)
    return first, final


def _share(q: Fraction) -> tuple[int, int, bool]:
    """A quantile's q for the kernels: ``numerator * 2**-shift``, and whether it is at least 1/2."""
    return q.numerator, q.denominator.bit_length() - 1, q >= Fraction(1, 2)
