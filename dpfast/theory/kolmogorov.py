"""Wasserman and Zhou (2010), exponential mechanism under the Kolmogorov-Smirnov distance: theorems 11 and 12.

All is on the unit interval, for one column. k is the number of synthetic records, R the small-ball probability, C the
supremum of the density, epsilon the paper's alpha. From public parameters and assumptions, never from data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsIndex

from dpfast import _checks


def small_ball_probability(k: SupportsIndex, radius: float) -> float:
    """Probability that k independent draws are within a Kolmogorov-Smirnov distance of the law they are drawn from.

    Parameters
    ----------
    k : int
        Number of draws, at least 1.
    radius : float
        The distance, in [0, 1].

    Returns
    -------
    float
        R(k, radius) = P(sup |F - G| <= radius), G the empirical distribution function of k draws from F: the same for
        every continuous F. 0 below 1 / (2 k), the least distance there is, and where it underflows.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    For small radius and large k its logarithm is about ``-pi^2 / (8 k radius^2)``. Cost: that of
    ``scipy.stats.kstwo.cdf``, which it is.

    References
    ----------
    Wasserman and Zhou 2010, definition 10; Simard and L'Ecuyer 2011 for its computation.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.small_ball_probability(1, 0.75), 12), round(dpf.theory.small_ball_probability(100, 0.1), 6)
    (0.5, 0.747307)
    """
    from scipy.stats import kstwo

    return float(kstwo.cdf(_checks.fraction("radius", radius), _checks.whole("k", k, least=1)))


def exponential_tail(distance: float, *, n: SupportsIndex, k: SupportsIndex, epsilon: float, peak: float) -> float:
    """Bound on the probability that the records of `KolmogorovSmirnov` are further than this from the distribution.

    Parameters
    ----------
    distance : float
        Kolmogorov-Smirnov distance of the synthetic records from the law that the data are drawn from, in [0, 1].
    n, k : int
        Records and synthetic records, at least 1.
    epsilon : float
        Positive.
    peak : float
        C >= 1: the greatest density on the unit interval, that is, of values divided by the width of the bounds.

    Returns
    -------
    float
        ``C^k exp(-3 n epsilon distance / 16) / R(k, distance / 2) + 1 - R(n, distance / 16)``, at most 1.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Over data and release, for every n: equation (11) with the sensitivity 1 / n and, for its O(n^-c), the exact
    probability of the event that (10) bounds. For a continuous law, before values are rounded to the grid.

    References
    ----------
    Wasserman and Zhou 2010, Theorem 11.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.exponential_tail(0.2, n=30_000, k=100, epsilon=1.0, peak=3.53), 4)
    0.0002
    """
    from scipy.stats import kstwo

    far = _checks.fraction("distance", distance)
    n, k = _checks.whole("n", n, least=1), _checks.whole("k", k, least=1)
    epsilon, log_peak = _checks.positive_down("epsilon", epsilon), _log_peak(peak)
    ball = small_ball_probability(k, far / 2)
    if ball == 0:
        return 1.0
    exponent = k * log_peak - 3 * n * epsilon * far / 16 - math.log(ball)
    return min(1.0, math.exp(min(exponent, 0.0)) + float(kstwo.sf(far / 16, n)))


@dataclass(frozen=True)
class ExponentialOrders:
    """Orders of growth of the synthetic records of `KolmogorovSmirnov` and of their distance from the truth.

    Attributes
    ----------
    k, rate : float
    """

    k: float
    rate: float


def exponential_orders(n: SupportsIndex, *, epsilon: float, peak: float) -> ExponentialOrders:
    """Synthetic records and distance from the truth of the exponential mechanism as Theorem 12 has them.

    Parameters
    ----------
    n : int
        Number of records, at least 1.
    epsilon : float
        Positive.
    peak : float
        C > 1: the greatest density on the unit interval.

    Returns
    -------
    ExponentialOrders
        ``k = (3 epsilon n / B)^(2/3)`` and ``rate = 2 (B / (3 epsilon n))^(1/3)``, B = log C.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The constants do not follow from Theorem 11: with them C^k exp(-3 n epsilon rate / 16) is C^(7 k / 8), which grows.
    With less than an eighth of this k it vanishes, at this rate.

    Nor is the rate the mechanism's: the theorem keeps R(k, rate / 2) constant. With k = a n^(1/2) and a distance of
    b n^(-1/2) the logarithm of the first summand of `exponential_tail` is about ``n^(1/2) (a B - 3 b epsilon / 16 +
    pi^2 / (2 a b^2))``, negative for b large: the mechanism has the minimax rate n^(-1/2). `exponential_distance` is
    what is found.

    References
    ----------
    Wasserman and Zhou 2010, Theorem 12.

    Examples
    --------
    >>> import dpfast as dpf
    >>> orders = dpf.theory.exponential_orders(1000, epsilon=1.0, peak=3.53)
    >>> round(orders.k, 1), round(orders.rate, 3)
    (178.2, 0.15)
    """
    n = _checks.whole("n", n, least=1)
    epsilon, log_peak = _checks.positive_down("epsilon", epsilon), _log_peak(peak)
    if log_peak == 0:
        raise ValueError("peak must be above 1: Theorem 12 is not about the uniform density")
    ratio = 3 * epsilon * n / log_peak
    return ExponentialOrders(ratio ** (2 / 3), 2 * ratio ** (-1 / 3))


def exponential_distance(n: SupportsIndex, *, k: SupportsIndex, epsilon: float) -> float:
    """Kolmogorov-Smirnov distance to expect between the records of `KolmogorovSmirnov` and the data: an approximation.

    Parameters
    ----------
    n, k : int
        Records and synthetic records, at least 1.
    epsilon : float
        Positive.

    Returns
    -------
    float
        ``(pi^2 / (2 k n epsilon))^(1/3)``, at least 1 / (2 k) and at most 1.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Where the probability R(k, d) exp(-n epsilon d / 2) of a distance d is largest, with log R about -pi^2 / (8 k d^2):
    as if data were spread evenly over the bounds. Other data have it while few records are asked for, and more
    from where k exceeds about a twentieth of n epsilon: then it pays to give up the shape of the data, in part, for
    places of more volume. For quantiles of Beta(10, 10) and Beta(2, 3), n epsilon from 1e3 to 1e5 and k from its root
    to n epsilon / 20 the expectation, which the law gives, is 0.9 to 1.2 times this.

    The distance from the truth is at most that of the data, of order n^(-1/2), more.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.exponential_distance(10_000, k=232, epsilon=1.0), 4)
    0.0129
    """
    n, k = _checks.whole("n", n, least=1), _checks.whole("k", k, least=1)
    distance = math.cbrt(math.pi**2 / (2 * k)) / math.cbrt(n * _checks.positive_down("epsilon", epsilon))
    return min(1.0, max(distance, 1 / (2 * k)))


def _log_peak(peak: float) -> float:
    if not _checks.positive("peak", peak) >= 1:
        raise ValueError(f"peak must be at least 1, as of any density on the unit interval, not {peak!r}")
    return math.log(peak)
