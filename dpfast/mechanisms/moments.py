"""The variance of bounded records by noise on the sum of the records and the sum of their squares together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.grid import Grid, check_grid, coarser
from dpfast.core.privacy import Privacy
from dpfast.core.spending import imagined
from dpfast.laws import NoisyIntegers, PairOfMoments
from dpfast.mechanisms.assumptions import Assumed, code_moments, target
from dpfast.mechanisms.expectations import law_for, mean_magnitude
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.prediction import Expected
from dpfast.mechanisms.statistic import StatisticMechanism
from dpfast.mechanisms.usefulness import EVEN_VARIANCE, enough_for_error
from dpfast.statistics import Variance
from dpfast.streaming import CodeSums, Reading, Sums

if TYPE_CHECKING:
    from dpfast.core.types import Exact

MOST_RECORDS = 2**30  # of a pair of moments
_MOST_POINTS = 2**16
_MOST = 2**61  # of a sum with noise
_DRAWS = 512  # of imagined noise, for an expected error
_SEED = 1


@dataclass(frozen=True, repr=False)
class MomentPair(StatisticMechanism):
    """Release the variance from the sum and the sum of squares of the records, with noise on both together.

    Pure epsilon-differential privacy under one replaced record; the number of records is public. Where the mean of the
    records is near the middle of the bounds, the noise on the variance is 3 times less than that of
    `GlobalSensitivity`, equal where it is at a tenth of the width from a bound, and 1.25 times as large at a bound.

    Parameters
    ----------
    statistic : dpfast.statistics.Variance
    grid : Grid
        Public bounds and granularity of the data, in data units. A grid of more than 2**16 points is made coarser.
    epsilon : float
        At least 2**-24; rounded down to a double.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call, once n is known: more than 2**30 records.

    Notes
    -----
    Privacy: for codes c in 0..M, one record changes the exact sums of c and of c (c - M) by a pair of integers in the
    convex hull of all such pairs, and the noise has a density that falls with the norm of which this hull is the unit
    ball, exactly (https://dpfast.readthedocs.io/en/latest/proofs/moment-pair.html). The rest is post-processing.
    Cost: one pass over x, and 0.3 ms for the noise.

    References
    ----------
    Hardt and Talwar 2010, "On the geometry of differential privacy", for the noise.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.MomentPair(grid=dpf.Grid(-4, 4), epsilon=1.0)
    >>> x = np.random.default_rng(0).normal(size=10_000)
    >>> bool(abs(mechanism(x) - x.var()) < 0.05)
    True
    """

    statistic: Variance = field(default_factory=Variance)
    grid: Grid = field(kw_only=True)
    epsilon: float = field(kw_only=True)

    if TYPE_CHECKING:  # epsilon may be given exactly

        def __init__(self, statistic: Variance = ..., *, grid: Grid, epsilon: Exact) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Variance):
            raise TypeError(f"statistic must be Variance(), not {self.statistic!r}")
        check_grid(self.grid)
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        if self.epsilon < 2.0**-24:
            raise ValueError(f"epsilon must be at least 2**-24, not {self.epsilon!r}")
        self.check_missing()
        checks.released_range(lambda: (0.0, float(Fraction(self._coarse.upper - self._coarse.lower) ** 2 / 4)))

    def __repr__(self) -> str:
        grid = self._coarse
        return (
            f"<MomentPair release of the {self.statistic} of records on {grid.size} points from {grid.lower!r} to "
            f"{grid.upper!r}, step {grid.step!r}: {self.privacy}>"
        )

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    @cached_property
    def _coarse(self) -> Grid:
        return coarser(self.grid, _MOST_POINTS)

    @property
    def _noise(self) -> PairOfMoments:
        return _noise(self._coarse.size - 1, self.epsilon)

    def _make_plan(self, n: int | None) -> Plan:
        if n is not None and n > MOST_RECORDS:
            raise ValueError(f"n must be at most 2**30 for the variance by a pair of moments, not {n}")
        return super()._make_plan(n)

    def reading(self) -> Reading:
        return Sums(self._coarse, squares=True)

    def law_of(self, sums: CodeSums) -> NoisyIntegers:
        """Return the exact law of the release. PRIVATE."""
        n, total, squares = sums
        center = np.array([total, squares - (self._coarse.size - 1) * total], np.int64)
        return NoisyIntegers(center, noise=self._noise, most=_MOST, decode=partial(self._decode, n=n))

    def _decode(self, pairs: NDArray[np.int64], *, n: int) -> Any:
        """Return the variances of noisy sums: the mean of c (c - M) plus m (M - m), m the mean of c."""
        last = self._coarse.size - 1
        mean = np.clip(pairs[..., 0] / n, 0, last)
        found = np.clip(pairs[..., 1] / n + mean * (last - mean), 0, last * last / 4) * self._coarse.step**2
        return found if found.ndim else float(found)

    def noise_deviation(self, n: int, mean: float) -> float:
        """Return the standard deviation of the noise on the variance, before clamping, for records of this mean.

        Parameters
        ----------
        n : int
        mean : float
            In data units, assumed.
        """
        n, grid = checks.whole("n", n, least=1), self._coarse
        first, second = self._noise.variances
        lean = (grid.lower + grid.upper - 2 * checks.real("mean", mean)) / grid.step
        return math.sqrt(second + lean * lean * first) / n * grid.step**2

    def _enough(self) -> float:
        error = math.sqrt(self._noise.variances[1]) / (self._coarse.size - 1) ** 2
        return enough_for_error(error, spread=EVEN_VARIANCE)

    def _expected_under(self, n: int, assumed: Assumed) -> Expected:
        grid, last = self._coarse, self._coarse.size - 1
        mean, variance, fourth = code_moments(assumed, grid)
        sums = CodeSums(n, round(n * mean), round(n * (variance + mean * mean)))
        drawn = law_for(self.law_of, sums)
        values = drawn.value(np.asarray(drawn.center + _imagined(last, self.epsilon)))
        population = target(self.statistic, assumed)
        spread = max(0.0, fourth - variance * variance) / n
        return Expected(float(np.mean(np.abs(values - population))), mean_magnitude(math.sqrt(spread) * grid.step**2))


@lru_cache(maxsize=256)
def _noise(last: int, epsilon: float) -> PairOfMoments:
    return PairOfMoments(last, Fraction(epsilon))


@lru_cache(maxsize=64)
def _imagined(last: int, epsilon: float) -> NDArray[np.int64]:
    """Return draws of the noise, always the same."""
    made = np.empty((_DRAWS, 2), np.int64)
    with imagined():
        _noise(last, epsilon).fill(np.random.PCG64(_SEED), made)
    return made
