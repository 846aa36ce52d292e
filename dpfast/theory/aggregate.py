"""Smith (2008): sample-and-aggregate estimators, their number of blocks, and their efficiency.

A block of b records gives an estimate of variance ``1 / (b I) + v2 / b**2`` and bias ``b1 / b + b2 / b**2``, where I is
the Fisher information of a record (b1 = 0 if the bias is corrected). The mean of k = n / b such estimates, with Laplace
noise of scale ``width / (k epsilon)``, has the mean squared error ``1 / (n I)`` of the best non-private estimator plus
an excess that depends on k. Estimates are clamped to an interval of this width; if the truth is within a few standard
deviations of a block's estimate from one of its ends, clamping biases the mean (`clamp_bias`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import SupportsIndex

from dpfast.core import checks
from dpfast.core.least import least as least_number

_FAR = 40.0  # beyond this many standard deviations, the normal tail underflows in doubles
_STRAIGHT = 1e-3  # below this skewness, an estimate is treated as normal


def clamp_bias(deviation: float, below: float, above: float, skewness: float = 0.0) -> float:
    """Bias of an estimate that is clamped to an interval.

    Parameters
    ----------
    deviation : float
        Standard deviation of the estimate before clamping, at least 0.
    below, above : float
        Distances from its mean down and up to the ends of the interval; negative if the mean lies outside, `math.inf`
        if there is no end.
    skewness : float
        Skewness of the estimate: 0 for a normal one, else it is shifted lognormal, and reflected if negative.

    Returns
    -------
    float
        For a normal estimate, ``deviation (L(below / deviation) - L(above / deviation))``, where ``L(z) = phi(z) - z (1
        - Phi(z))`` is the expected excess of a standard normal variable over z.

    Examples
    --------
    >>> from dpfast import theory
    >>> round(theory.clamp_bias(1.0, 0.0, 9.0), 3)
    0.399
    """
    deviation = checks.nonnegative("deviation", deviation)
    ends = [end if end == math.inf else checks.real(name, end) for name, end in (("below", below), ("above", above))]
    if deviation == 0:
        return max(-ends[0], 0.0) - max(-ends[1], 0.0)
    skewness = checks.real("skewness", skewness)
    lower, upper = (
        deviation * _excess_over(skew)(end / deviation) for end, skew in zip(ends, (-skewness, skewness), strict=True)
    )
    return lower - upper


def _excess_over(skewness: float) -> Callable[[float], float]:
    """Return the function E (Z - z)^+ of z, for Z of mean 0, variance 1 and given skewness.

    Z is normal if the skewness is about 0, else shifted lognormal.
    The search of `clamp_margin` asks for about 26 of them: the lognormal distribution is found once.
    """
    if abs(skewness) < _STRAIGHT:
        return _normal_excess_over
    half = skewness**2 / 2
    root = math.cbrt(1 + half + abs(skewness) * math.sqrt(1 + half / 2))
    variance = root + 1 / root - 2  # of a lognormal variable of mean 1 with skewness (variance + 3) sqrt(variance)
    deviation, tau = math.sqrt(variance), math.sqrt(math.log1p(variance))

    def over(z: float) -> float:
        if z == math.inf:
            return 0.0
        level = 1 + z * deviation
        if level <= 0:
            return -z
        d = math.log(level) / tau
        return max(_beyond(d - tau / 2) - level * _beyond(d + tau / 2), 0.0) / deviation

    # Reflected, E (Z - z)^+ = E (-Z + z)^+ - z.
    return over if skewness > 0 else lambda z: 0.0 if z == math.inf else max(over(-z) - z, 0.0)


def _normal_excess_over(z: float) -> float:
    if z > _FAR:
        return 0.0
    return max(math.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * _beyond(z), 0.0)


def _beyond(z: float) -> float:
    """P(Z > z) for a standard normal Z."""
    return math.erfc(z / math.sqrt(2)) / 2


def clamp_margin(bias: float, deviation: float, skewness: float = 0.0) -> float:
    """Least distance from the mean of an estimate to a one-sided clamp for a given bias.

    Parameters
    ----------
    bias : float
        Bound on the bias, positive.
    deviation : float
        Standard deviation of the estimate, at least 0.
    skewness : float
        Skewness of the estimate, see `clamp_bias`.

    Returns
    -------
    float
        The least margin, from 0 to 40 deviations, with ``-clamp_bias(deviation, inf, margin, skewness) <= bias``.

    Examples
    --------
    >>> from dpfast import theory
    >>> round(theory.clamp_margin(0.001, 1.0), 2)
    2.72
    """
    bias, deviation = checks.positive("bias", bias), checks.nonnegative("deviation", deviation)
    excess = _excess_over(skewness)
    low, high = 0.0, _FAR
    if bias >= deviation * excess(low):
        return 0.0
    while high - low > 2.0**-20:
        middle = (low + high) / 2
        low, high = (middle, high) if deviation * excess(middle) > bias else (low, middle)
    return high * deviation


def block_excess(
    n: SupportsIndex,
    blocks: float,
    *,
    width: float,
    epsilon: float,
    v2: float,
    b1: float = 0.0,
    b2: float = 0.0,
    deviation: float = 0.0,
    skewness: float = 0.0,
    below: float = math.inf,
    above: float = math.inf,
) -> float:
    """Increase of the mean squared error over ``1 / (n I)``, that of an efficient estimator, due to privacy.

    Parameters
    ----------
    n : int
        Number of records.
    blocks : float
        Number of blocks k, positive.
    width : float
        Width of the public range of the parameter.
    epsilon : float
        Positive.
    v2, b1, b2 : float
        Second-order terms of the estimate of a block.
    deviation, skewness : float
        For the bias by clamping: ``1 / sqrt(I)``, and the skewness of a block's estimate times the square root of its
        number of records.
    below, above : float
        Distances from the parameter down and up to the ends of the clamping interval.

    Returns
    -------
    float
        ``v2 k / n**2 + bias**2 + 2 (width / (k epsilon))**2``, where the bias is ``|b1 k / n + b2 k**2 / n**2|`` plus
        the absolute value of `clamp_bias` for ``deviation sqrt(k / n)`` and ``skewness sqrt(k / n)``.

    Examples
    --------
    >>> from dpfast import theory
    >>> round(1 + 10**6 * theory.block_excess(10**6, 35851, width=4.8, epsilon=1.0, v2=2.0), 4)
    1.1076
    """
    n = checks.whole("n", n, least=1)
    k, width = checks.positive("blocks", blocks), checks.positive("width", width)
    epsilon, v2 = checks.positive("epsilon", epsilon), checks.nonnegative("v2", v2)
    bias = abs(checks.real("b1", b1) * k / n + checks.real("b2", b2) * (k / n) ** 2)
    root = math.sqrt(k / n)
    bias += abs(clamp_bias(checks.nonnegative("deviation", deviation) * root, below, above, skewness * root))
    return v2 * k / n**2 + bias**2 + 2 * (width / (k * epsilon)) ** 2


def block_count(
    n: SupportsIndex,
    *,
    width: float,
    epsilon: float,
    v2: float,
    b1: float = 0.0,
    b2: float = 0.0,
    deviation: float = 0.0,
    skewness: float = 0.0,
    below: float = math.inf,
    above: float = math.inf,
    least: SupportsIndex = 20,
) -> int:
    """Return the number of blocks with the least `block_excess`, of at least `least` records each.

    Parameters
    ----------
    n, width, epsilon, v2, b1, b2, deviation, skewness, below, above
        See `block_excess`; of b1 and b2, the absolute values are used.
    least : int
        Least number of records per block, at least 1. The expansion in `block_excess` is inaccurate below 20 records.

    Returns
    -------
    int
        Without bias, ``(4 width**2 n**2 / (v2 epsilon**2))**(1/3)``, rounded, at most ``n // least`` and at least 1. If
        clamping causes a bias, the best number to within 1/16.

    Examples
    --------
    >>> from dpfast import theory
    >>> theory.block_count(10**6, width=4.8, epsilon=1.0, v2=2.0)
    35851
    """
    n, least = checks.whole("n", n, least=1), checks.whole("least", least, least=1)
    width, epsilon = checks.positive("width", width), checks.positive("epsilon", epsilon)
    v2, b1, b2 = checks.nonnegative("v2", v2), abs(checks.real("b1", b1)), abs(checks.real("b2", b2))

    def slope(k: float) -> float:
        share = k / n
        bias = b1 * share + b2 * share**2
        return v2 / n**2 + 2 * bias * (b1 + 2 * b2 * share) / n - 4 * (width / epsilon) ** 2 / k**3

    low, high = 1.0, max(float(n // least), 1.0)
    first = int(high)
    if slope(high) > 0:
        while high - low > 2.0**-30 * high:  # the slope increases
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        first = max(round(low), 1)
    terms = {"width": width, "epsilon": epsilon, "v2": v2, "b1": b1, "b2": b2}
    clamp = {"deviation": deviation, "skewness": skewness, "below": below, "above": above}
    return best_near(first, lambda k: block_excess(n, k, **terms, **clamp), most=first)


def best_near(first: int, cost: Callable[[int], float], most: int) -> int:
    """Find a local minimum of the cost over 1..`most` blocks, by steps of 1/16 from `first`."""
    best, least = first, cost(first)
    for step in (_up, _down):
        while (k := min(step(best), most)) not in (best, 0) and (found := cost(k)) < least:
            best, least = k, found
    return best


def fewest_near(best: int, cost: Callable[[int], float], slack: float, least: int) -> int:
    """Reduce the blocks by steps of 1/16, to at least `least`, while the cost exceeds the best by at most `slack`."""
    allowed = cost(best) * (1 + slack)
    while (k := _down(best)) >= least and cost(k) <= allowed:
        best = k
    return best


def _up(k: int) -> int:
    return max(k * 17 // 16, k + 1)


def _down(k: int) -> int:
    return min(k * 16 // 17, k - 1)


def aggregate_efficiency(
    n: SupportsIndex,
    *,
    information: float,
    width: float,
    epsilon: float,
    v2: float,
    b1: float = 0.0,
    b2: float = 0.0,
    below: float = math.inf,
    above: float = math.inf,
    blocks: float | None = None,
) -> float:
    """Ratio of the mean squared error of the private estimate to ``1 / (n I)``, the best without privacy; at least 1.

    Parameters
    ----------
    n, width, epsilon, v2, b1, b2, below, above
        See `block_excess`.
    information : float
        Fisher information I of one record, positive.
    blocks : float, optional
        Number of blocks. Default: `block_count`.

    Returns
    -------
    float
        Without bias, it tends to 1 as ``1 + 1.5 I (4 v2**2 width**2 / epsilon**2)**(1/3) n**(-1/3)``.

    Examples
    --------
    >>> from dpfast import theory
    >>> exponential = {"information": 1.0, "width": 4.8, "epsilon": 1.0, "v2": 2.0}
    >>> [round(theory.aggregate_efficiency(n, **exponential), 3) for n in (10**4, 10**6, 10**8)]
    [2.943, 1.108, 1.023]
    """
    information = checks.positive("information", information)
    clamp = {"deviation": information**-0.5, "below": below, "above": above}
    if blocks is None:
        blocks = block_count(n, width=width, epsilon=epsilon, v2=v2, b1=b1, b2=b2, **clamp)
    excess = block_excess(n, blocks, width=width, epsilon=epsilon, v2=v2, b1=b1, b2=b2, **clamp)
    return 1 + checks.whole("n", n) * information * excess


def aggregate_sample_size(
    efficiency: float,
    *,
    information: float,
    width: float,
    epsilon: float,
    v2: float,
    b1: float = 0.0,
    b2: float = 0.0,
) -> int:
    """Return the number of records for which `aggregate_efficiency` is at most `efficiency`.

    Parameters
    ----------
    efficiency : float
        Above 1.
    information, width, epsilon, v2, b1, b2
        See `aggregate_efficiency`.

    Returns
    -------
    int
        The least such n, at least 40, without bias by clamping.

    Raises
    ------
    ValueError
        If more than 2**50 records are needed.

    Examples
    --------
    >>> from dpfast import theory
    >>> n = theory.aggregate_sample_size(1.1, information=1.0, width=4.8, epsilon=1.0, v2=2.0)
    >>> 10**6 < n < 2 * 10**6
    True
    """
    if not checks.real("efficiency", efficiency) > 1:
        raise ValueError(f"efficiency must be above 1, not {efficiency!r}")
    terms = {"information": information, "width": width, "epsilon": epsilon, "v2": v2, "b1": b1, "b2": b2}
    return least_number(
        lambda n: n >= 40 and aggregate_efficiency(n, **terms) <= efficiency,
        most=2**50,
        too_many="this efficiency requires more than 2**50 records",
    )
