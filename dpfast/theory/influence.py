"""How much one point can move a statistic of a sample: influence functions at a finite scale.

These look at a sample; what they return is as private as the sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks
from dpfast.statistics import Median, Quantile, Statistic

WeightedStatistic = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


def influence_function(statistic: Statistic | WeightedStatistic, x: ArrayLike, at: float, rho: float) -> float:
    """Change of a statistic when a share `rho` of the sample's mass moves to the point `at`, divided by `rho`.

    PRIVATE: a function of x, for theory and diagnosis, not a release.

    Parameters
    ----------
    statistic : Quantile, Median or callable
        A quantile is the inverse distribution function ``inf{t : F(t) >= q}``, computed exactly. A callable is given
        ``(values, weights)``, float64 arrays of equal length, unsorted, the weights nonnegative of sum 1, and returns a
        number; it must treat a value of weight 0 as absent.
    x : array_like of shape (n,)
        The sample, finite; F is its empirical distribution.
    at : float
        Where the mass goes; infinite points are allowed for quantiles.
    rho : float or Fraction
        In (0, 1]. A float stands for the number that it prints as; give a Fraction where ties matter (1/3).

    Returns
    -------
    float
        Signed; infinite if a quantile moves to an infinite `at`.

    Raises
    ------
    TypeError
        A statistic that is neither a quantile nor a callable.
    ValueError
        `rho` out of range, `at` NaN, x empty or not one-dimensional.

    Notes
    -----
    Definition 3::

        IF_rho(at, T, F) = (T((1 - rho) F + rho delta_at) - T(F)) / rho

    For a linear T this is a(at) - T(F) at every scale. Cost: O(n log n) for a quantile.

    References
    ----------
    Chaudhuri and Hsu 2012, section 2; Huber 1981, "Robust Statistics".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> x = np.arange(11.0)
    >>> dpf.theory.influence_function(dpf.statistics.Median(), x, at=1e6, rho=0.1)
    10.0
    >>> mean = lambda values, weights: values @ weights
    >>> round(dpf.theory.influence_function(mean, x, at=25.0, rho=0.1), 9)
    20.0
    """
    share = _share(rho)
    place = float(at)
    if math.isnan(place):
        raise ValueError(f"at must be a number, not {at!r}")
    values = _sample(x)
    if isinstance(statistic, Statistic):
        level, data = _level(statistic), np.sort(values)
        return (_mixture_quantile(data, place, share, level) - _sorted_quantile(data, level)) / float(share)
    if not callable(statistic):
        raise TypeError(f"statistic must be a quantile or a callable, not {type(statistic).__name__}")
    place = _checks.real("at", at)
    n = values.size
    before = float(statistic(values.copy(), np.full(n, 1 / n)))
    weights = np.append(np.full(n, float((1 - share) / n)), float(share))
    return (float(statistic(np.append(values, place), weights)) - before) / float(share)


def gross_error_sensitivity(
    statistic: Statistic | WeightedStatistic,
    x: ArrayLike,
    rho: float,
    *,
    bounds: tuple[float, float] | None = None,
    points: ArrayLike | None = None,
) -> float:
    """Largest absolute influence, at scale `rho`, of any point on a statistic of a sample.

    PRIVATE: a function of x, for theory and diagnosis, not a release.

    Parameters
    ----------
    statistic, x, rho
        As for `influence_function`.
    bounds : tuple of two floats, optional
        Ends of the domain of the records. By default the whole line, for quantiles only; there the result is infinite
        once `rho` is large enough to carry the quantile away.
    points : array_like, optional
        Further places to try, for a callable that is not monotone.

    Returns
    -------
    float
        Exact for quantiles and for every statistic that does not decrease when a record grows: the ends of the domain
        are then the worst places. For another callable, the largest over the ends and `points`, a lower bound.

    Raises
    ------
    TypeError
        A callable without `bounds`.
    ValueError
        As `influence_function`, or `bounds` in the wrong order.

    Notes
    -----
    ``GES_rho(T, F) = sup_at |IF_rho(at, T, F)|``. Cost: two or more evaluations of the statistic.

    References
    ----------
    Chaudhuri and Hsu 2012, section 2.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> x = np.arange(11.0)
    >>> dpf.theory.gross_error_sensitivity(dpf.statistics.Median(), x, rho=0.1)
    10.0
    >>> dpf.theory.gross_error_sensitivity(dpf.statistics.Median(), x, rho=0.6)
    inf
    """
    if bounds is not None:
        lower, upper = _checks.pair("bounds", bounds)
        if lower > upper:
            raise ValueError(f"bounds must be in order, not {bounds!r}")
    elif isinstance(statistic, Statistic):
        lower, upper = -math.inf, math.inf
    else:
        raise TypeError("give bounds=(lower, upper), the domain of the records, with a callable")
    places = [lower, upper, *(() if points is None else _checks.vector("points", points).tolist())]
    return max(abs(influence_function(statistic, x, place, rho)) for place in places)


def _share(rho: Any) -> Fraction:
    number = _checks.real("rho", rho)
    share = _rational(rho)
    if not 0 < share <= 1:
        raise ValueError(f"rho must be above 0 and at most 1, not {number!r}")
    return share


def _rational(value: Any) -> Fraction:
    """The rational number that a float prints as; a Fraction or an integer stays itself."""
    return Fraction(repr(float(value))) if isinstance(value, (float, np.floating)) else _checks.exact(value)


def _sample(x: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(_checks.vector("x", x), dtype=np.float64)
    if values.size == 0:
        raise ValueError("x is empty: a statistic needs at least one record")
    return values


def _level(statistic: Statistic) -> Fraction:
    if isinstance(statistic, Median):
        return Fraction(1, 2)
    if isinstance(statistic, Quantile):
        return _rational(statistic.q)
    raise TypeError(f"statistic must be Quantile, Median or a callable, not {type(statistic).__name__}")


def _sorted_quantile(data: NDArray[np.float64], level: Fraction) -> float:
    return float(data[max(1, math.ceil(level * data.size)) - 1])


def _mixture_quantile(data: NDArray[np.float64], place: float, share: Fraction, level: Fraction) -> float:
    """Inverse distribution function of ``(1 - share) F + share delta_place`` at `level`; sorted data.

    As a function of `place` it is `place` clipped to the quantiles of F that mass on the far right and left leads to.
    """
    if share == 1:
        return place
    n = data.size
    without = math.ceil(level * n / (1 - share))  # least i with (1 - share) i / n >= level: mass not yet met
    with_mass = math.ceil((level - share) * n / (1 - share))  # the same where the mass has been met
    highest = float(data[max(1, without) - 1]) if without <= n else math.inf
    lowest = float(data[with_mass - 1]) if with_mass >= 1 else -math.inf
    if level == 0:  # the least point of positive mass
        lowest = -math.inf
    return min(max(place, lowest), highest)
