"""Wasserman and Zhou (2010), exponential mechanism under the Kolmogorov-Smirnov distance: theorems 11 and 12.

Everything is on the unit interval, for one column. Notation: k is the number of synthetic records, R the small-ball
probability, C the supremum of the density, epsilon the paper's alpha. No function uses data.
"""

from __future__ import annotations

import math
from typing import SupportsIndex

from dpfast.core import checks


def small_ball_probability(k: SupportsIndex, radius: float) -> float:
    """Probability that k independent draws are within a Kolmogorov-Smirnov distance of their distribution.

    Parameters
    ----------
    k : int
        Number of draws, at least 1.
    radius : float
        The distance, in [0, 1].

    Returns
    -------
    float
        R(k, radius) = P(sup |F - G| <= radius), where G is the empirical distribution function of k draws from F; it is
        the same for every continuous F. 0 below 1 / (2 k), the least possible distance, or if it underflows.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    For small radius and large k its logarithm is about ``-pi^2 / (8 k radius^2)``. Computed by
    ``scipy.stats.kstwo.cdf``.

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

    return float(kstwo.cdf(checks.fraction("radius", radius), checks.whole("k", k, least=1)))


def exponential_tail(distance: float, *, n: SupportsIndex, k: SupportsIndex, epsilon: float, peak: float) -> float:
    """Bound the probability that the records of `KolmogorovSmirnov` are further than `distance` from the distribution.

    Parameters
    ----------
    distance : float
        Kolmogorov-Smirnov distance of the synthetic records from the distribution of the data, in [0, 1].
    n, k : int
        Number of records and of synthetic records, at least 1.
    epsilon : float
        Positive.
    peak : float
        C >= 1: the maximum density of the values after division by the width of the bounds.

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
    A probability over data and release, for every n: equation (11) with the sensitivity 1 / n and, in place of its
    O(n^-c), the exact probability of the event in (10). For a continuous law, before values are rounded to the grid.

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

    far = checks.fraction("distance", distance)
    n, k = checks.whole("n", n, least=1), checks.whole("k", k, least=1)
    epsilon, log_peak = checks.positive_down("epsilon", epsilon), _log_peak(peak)
    ball = small_ball_probability(k, far / 2)
    if ball == 0:
        return 1.0
    exponent = k * log_peak - 3 * n * epsilon * far / 16 - math.log(ball)
    return min(1.0, math.exp(min(exponent, 0.0)) + float(kstwo.sf(far / 16, n)))


def exponential_distance(n: SupportsIndex, *, k: SupportsIndex, epsilon: float) -> float:
    """Approximate expected Kolmogorov-Smirnov distance between the records of `KolmogorovSmirnov` and the data.

    Parameters
    ----------
    n, k : int
        Number of records and of synthetic records, at least 1.
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
    The distance d at which R(k, d) exp(-n epsilon d / 2) is largest, with log R about -pi^2 / (8 k d^2), as if the data
    were spread evenly over the bounds. For other data it holds while k is small; the distance is larger once k exceeds
    about a twentieth of n epsilon, where it pays to give up part of the shape of the data for points with more volume.
    For quantiles of Beta(10, 10) and Beta(2, 3), n epsilon from 1e3 to 1e5 and k from its root to n epsilon / 20, the
    expectation under the law is 0.9 to 1.2 times this.

    The distance from the distribution exceeds this by at most that of the data, of order n^(-1/2).

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.exponential_distance(10_000, k=232, epsilon=1.0), 4)
    0.0129
    """
    n, k = checks.whole("n", n, least=1), checks.whole("k", k, least=1)
    distance = math.cbrt(math.pi**2 / (2 * k)) / math.cbrt(n * checks.positive_down("epsilon", epsilon))
    return min(1.0, max(distance, 1 / (2 * k)))


def _log_peak(peak: float) -> float:
    if not checks.positive("peak", peak) >= 1:
        raise ValueError(f"peak must be at least 1, like the maximum of any density on the unit interval, not {peak!r}")
    return math.log(peak)
