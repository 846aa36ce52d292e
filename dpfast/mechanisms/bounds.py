"""Bounds found privately, by two quantiles of records that have none, and releases that use them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, SupportsIndex

from numpy.typing import ArrayLike

from dpfast import _checks, _containers
from dpfast.grid import FloatGrid, Grid, Points, integers_within
from dpfast.mechanisms.explanation import Explain, explained
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.quantiles import Quantiles
from dpfast.privacy import Privacy, PrivacyProfile
from dpfast.random import RandomSource, bit_generator
from dpfast.statistics import Statistic
from dpfast.streaming import Chunks

_FARTHEST = 1e100  # keeps squares of widths, and of their sums, in the range of doubles
_FLOATS = FloatGrid(resolution=2.0**-900, lower=-_FARTHEST, upper=_FARTHEST)
_INTEGERS = integers_within(-(2.0**63), 2.0**64)
_MOST_POINTS = 2**32  # of a grid with the default step
_MOST_FROM_ZERO = 2**53  # for a grid of all integers

# n epsilon times the share of records beyond a bound: the tails of the grid then have a probability below 1e-6.
_RECORDS_BEYOND = 60
_MOST_BEYOND = 0.25


def bounds(
    x: ArrayLike | Chunks,
    *,
    epsilon: float,
    coverage: float = 0.99,
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
        Private data, as for `median`, or `dpfast.Chunks`. NaN counts as -1e100 unless `missing` says otherwise. n
        epsilon (1 - coverage) must be at least 120: with less, the bounds may be random floats up to 1e100.
    epsilon : float
        Positive.
    coverage : float
        In (0, 1): the same share of the others is below as above.
    missing : float, "lower" or "half", optional
        The value of NaN and None, by default "lower", -1e100; for "half" -1e100 or 1e100 at alternating positions. If
        more than (1 - coverage) / 2 of the records are missing, the bounds are useless with these: give a number.
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
        Parameters of a wrong type or out of range; x empty or of a wrong shape or dtype.

    Notes
    -----
    Privacy: one release by `Quantiles` of the levels (1 - coverage) / 2 and (1 + coverage) / 2 on the floats of 25 bits
    between -1e100 and 1e100 (docs/proofs/float-grid.md); rounding is post-processing. Cost: that of two quantiles.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> dpf.bounds(pay, epsilon=1.0)
    (0.0, 180000.0)
    """
    share = _checks.between("coverage", coverage, 0, 1)
    mechanism = Quantiles(_levels((1 - share) / 2), grid=_grid_for(x).with_missing(missing), epsilon=epsilon)
    low, high = explained(mechanism, explain, x)(x, rng=rng, workers=workers).tolist()
    return rounded_outward(low, high)


def _levels(beyond: float) -> tuple[float, float]:
    return beyond, 1 - beyond


def _grid_for(x: Any) -> Points:
    return _INTEGERS if _containers.declares_integers(x) else _FLOATS


def rounded_outward(low: float, high: float) -> tuple[float, float]:
    """The multiples of a round step around low <= high: lower <= low, upper >= high, lower < upper.

    The step is the greatest 1, 2 or 5 times a power of ten that is at most a quarter of the distance, or a quarter of
    a millionth of the larger magnitude, or of 1 for two zeros, if these are greater.
    """
    start, stop = Fraction(low), Fraction(high)
    quarter = max(stop - start, max(abs(start), abs(stop)) / 10**6) / 4 or Fraction(1, 4)
    power = math.floor(math.log10(quarter.numerator) - math.log10(quarter.denominator))
    steps = (m * Fraction(10) ** k for k in (power - 1, power, power + 1) for m in (1, 2, 5))
    step = max(step for step in steps if step <= quarter)
    first, last = math.floor(start / step), math.ceil(stop / step)
    if first == last:
        first, last = first - 1, last + 1
    return float(first * step), float(last * step)


def within_private_bounds(
    statistic: Statistic,
    method: Callable[..., Mechanism],
    *,
    step: float | None,
    epsilon: float,
    missing: float | str | None = None,
    **options: Any,
) -> Mechanism:
    """The mechanism of ``bounds="private"``: a statistic by a class of mechanisms, on a grid that it finds itself."""
    return _PrivatelyBounded(statistic, method, step, epsilon, missing, tuple(options.items()))


@dataclass(frozen=True, repr=False)
class _PrivatelyBounded(Mechanism):
    """Release a statistic within bounds that half of epsilon finds: the mechanism of ``bounds="private"``.

    The bounds are the quantiles with 120 / (epsilon n) of the records beyond each, at most a quarter, moved outward by
    their distance and rounded outward; the other half of epsilon releases the statistic within them. Both are charged
    in one piece.
    """

    statistic: Statistic
    method: Callable[..., Mechanism]
    step: float | None
    epsilon: float
    missing: float | str | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        _ = self._largest  # reject bad parameters before data are read

    @property
    def _half(self) -> float:
        return min(self.epsilon / 2, self.epsilon - self.epsilon / 2)  # rounded down

    def _on(self, grid: Grid) -> Mechanism:
        return self.method(self.statistic, grid=grid, epsilon=self._half, **dict(self.options))

    @property
    def _largest(self) -> Mechanism:
        """The mechanism on as many points as any bounds give, whose checks and guarantee do not depend on data."""
        return self._on(Grid(0, _MOST_POINTS - 1, step=1, missing=self.missing))

    @property
    def ordered(self) -> bool:
        return self._largest.ordered

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self._largest.privacy.delta)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """Of the quantiles and of any release with the other half: its form depends on the bounds."""
        return PrivacyProfile(self.privacy, (("bounded-range", self._half, 1), ("pure", self._half, 1)))

    def __repr__(self) -> str:
        return f"<release of the {self.statistic} within bounds found privately: {self.privacy}>"

    def _explained_missing(self) -> str:
        policy = "lower" if self.missing is None else self.missing
        if isinstance(policy, float):
            return f"Missing records (NaN, None, null) count as {policy:.9g}, clamped to the bounds that are found"
        return (
            f"Missing records (NaN, None, null) follow missing={policy!r}, within +-1e100 until bounds are found: "
            f"give a number if many are missing"
        )

    def check_records(self, n: SupportsIndex) -> int:
        n = _checks.whole("n", n)
        if n < (least := math.ceil(_RECORDS_BEYOND / _MOST_BEYOND / self._half)):
            raise ValueError(
                f"bounds='private' needs {least} records for epsilon={self.epsilon!r}, not {n}: give bounds=(lower, "
                f"upper)"
            )
        return n

    def __call__(self, x: ArrayLike | Chunks, *, rng: RandomSource = None, workers: int = 1) -> Any:
        source, _ = bit_generator(rng), _checks.threads(workers)
        values = x if isinstance(x, Chunks) else _containers.vector("x", x)
        n = self.check_records(values.records() if isinstance(values, Chunks) else len(values))
        grid = (_FLOATS if self.step is None else _INTEGERS).with_missing(self.missing)
        finding = Quantiles(_levels(_RECORDS_BEYOND / self._half / n), grid=grid, epsilon=self._half)
        low, high = finding(values, rng=source, workers=workers).tolist()
        lower, upper = rounded_outward(low - (high - low), high + (high - low))
        fits = upper - lower < _MOST_POINTS and max(abs(lower), abs(upper)) <= _MOST_FROM_ZERO
        step = self.step if fits else None
        return self._on(Grid(lower, upper, step=step, missing=self.missing))(values, rng=source, workers=workers)
