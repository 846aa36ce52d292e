"""Influence functions at a finite scale: the effect of one point on a statistic of a sample.

These functions take a sample; their results are as private as the sample.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.core.spending import EXACT, refused
from dpfast.statistics import Statistic

WeightedStatistic = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


@refused(EXACT)
def influence_function(
    statistic: Statistic | WeightedStatistic, x: ArrayLike, at: float | Fraction, contamination: float
) -> float:
    """Change of a statistic when a share of the sample's mass moves to the point `at`, divided by this share.

    PRIVATE: a function of x, for theory and diagnosis, not a release.

    Parameters
    ----------
    statistic : dpfast.statistics.Statistic or callable
        Any statistic except `Sum`, computed exactly as a functional of a weighted distribution function F: a quantile
        is ``inf{t : F(t) >= q}``; a trimmed mean is the mean of the quantiles of levels from trim to 1 - trim; a
        Winsorized mean replaces the values beyond these two quantiles by them; Huber's estimate is the least root theta
        of ``E clip(theta - X, -k, k)``, not rounded to a grid. A callable receives ``(values, weights)``, float64
        arrays of equal length, unsorted, with nonnegative weights of sum 1, and returns a number; it must treat a value
        of weight 0 as absent.
    x : array_like of shape (n,)
        The sample, finite; F is its empirical distribution.
    at : float
        The point that receives the mass; may be infinite (a limit), except for callables.
    contamination : float or Fraction
        The share rho, in (0, 1]. A float is read as the decimal that it prints as; pass a Fraction where ties matter
        (1/3).

    Returns
    -------
    float
        Signed; correctly rounded for a statistic; infinite if an infinite `at` makes the statistic infinite.

    Raises
    ------
    TypeError
        If `statistic` is neither a statistic nor a callable, or is `Sum`, which depends on the number of records.
    ValueError
        If `contamination` is out of range, `at` is NaN, or x is empty, not finite or not one-dimensional.

    Notes
    -----
    Definition 3::

        IF_rho(at, T, F) = (T((1 - rho) F + rho delta_at) - T(F)) / rho

    For a linear T this is a(at) - T(F) at every scale. If trim * n is an integer and x is on the grid, T(F) is the
    statistic that the mechanisms release. Cost: O(n log n), in exact integers: about 10 microseconds per record.

    References
    ----------
    Chaudhuri and Hsu 2012, section 2; Huber 1981, "Robust Statistics".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> x = np.arange(11.0)
    >>> dpf.theory.influence_function(dpf.statistics.Median(), x, at=1e6, contamination=0.1)
    10.0
    >>> mean = lambda values, weights: values @ weights
    >>> round(dpf.theory.influence_function(mean, x, at=25.0, contamination=0.1), 9)
    20.0
    """
    share = _share(contamination)
    place = at if isinstance(at, Fraction) else float(at)
    if math.isnan(place):
        raise ValueError(f"at must be a number, not {at!r}")
    values = _sample(x)
    if isinstance(statistic, Statistic):
        moved = statistic.functional(_Weighted.mixture(values, share, place))
        return float((moved - statistic.functional(_Weighted.empirical(values))) / share)
    if not callable(statistic):
        raise TypeError(f"statistic must be one of dpfast.statistics or a callable, not {type(statistic).__name__}")
    place = checks.real("at", at)
    n = values.size
    before = float(statistic(values.copy(), np.full(n, 1 / n)))
    weights = np.append(np.full(n, float((1 - share) / n)), float(share))
    return (float(statistic(np.append(values, place), weights)) - before) / float(share)


@refused(EXACT)
def gross_error_sensitivity(
    statistic: Statistic | WeightedStatistic,
    x: ArrayLike,
    contamination: float,
    *,
    bounds: tuple[float, float] | None = None,
    points: ArrayLike | None = None,
) -> float:
    """Largest absolute influence, for a share of the mass, of any point on a statistic of a sample.

    PRIVATE: a function of x, for theory and diagnosis, not a release.

    Parameters
    ----------
    statistic, x, contamination
        See `influence_function`.
    bounds : tuple of two floats, optional
        Ends of the domain of the records. Default: the whole line, except for callables; then the result is infinite
        for means and variances, and for other statistics if the share is large enough to move them to infinity.
    points : array_like, optional
        Further points to try, for a callable.

    Returns
    -------
    float
        Exact and correctly rounded for statistics. For a callable, the largest that a search finds: exact if it does
        not decrease when a record grows, since the ends of the domain are then the worst points; else a lower bound,
        which misses peaks that are narrower than 1/128 of the domain and hold no record of `x` and none of `points`.

    Raises
    ------
    TypeError
        If a callable is given without `bounds`.
    ValueError
        As in `influence_function`, or if `bounds` are in the wrong order.

    Notes
    -----
    ``GES_rho(T, F) = sup_at |IF_rho(at, T, F)|``. Two statistics are not monotone in each record. The influence on the
    variance is ``(1 - rho)(at - E X)**2 - Var X``, whose modulus is greatest at an end or at the point closest to the
    mean. A quantile of the mixture is ``at`` clipped between two points, so the interquartile range is piecewise linear
    in ``at`` between four such points, and its change is greatest at one of them or at an end.
    The search for a callable tries the ends, `points`, 129 points at equal distances and 129 quantiles of x, and then
    three times 33 points around the best. Cost: two to six times that of `influence_function`; for a callable up to 360
    times.

    References
    ----------
    Chaudhuri and Hsu 2012, section 2.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> x = np.arange(11.0)
    >>> dpf.theory.gross_error_sensitivity(dpf.statistics.Median(), x, contamination=0.1)
    10.0
    >>> dpf.theory.gross_error_sensitivity(dpf.statistics.Median(), x, contamination=0.6)
    inf
    """
    if bounds is not None:
        lower, upper = checks.pair("bounds", bounds)
        if lower > upper:
            raise ValueError(f"bounds must be in order, lower < upper, not {bounds!r}")
    elif isinstance(statistic, Statistic):
        lower, upper = -math.inf, math.inf
    else:
        raise TypeError("give bounds=(lower, upper), the domain of the records, with a callable")
    places = [lower, upper, *(() if points is None else containers.vector("points", points).tolist())]
    if isinstance(statistic, Statistic):
        values, share = _sample(x), _share(contamination)
        turns = statistic.turns(_Weighted.empirical(values), partial(_Weighted.mixture, values, share))
        places += [min(max(turn, lower), upper) for turn in turns]
        return max(abs(influence_function(statistic, x, place, contamination)) for place in places)
    return _searched(lambda place: abs(influence_function(statistic, x, place, contamination)), places, _sample(x))


def _searched(influence: Callable[[float], float], places: list[float], values: NDArray[np.float64]) -> float:
    """Return the largest influence on a mesh of the domain, whose ends are the first places, and around the best."""
    lower, upper = places[:2]
    inside = np.clip(np.quantile(values, np.linspace(0, 1, 129), method="inverted_cdf"), lower, upper)
    mesh = np.unique(np.concatenate([places, np.linspace(lower, upper, 129), inside]))
    largest = -math.inf
    for _ in range(4):
        found = [influence(place) for place in mesh.tolist()]
        best = int(np.argmax(found))
        largest = max(largest, found[best])
        mesh = np.linspace(mesh[max(best - 1, 0)], mesh[min(best + 1, len(mesh) - 1)], 33)
    return largest


def _share(contamination: Any) -> Fraction:
    number = checks.real("contamination", contamination)
    share = _rational(contamination)
    if not 0 < share <= 1:
        raise ValueError(f"contamination must be above 0 and at most 1, not {number!r}")
    return share


def _rational(value: Any) -> Fraction:
    """Return the decimal number that a float prints as; a Fraction or an integer is unchanged."""
    return Fraction(repr(float(value))) if isinstance(value, (float, np.floating)) else checks.exact(value)


def _sample(x: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(containers.vector("x", x), dtype=np.float64)
    if values.size == 0:
        raise ValueError("x is empty: a statistic needs at least one record")
    if not np.isfinite(values).all():
        raise ValueError("x must be finite")
    return values


class _Weighted:
    """An exact distribution on sorted points: integers in units of 1 / `unit`; an infinite point is a float.

    The masses are integers in units of 1 / `total`.
    """

    def __init__(self, points: list[Any], masses: list[int], unit: int) -> None:
        self._points, self._masses, self._unit = points, masses, unit
        self._sums = list(accumulate(masses))
        self._total = self._sums[-1]

    @classmethod
    def empirical(cls, values: NDArray[np.float64]) -> _Weighted:
        ratios = [value.as_integer_ratio() for value in np.sort(values).tolist()]
        unit = max(bottom for _, bottom in ratios)  # powers of two
        return cls([top * (unit // bottom) for top, bottom in ratios], [1] * values.size, unit)

    @classmethod
    def mixture(cls, values: NDArray[np.float64], share: Fraction, place: float | Fraction) -> _Weighted:
        """``(1 - share) F + share delta_place``."""
        far = place if math.isinf(place) else Fraction(place)
        bottom = 1 if isinstance(far, float) else far.denominator
        near = cls.empirical(values)
        unit = math.lcm(near._unit, bottom)
        at = far if isinstance(far, float) else int(far * unit)
        if share == 1:
            return cls([at], [1], unit)
        points = [point * (unit // near._unit) for point in near._points]
        i = bisect_left(points, at)
        each, here = share.denominator - share.numerator, share.numerator * values.size
        return cls([*points[:i], at, *points[i:]], [*[each] * i, here, *[each] * (values.size - i)], unit)

    def _value(self, point: Any, divisor: int = 1) -> Any:
        return point if isinstance(point, float) else Fraction(point, divisor * self._unit)

    def quantile(self, level: Fraction, *, above: bool = False) -> Any:
        """``inf{t : F(t) >= level}``; with `above`, ``inf{t : F(t) > level}``."""
        i = (bisect_right if above else bisect_left)(self._sums, level * self._total)
        return self._value(self._points[min(i, len(self._points) - 1)])

    def between(self, start: Fraction, stop: Fraction) -> Any:
        """Return the integral of the quantile function from level `start` to `stop`."""
        finer = math.lcm(start.denominator, stop.denominator)
        low, high = int(start * finer) * self._total, int(stop * finer) * self._total
        integral: Any = 0
        for point, mass, up_to in zip(self._points, self._masses, self._sums, strict=True):
            inside = min(up_to * finer, high) - max((up_to - mass) * finer, low)
            if inside > 0:
                integral += point * inside
        return self._value(integral, finer * self._total)

    def variance(self) -> Any:
        if isinstance(self._points[0], float) or isinstance(self._points[-1], float):
            return math.inf if len(self._points) > 1 else Fraction(0)
        weighted = list(zip(self._points, self._masses, strict=True))
        total, squares = sum(x * m for x, m in weighted), sum(x * x * m for x, m in weighted)
        return Fraction(squares * self._total - total * total, (self._total * self._unit) ** 2)

    def huber(self, k: Fraction) -> Any:
        """Follow the slopes of ``E clip(theta - X, -k, k)``, times all units, to its least root."""
        corner = k.numerator * self._unit
        weighted = list(zip(self._points, self._masses, strict=True))
        height = corner * sum(mass if point == -math.inf else -mass for point, mass in weighted)
        if height >= 0:
            return -math.inf
        inside = [(point * k.denominator, mass) for point, mass in weighted if not isinstance(point, float)]
        turns = sorted((point + side * corner, -side * mass) for point, mass in inside for side in (-1, 1))
        slope, previous = 0, 0
        for turn, change in turns:
            rise = slope * (turn - previous)  # the slope is 0 before the first turn
            if slope and height + rise >= 0:
                return Fraction(previous * slope - height, slope * k.denominator * self._unit)
            height, slope, previous = height + rise, slope + change, turn
        return math.inf
