"""Bounds found privately, by two quantiles of records that have none, and releases that use them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.choosing import Explain, explained, split
from dpfast.core import checks, containers
from dpfast.core.grid import FloatGrid, Grid, Points, check_missing, checked_policy, integers_within, natural_step
from dpfast.core.privacy import Privacy
from dpfast.core.rounding import down
from dpfast.core.types import Exact, Records
from dpfast.mechanisms.assumptions import SAMPLES, Assumed, code_moments, sobol, target
from dpfast.mechanisms.expectations import mean_magnitude
from dpfast.mechanisms.globally import GlobalSensitivity
from dpfast.mechanisms.inverse import InverseSensitivity
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.moments import MOST_RECORDS, MomentPair
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.prediction import Expected
from dpfast.mechanisms.quantiles import Quantiles
from dpfast.mechanisms.resized import resized
from dpfast.mechanisms.statistic import StatisticMechanism
from dpfast.random import RandomSource, bit_generator
from dpfast.statistics import Mean, Median, Statistic, Sum, Variance
from dpfast.streaming import Chunks

_FARTHEST = 1e100  # keeps squares of widths, and of their sums, in the range of doubles
_FLOATS = FloatGrid(resolution=2.0**-900, lower=-_FARTHEST, upper=_FARTHEST, missing="lower")
_INTEGERS = integers_within(-(2.0**63), 2.0**64).with_missing("lower")
_MOST_POINTS = 2**32  # of a grid with the default step
_MOST_FROM_ZERO = 2**53  # for a grid of all integers

# The records beyond a bound have this log-weight against each point beyond all records: the tails of the grid then have
# a probability below 1e-6 for pay, 1e-3 for N(1e5, 10) and for numbers of seven digits that are all equal. Up to
# _MOST_NATS for many records, to which they cost little. Inside bounds the tails are below 1e-6.
_NATS, _MOST_NATS, _NATS_WITHIN = 28.0, 40.0, 24.0
# n times the epsilon of a median that stands for missing records while bounds are found: a share of n epsilon, between.
_CENTER, _CENTER_SHARE, _MOST_CENTER = 60.0, 0.02, 200.0
_MOST_BEYOND, _LEAST_SHARE, _MOST_SHARE = 0.25, 0.1, 0.5
_MOST_STRETCH = 16.0
_MOST_FURTHER = 3.0  # of `bounds`, which stay within a few ranges of the records
# A variance within bounds is a pair of moments if the shorter of two tails has this share of both: where the mean is at
# a tenth of the width from a bound, noise on the variance is as small. Measured, errors of pairs relative to those of
# that noise, n = 1,000 and 5,000, epsilon 1: .33 to .78 for normal, bimodal, Laplace, t(3) data and ages; for one-sided
# ones (gamma, exponential, lognormal, Pareto, rare events), which do not get pairs, .96 to 1.23.
_SHORTER_TAIL = Fraction(1, 10)
_MAGNITUDE_OF_PAIR = 0.735  # mean magnitude of the noise in deviations: .71 to .76 for a mean anywhere in the bounds
_FEW = 8, 8  # imagined samples, and draws of bounds for each, for an expected error
_PARTS = 64  # rounding widens bounds that are used once by at most two of these
_DIGITS = 12  # of the floats among which bounds are found inside given ones
_OF_CENTER = "a median that stands for missing records"


def bounds(
    x: Records | Chunks,
    *,
    epsilon: Exact,
    coverage: float = 0.99,
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> tuple[float, float]:
    """Release bounds between which about a share `coverage` of the records lies, epsilon-differentially private.

    Neighbours: one replaced record. Use them as public bounds; they need none themselves. For one mean, sum or
    variance, ``bounds="private"`` finds bounds for n and epsilon in the same call.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data, as for `median`, or `dpfast.Chunks`. n epsilon must be at least 284, for integers of
        NumPy and with a number as `missing` 224.
    epsilon : float
        Positive.
    coverage : float
        In (0, 1): the same share of the others is below as above. With n epsilon (1 - coverage) below 112 to 160, inner
        quantiles are released and extended outward by up to three times their distance, as exponential tails need it.
    neighbors : {"replace-one", "add-remove"}
        "add-remove" protects the addition or removal of a record, by `dpfast.Resized`: the number of records is
        private, and too few of them are not refused.
    missing : float, "lower", "half" or "drop", optional
        A number counts as the value of NaN and None. By default, and for the others, missing records do not move the
        bounds while fewer than half are missing: a median, released first with a part of epsilon, stands for them.
        "drop" leaves them out, for "add-remove".
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data.
    explain : bool or callable
        True prints what the release does, from public numbers only; a function receives the text.

    Returns
    -------
    lower, upper : float
        ``lower < upper``: two quantiles, widened to multiples of a round step, the greatest 1, 2 or 5 times a power of
        ten that is at most a quarter of their distance.

    Raises
    ------
    TypeError, ValueError
        Parameters of a wrong type or out of range; x empty, too short for epsilon, or of a wrong shape or dtype.

    Notes
    -----
    Privacy: a release by `Quantiles` of the levels (1 - coverage) / 2 and (1 + coverage) / 2, or of inner ones, on the
    floats of 25 bits between -1e100 and 1e100, and for floats one of the median before
    (https://dpfast.readthedocs.io/en/latest/proofs/float-grid.html); the rest is post-processing. Cost: that of two or
    four quantiles, and of a median.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> dpf.bounds(pay, epsilon=1.0)
    (0.0, 180000.0)
    """
    share = checks.between("coverage", coverage, 0, 1)
    epsilon = checks.positive_down("epsilon", epsilon)
    bit_generator(rng)  # reject it before the number of records
    step, policy = natural_step(x), checked_policy(missing)
    if checks.choice("neighbors", neighbors, ("replace-one", "add-remove")) == "replace-one":
        mechanism: Mechanism = _Coverage(share, step, epsilon, policy, not containers.may_be_missing(x))
    else:
        drops = policy == "drop"
        known = None if drops else policy
        mechanism = resized(
            lambda part: _Coverage(share, step, part, known), epsilon=epsilon, missing="drop" if drops else None
        )
    lower, upper = explained(mechanism, explain, x)(x, rng=rng, workers=workers).tolist()
    return lower, upper


def rounded_outward(low: float | Fraction, high: float | Fraction, parts: int = 4) -> tuple[float, float]:
    """Return the multiples of a round step around low <= high: lower <= low, upper >= high, lower < upper.

    The step is the greatest 1, 2 or 5 times a power of ten that is at most a part of the distance, or of a millionth of
    the larger magnitude, or of 1 for two zeros, if these are greater.
    """
    start, stop = Fraction(low), Fraction(high)
    part = max(stop - start, max(abs(start), abs(stop)) / 10**6) / parts or Fraction(1, parts)
    power = math.floor(math.log10(part.numerator) - math.log10(part.denominator))
    steps = (m * Fraction(10) ** k for k in (power + 1, power, power - 1) for m in (5, 2, 1))
    step = next(step for step in steps if step <= part)
    first, last = math.floor(start / step), math.ceil(stop / step)
    if first == last:
        first, last = first - 1, last + 1
    return float(first * step), float(last * step)


def _nats(product: float) -> float:
    """Return the log-weight of the records beyond a bound for this n epsilon, without bounds."""
    return min(_NATS + 10 * math.log10(max(product / 1000, 1.0)), _MOST_NATS)


@lru_cache(maxsize=64)
def _halving(points: Points, epsilon: float) -> InverseSensitivity:
    """Return a median that counts missing records as lowest and highest in turn."""
    return InverseSensitivity(Median(), grid=points.with_missing("half"), epsilon=epsilon)


class _Finding(StatisticMechanism):
    """A mechanism that finds bounds by quantiles, of records that have none or are within wide ones."""

    epsilon: float
    step: float | None
    missing: float | str | None
    full: bool
    fills_empty_groups = False
    counts_first = "bounds are found in steps, each of which reads all records: use Chunks"

    @property
    def _candidates(self) -> Points:
        """The points among which bounds are found."""
        return _FLOATS if self.step is None else _INTEGERS

    def _least_for(self, product: float) -> int:
        """Return the least n with n epsilon of at least `product`."""
        return math.ceil(Fraction(product) / Fraction(self.epsilon))

    @property
    def _centers(self) -> bool:
        """Whether a median stands for missing records: there may be some, and no number is given for them."""
        return not self.full and not isinstance(self.missing, float)

    def _center(self, n: int) -> float:
        """Return the epsilon of the median of n records that stands for missing ones, or 0."""
        product = min(max(_CENTER, _CENTER_SHARE * n * self.epsilon), _MOST_CENTER)
        return min(product / n, self.epsilon / 4) if self._centers else 0.0

    def _quantiles(
        self, levels: Sequence[float], n: int, values: Any, epsilon: float, center: float, source: Any, threads: int
    ) -> tuple[list[Fraction], float | None]:
        """Draw quantiles of n records; before, for missing records, a median with the epsilon `center`, unless it is 0.

        That median, which is returned, too, counts missing records as lowest and highest in turn. While fewer than half
        are missing, it is one of the values, or between two, and so then are the quantiles.
        """
        grid, median = self._candidates.with_missing(self.missing), None
        if center:
            median = float(_halving(grid, center).plan(n).draw(values, source, threads))
            grid = grid.with_missing(median)
        released = Quantiles(levels, grid=grid, epsilon=epsilon).plan(n).draw(values, source, threads)
        return list(map(Fraction, released.tolist())), median


@dataclass(frozen=True, repr=False)
class _Coverage(_Finding):
    """Release bounds between which about a share `coverage` of the records lies."""

    coverage: float
    step: float | None
    epsilon: float
    missing: float | str | None = None
    full: bool = False

    def __post_init__(self) -> None:
        check_missing("bounds", (self._candidates.with_missing(self.missing),), hides_n=False)

    @property
    def ordered(self) -> bool:
        return self._centers or self.missing == "half"

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    def _explained_missing(self) -> str:
        if isinstance(self.missing, float):
            return f"Missing records (NaN, None, null) count as {self.missing:.9g}"
        return "Missing records (NaN, None, null) do not move the bounds, unless half of the records are missing"

    def _explained_split(self, n: int | None) -> str:
        center = 0.0 if n is None else self._center(n)
        return split({_OF_CENTER: center, "quantiles": self.epsilon - center}) if center else ""

    def __repr__(self) -> str:
        return f"<release of bounds of {100 * self.coverage:.10g} % of the records: {self.privacy}>"

    @property
    def least_records(self) -> int:
        """The least number of records. Public."""
        return self._least_for(2 * _NATS / _MOST_BEYOND + self._centers * _CENTER)

    def _make_plan(self, n: int | None) -> Plan:
        if n is None:
            return super()._make_plan(n)
        least = self.least_records
        if checks.records(n) < least:
            raise ValueError(
                f"bounds need {least} records for epsilon={self.epsilon!r}, not {n}: use public knowledge, or a larger "
                f"epsilon"
            )
        return _ByCoverage(self, n)


class _ByCoverage(Plan):
    """A draw of bounds from n records."""

    mechanism: _Coverage
    n: int

    def __init__(self, mechanism: _Coverage, n: int) -> None:
        super().__init__(mechanism, n)
        self._center = mechanism._center(n)
        self._epsilon = down(Fraction(mechanism.epsilon) - Fraction(self._center))
        self._wanted = (1 - mechanism.coverage) / 2
        nats = _nats(n * mechanism.epsilon)
        self._beyond = beyond = max(self._wanted, min(2 * nats / self._epsilon / n, _MOST_BEYOND))
        inner = (2 * beyond, 1 - 2 * beyond) if beyond > self._wanted else ()
        self._levels = (beyond, *inner, 1 - beyond)

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> NDArray[np.float64]:
        quantiles, candidates = self.mechanism._quantiles, self.mechanism._candidates
        found, _ = quantiles(self._levels, self.n, values, self._epsilon, self._center, source, threads)
        low, high = found[0], found[-1]
        if self._beyond > self._wanted:  # exponential tails halve at equal distances
            further = Fraction(min(math.log2(self._beyond / self._wanted), _MOST_FURTHER))
            low = max(low - further * (found[1] - low), Fraction(candidates.lower))
            high = min(high + further * (high - found[2]), Fraction(candidates.upper))
        return np.array(rounded_outward(low, high))


def within_private_bounds(
    statistic: Statistic,
    method: Callable[..., Mechanism],
    *,
    step: float | None,
    epsilon: float,
    missing: float | str | None = None,
    full: bool = False,
    chooses: bool = False,
    **options: Any,
) -> Mechanism:
    """Return the mechanism of ``bounds="private"``: a statistic by a class of mechanisms, on a grid that it finds
    itself. With `chooses`, the variance may be a pair of moments there; `full`: no record can be missing.
    """
    pairs, given = chooses and isinstance(statistic, Variance), tuple(options.items())
    return _PrivatelyBounded(statistic, method, step, epsilon, missing, given, pairs=pairs, full=full)


def clamped_privately(statistic: Statistic, *, grid: Grid, epsilon: float) -> Mechanism:
    """Return the mechanism of ``method="private-bounds"``: noise for bounds that it finds inside those of the grid."""
    pairs = isinstance(statistic, Variance)
    return _PrivatelyBounded(statistic, GlobalSensitivity, grid.step, epsilon, grid.missing, (), grid, pairs)


def _inside(grid: Grid, low: Fraction, high: Fraction) -> Grid:
    """Return the least part of a grid, of at least two points, that contains low..high inside its bounds."""
    first = min(max(math.floor(low / Fraction(grid.step)) - grid.first, 0), grid.size - 2)
    last = max(min(math.ceil(high / Fraction(grid.step)) - grid.first, grid.size - 1), first + 1)
    return Grid(grid.value(first), grid.value(last), step=grid.step, missing=grid.missing)


@dataclass(frozen=True, repr=False)
class _PrivatelyBounded(_Finding):
    """Release a statistic within bounds that a share of epsilon finds, inside public bounds or without any.

    The bounds are two quantiles, moved outward: the mechanism of ``bounds="private"`` and ``method="private-bounds"``.
    The rest of epsilon releases the statistic within them. Both are charged in one piece. With `pairs`, for a variance,
    this is a `MomentPair` where the quantiles show tails on both sides.
    """

    statistic: Statistic
    method: Callable[..., Mechanism]
    step: float | None
    epsilon: float
    missing: float | str | None = None
    options: tuple[tuple[str, Any], ...] = ()
    within: Grid | None = None
    pairs: bool = False
    full: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        _ = self._largest  # reject bad parameters before data are read

    def _on(self, grid: Grid, epsilon: float) -> Mechanism:
        return self.method(self.statistic, grid=grid, epsilon=epsilon, **dict(self.options))

    @property
    def _largest(self) -> Mechanism:
        """The mechanism on as many points as any bounds give, whose checks and guarantee do not depend on data."""
        grid = Grid(0, _MOST_POINTS - 1, step=1, missing=self.missing) if self.within is None else self.within
        return self._on(grid, self.epsilon * (1 - _MOST_SHARE))

    @property
    def ordered(self) -> bool:
        return self._centers or self._largest.ordered

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self._largest.privacy.delta)

    def __repr__(self) -> str:
        inside = "" if self.within is None else f" inside [{self.within.lower!r}, {self.within.upper!r}]"
        return f"<release of the {self.statistic} within bounds found privately{inside}: {self.privacy}>"

    def _explained_split(self, n: int | None) -> str:
        if n is None:
            return f"Of epsilon, at most {_MOST_SHARE:.3g} is for bounds, and the rest for the {self.statistic} within"
        plan = self.plan(n)
        within = f"the {self.statistic} within them"
        return split({_OF_CENTER: plan.center, "bounds": plan.finding, within: plan.releasing})

    def _explained_missing(self) -> str:
        if self.missing is None and self._centers:
            return "Missing records (NaN, None, null) are replaced by a median that is released first"
        policy = "lower" if self.missing is None else self.missing
        if isinstance(policy, float):
            return f"Missing records (NaN, None, null) count as {policy:.9g}, clamped to the bounds that are found"
        until = "within the given bounds until bounds are found" if self.within else "and do not move the bounds"
        return f"Missing records (NaN, None, null) follow missing={policy!r}, {until}"

    if TYPE_CHECKING:

        def plan(self, n: SupportsIndex | None = None) -> WithinBounds: ...

    @property
    def least_records(self) -> int:
        """The least number of records. Public."""
        return self._least_for(2 * self._nats(0.0) / _MOST_BEYOND / _MOST_SHARE)

    def _make_plan(self, n: int | None) -> Plan:
        if n is None:
            return super()._make_plan(n)
        least = self.least_records
        if n < least:
            what = "bounds='private'" if self.within is None else "method='private-bounds'"
            other = "give bounds=(lower, upper)" if self.within is None else "use 'global-sensitivity'"
            raise ValueError(f"{what} needs {least} records for epsilon={self.epsilon!r}, not {n}: {other}")
        return WithinBounds(self, n)

    def _nats(self, product: float) -> float:
        """Return the log-weight that the records beyond a bound have against the points beyond all records."""
        return _nats(product) if self.within is None else _NATS_WITHIN

    @property
    def _centers(self) -> bool:
        return self.within is None and super()._centers

    @property
    def _candidates(self) -> Points:
        if (grid := self.within) is None:
            return super()._candidates
        farthest = max(abs(grid.lower), abs(grid.upper))
        if farthest / 2 > grid.upper - grid.lower:  # far from 0, floats are even, too
            return grid
        resolution = math.ldexp(1.0, min(math.frexp(grid.step)[1] + _DIGITS - 2, 1000))
        return FloatGrid(_DIGITS, resolution=resolution, lower=grid.lower, upper=grid.upper, missing=grid.missing)

    def _error_under(self, n: int, assumed: Assumed, confidence: float) -> float:
        bias, noise, deviation = self._imagined(n, assumed, SAMPLES, 1)
        cube = sobol(2)
        laplace = np.copysign(np.log1p(-np.abs(2 * cube[:, 1] - 1)), 0.5 - cube[:, 1])
        draws = bias[:, None] + deviation[:, None] * scipy.special.ndtri(cube[:, 0]) + noise[:, None] * laplace
        return float(np.quantile(np.abs(draws), confidence, method="inverted_cdf"))

    def _error_at_deviation(self, n: int, deviation: float, confidence: float) -> float:
        raise TypeError("a deviation does not determine the error within private bounds: give distribution=")

    def _expected_under(self, n: int, assumed: Assumed) -> Expected:
        """Of a noise with the law of Laplace noise, ``E|b + Z| = |b| + scale exp(-|b| / scale)``."""
        bias, noise, deviation = self._imagined(n, assumed, *_FEW)
        bias = np.abs(bias)
        within = bias + noise * np.exp(-bias / noise)
        return Expected(float(np.mean(within)), mean_magnitude(float(np.mean(deviation))))

    def _imagined(self, n: int, assumed: Assumed, samples: int, draws: int) -> NDArray[np.float64]:
        """Return the bias, the mean magnitude of the noise and the sampling deviation, for draws of the bounds.

        Bias and deviation are those of records clamped to the bounds; on a fine grid the noise of sensitivity 1 has the
        mean magnitude ``1 / (2 sinh(epsilon / 2))``, that of the staircase law.
        """
        if not isinstance(self.statistic, (Mean, Sum, Variance)) or self.method is not GlobalSensitivity:
            raise TypeError(f"no error is known for the {self.statistic} within private bounds")
        plan = self.plan(n)
        finding = Quantiles(plan.levels, grid=self._candidates, epsilon=plan.finding)
        rows = [list(map(Fraction, row)) for row in finding.imagined_releases(n, assumed, samples, draws).tolist()]
        if isinstance(self.statistic, Variance):
            return np.array([plan.imagined_variance(row, assumed) for row in rows]).T
        found = [plan.grid_for(row) for row in rows]
        lower, upper = np.array([grid.lower for grid in found]), np.array([grid.upper for grid in found])
        mean, variance = assumed.clamped_moments(lower, upper)
        magnitude = (upper - lower) / n / (2 * math.sinh(min(plan.releasing / 2, 500)))
        parts = np.stack([mean - target(Mean(), assumed), magnitude, np.sqrt(variance / n)])
        return parts * (n if isinstance(self.statistic, Sum) else 1)


class WithinBounds(Plan):
    """A draw from n records within bounds that it finds (https://dpfast.readthedocs.io/en/latest/guides/bounds.html).

    Attributes
    ----------
    center, finding, releasing : float
        The epsilon of a median that stands for missing records, of the quantiles and of the statistic, together at most
        epsilon.
    beyond : float
        The share of the records beyond the outer quantile of each side; beyond the inner one it is twice as large.
    stretch : float
        How far the outer quantiles move outward, in distances of the two quantiles of that side.
    """

    mechanism: _PrivatelyBounded
    n: int

    def __init__(self, mechanism: _PrivatelyBounded, n: int) -> None:
        super().__init__(mechanism, n)
        epsilon = mechanism.epsilon
        nats = mechanism._nats(at := n * epsilon)
        share = min(max(_LEAST_SHARE, 8.5 / math.sqrt(at), 2 * nats / _MOST_BEYOND / at), _MOST_SHARE)
        self.finding, self.center = epsilon * share, mechanism._center(n)
        self.releasing = down(Fraction(epsilon) - Fraction(self.finding) - Fraction(self.center))
        self.beyond = min(2 * nats / self.finding / n, _MOST_BEYOND)
        self.stretch = min(_MOST_STRETCH, 3 + math.sqrt(n) * epsilon / 8) / math.log(2)

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of the quantiles."""
        return self.beyond, 2 * self.beyond, 1 - 2 * self.beyond, 1 - self.beyond

    def grid_for(self, quantiles: Sequence[Fraction], median: float | None = None) -> Grid:
        """Return the grid within two quantiles on each side, the outer ones moved outward.

        A median that was released for missing records stands for them unless another policy is given.
        """
        # Fractions, because floats would overflow inside very wide bounds.
        mechanism, (low, inner_low, inner_high, high) = self.mechanism, quantiles
        stretch = Fraction(self.stretch)
        low, high = low - stretch * (inner_low - low), high + stretch * (high - inner_high)
        if mechanism.within is not None:
            return _inside(mechanism.within, low, high)
        lower, upper = rounded_outward(low, high, _PARTS)
        fits = upper - lower < _MOST_POINTS and max(abs(lower), abs(upper)) <= _MOST_FROM_ZERO
        policy = median if mechanism.missing is None else mechanism.missing
        return Grid(lower, upper, step=mechanism.step if fits else None, missing=policy)

    def mechanism_within(self, quantiles: Sequence[Fraction], median: float | None = None) -> Mechanism:
        """Return the mechanism of the statistic within the bounds that these quantiles give."""
        mechanism, grid = self.mechanism, self.grid_for(quantiles, median)
        low, inner_low, inner_high, high = quantiles
        tails = sorted((inner_low - low, high - inner_high))
        if mechanism.pairs and self.n <= MOST_RECORDS and tails[0] > 0 and tails[0] >= _SHORTER_TAIL * sum(tails):
            return MomentPair(grid=grid, epsilon=self.releasing)
        return mechanism._on(grid, self.releasing)

    def imagined_variance(self, quantiles: Sequence[Fraction], assumed: Assumed) -> tuple[float, float, float]:
        """Return the bias, the mean magnitude of the noise and the sampling deviation within the bounds of these."""
        inner, n = self.mechanism_within(quantiles), self.n
        grid = self.grid_for(quantiles)
        code, variance, fourth = code_moments(assumed, grid)
        if isinstance(inner, MomentPair):
            noise = _MAGNITUDE_OF_PAIR * inner.noise_deviation(n, grid.lower + code * grid.step)
        else:
            noise = (grid.upper - grid.lower) ** 2 * (n - 1) / n**2 / (2 * math.sinh(min(self.releasing / 2, 500)))
        deviation = math.sqrt(max(0.0, fourth - variance**2) / n) * grid.step**2
        return variance * grid.step**2 - target(Variance(), assumed), noise, deviation

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> Any:
        mechanism, n = self.mechanism, self.n
        found, median = mechanism._quantiles(self.levels, n, values, self.finding, self.center, source, threads)
        return self.mechanism_within(found, median).plan(n).draw(values, source, threads)
