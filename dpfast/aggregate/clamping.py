"""The interval that records are clamped to before their sufficient statistics are summed, by public numbers.

A narrow interval takes less noise; a wide one loses less of the information of the records. The unknown parameters are
not public: relative to the best interval, the error is least on average over parameters spread evenly over the bounds
(the logarithms of positive ones), or at a guess.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregate.moments import Moments, covariance_of, positive, scaled_range
from dpfast.families.family import Family
from dpfast.families.summed import Summed, summed

Values = NDArray[np.float64]
Ranges = tuple[tuple[float, float], ...]
_EDGE = 0.01  # of the range: a family may be degenerate at a bound
_WIDEST = 2.0**-10  # of the upper bound of a positive parameter: the least one that the choice considers
_POINTS = {1: 9, 2: 5}  # assumed values of each parameter
_INNER = np.linspace(0.125, 0.875, 7)
USELESS = 0.5  # error of a parameter relative to its value from which on a release says little
_ENDS = {1: (6, 16), 2: (9, 9)}  # candidates for the low and the high end
_TAILS = np.array([0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6])
_FARTHEST = 1e300
_MOST_LOSS = 700.0


class Clamping(NamedTuple):
    """An interval of coordinates, and the logarithms of the errors with it.

    Attributes
    ----------
    low, high : float
    losses : ndarray of shape (m,)
        At each assumed value of the parameters, the mean logarithm of their standard deviations.
    """

    low: float
    high: float
    losses: Values


def assumed(model: Summed, bounds: Sequence[tuple[float, float]], guess: Sequence[float] | None) -> Values:
    """Return the assumed values of the parameters, of shape (m, p): the guess, or points that cover
    the bounds evenly.
    """
    if guess is not None:
        return np.array([guess])
    axes = []
    for (low, high), logs in zip(bounds, positive(model), strict=True):
        start, stop = scaled_range(max(low, high * _WIDEST) if logs else low, high, logs=bool(logs))
        points = start + (stop - start) * np.linspace(_EDGE, 1 - _EDGE, _POINTS[len(bounds)])
        axes.append(np.clip(np.exp(points), low, high) if logs else points)
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(bounds))


def within(model: Summed, bounds: Sequence[tuple[float, float]]) -> Values:
    """Return values of the parameters from all of the bounds, of shape (m, p), but for their outer eighths.

    `assumed` leaves out positive values below a thousandth of the upper bound, so that most of the records' interval is
    not for them; here they count.
    """
    axes = []
    for (low, high), logs in zip(bounds, positive(model), strict=True):
        start, stop = scaled_range(low or high * _WIDEST if logs else low, high, logs=bool(logs))
        points = start + (stop - start) * _INNER
        axes.append(np.clip(np.exp(points), low, high) if logs else points)
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(bounds))


def span_too_much(model: Summed, bounds: Sequence[tuple[float, float]]) -> bool:
    """Whether a positive parameter has values within its bounds that `assumed` leaves out."""
    return any(logs and 0 < low < high * _WIDEST for (low, high), logs in zip(bounds, positive(model), strict=True))


def relative_errors(model: Summed, theta: Values, deviations: Values) -> Values:
    """Return the largest error of a positive parameter relative to its value, of shape (m,)."""
    with np.errstate(all="ignore"):
        ratios = np.where(positive(model), deviations / theta, 0.0)
    return np.asarray(np.nan_to_num(ratios, nan=np.inf).max(axis=1))


@lru_cache(maxsize=256)
def clamping(
    family: Family, names: tuple[str, ...], bounds: Ranges, guess: tuple[float, ...] | None, n: int, noise: float
) -> Clamping:
    """Return the interval of least mean error, relative to the least one at each assumed value.

    Parameters
    ----------
    family, names, bounds, guess
        See `dpfast.SufficientStatistics`; the ranges and the guess in the order of the names.
    n : int
        The expected number of records.
    noise : float
        The variance of the noise on the sum of a statistic of width 1.
    """
    candidates = _candidates(family, names, bounds, guess)
    variances = np.full(len(names), noise / n**2)
    with np.errstate(all="ignore"):
        covariances = covariance_of(candidates.covariances, candidates.slopes, n, variances)
        found = np.log(candidates.moments.deviations(candidates.phi, covariances)).mean(axis=1)
    losses = np.nan_to_num(found, nan=_FARTHEST, posinf=_FARTHEST, neginf=-_FARTHEST).reshape(len(candidates.pairs), -1)
    relative = np.exp(np.minimum(losses - losses.min(axis=0), _MOST_LOSS))
    best = int(np.argmin(relative.mean(axis=1)))
    return Clamping(*candidates.pairs[best], losses[best])


class _Candidates(NamedTuple):
    """Intervals, and the moments of a record in each of them at each assumed value, in this order."""

    pairs: list[tuple[float, float]]
    moments: Moments  # of any of them: what is asked does not depend on the interval
    phi: Values
    covariances: Values
    slopes: Values


@lru_cache(maxsize=32)
def _candidates(family: Family, names: tuple[str, ...], bounds: Ranges, guess: tuple[float, ...] | None) -> _Candidates:
    """Return what does not depend on the number of records and the noise, most of the time of a choice."""
    model = summed(family, names)
    assert model is not None
    theta = assumed(model, bounds, guess)
    with np.errstate(all="ignore"):
        pairs = [(low, high) for low, high in itertools.product(*_ends_of(model, theta)) if low < high]
        if not pairs:
            raise OverflowError("no two doubles are ends of an interval of records")
        found = [Moments(model, bounds, low, high) for low, high in pairs]
        phi = found[0].phi(theta)
        _, covariances, slopes = map(np.concatenate, zip(*(moments.slopes(phi) for moments in found), strict=True))
    return _Candidates(pairs, found[0], np.tile(phi, (len(pairs), 1)), covariances, slopes)


def _ends_of(model: Summed, theta: Values) -> tuple[list[float], list[float]]:
    """Return the ends of intervals: quantiles of the coordinate at the assumed parameters."""
    least, most = model.most
    lows, highs = _ENDS[model.statistics]

    def ends(levels: Values, count: int, limit: float) -> list[float]:
        points = np.concatenate([model.quantile(theta, np.full(len(theta), level)) for level in levels])
        points = points[np.isfinite(points) & (np.abs(points) < _FARTHEST)]
        if np.isfinite(limit):
            points = np.append(points, limit)
        points = np.unique(np.clip(np.rint(points) if model.whole else points, least, most))
        if not len(points):
            raise OverflowError("no quantile of a record is a double")
        chosen: list[float] = points[np.unique(np.linspace(0, len(points) - 1, count).round().astype(int))].tolist()
        return chosen

    low = [least] if np.isfinite(least) and not model.whole else ends(_TAILS, lows, least)
    high = ends(1 - _TAILS, highs, most)
    if model.whole and high[-1] <= low[0]:  # almost all records are equal: the next integer stands for the others
        high = [low[0] + 1]
    return low, high
