"""Bounds of means and medians under local differential privacy."""

from __future__ import annotations

import math
from typing import SupportsIndex

from dpfast.core import checks
from dpfast.theory.local_testing import distinguishable, largest_of

# ---- Corollary 1: means ----


def local_truncation(
    n: SupportsIndex,
    *,
    epsilon: float,
    moment: float,
    scale: float = 1.0,
    method: str = "two-point",
    truncation: str = "optimal",
) -> float:
    """Clipping point for the mean of numbers, if only ``E|X|**moment <= scale**moment`` is known.

    Parameters
    ----------
    n : int
        Number of people, at least 1.
    epsilon : float
        Positive.
    moment : float
        k, above 1; may be infinite: X is in [-scale, scale]. (For k = 1 no estimator converges.)
    scale : float
        Positive, in data units.
    method : {"two-point", "laplace"}
    truncation : {"optimal", "paper"}

    Returns
    -------
    float
        T, in data units; numbers are clipped to [-T, T].

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    "optimal" minimises the leading terms ``A T^2 / n + b^2 T^(2 - 2k)`` of `local_mean_upper_bound` (scale 1)::

        T = ((k - 1) b^2 n / A)^(1 / 2k),    A = c^2 (two-point) or 8 / epsilon^2 (Laplace),    b = (k-1)^(k-1) / k^k

    "paper" is ``(n epsilon^2)^(1 / 2k)``, equation (10): the same order. Clipping changes the mean by at most b T^(1 -
    k), the supremum of (x - T)+ / x^k.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, equation (10).

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_truncation(20_000, epsilon=1.0, moment=2), 4)
    4.0421
    """
    n, k = checks.whole("n", n, least=1), _moment(moment)
    epsilon, scale = checks.positive_down("epsilon", epsilon), checks.positive("scale", scale)
    if truncation not in ("optimal", "paper"):
        raise ValueError(f"truncation must be 'optimal' or 'paper', not {truncation!r}")
    noise = _noise(epsilon, method)
    if k == math.inf:
        return scale
    if truncation == "paper":
        return scale * math.exp((math.log(n) + 2 * math.log(epsilon)) / (2 * k))
    return scale * math.exp((math.log(k - 1) + 2 * _log_bias(k) + math.log(n) - math.log(noise)) / (2 * k))


def local_mean_upper_bound(
    n: SupportsIndex,
    *,
    epsilon: float,
    moment: float,
    scale: float = 1.0,
    method: str = "two-point",
    truncation: str = "optimal",
) -> float:
    """Upper bound on the mean squared error of `dpfast.local.mean`, for every distribution with a k-th moment.

    Parameters
    ----------
    n, epsilon, moment, scale, method, truncation
        See `local_truncation`, which provides T.

    Returns
    -------
    float
        In squared data units.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Corollary 1, upper bound, with explicit constants; for scale 1::

        two-point: c^2 T^2 / n + b^2 T^(2 - 2k)        Laplace: (V + 8 T^2 / epsilon^2) / n + b^2 T^(2 - 2k)

    V = min(1, T^2) for k >= 2, else T^2. There is no bias for infinite k. Of order ``(n epsilon^2)^(-(k - 1) / k)``.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 1.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_mean_upper_bound(20_000, epsilon=1.0, moment=2), 5)
    0.00765
    """
    t = local_truncation(n, epsilon=epsilon, moment=moment, scale=scale, method=method, truncation=truncation)
    n, k, scale = checks.whole("n", n), _moment(moment), checks.positive("scale", scale)
    t /= scale
    variance = _noise(epsilon, method) * t * t
    if method == "laplace":
        variance += min(1.0, t * t) if k >= 2 else t * t
    bias = 0.0 if k == math.inf else math.exp(_log_bias(k) + (1 - k) * math.log(t))
    return float(scale**2 * (variance / n + bias**2))


def local_mean_lower_bound(
    n: SupportsIndex, *, epsilon: float, moment: float, scale: float = 1.0, form: str = "exact"
) -> float:
    """Lower bound on the mean squared error of every private estimator of a mean with a k-th moment.

    Parameters
    ----------
    n, epsilon, moment, scale
        See `local_mean_upper_bound`.
    form : {"exact", "sharp", "published"}
        See `local_contraction`. "published" also uses the generic `local_le_cam`, half of what the squared error
        allows.

    Returns
    -------
    float
        In squared data units: every estimator, interactive or not, has at least this error for some distribution.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Corollary 1, lower bound: for the two distributions with mass delta at +-delta^(-1 / k) and the rest at 0, the means
    are 2 m apart, with m = delta^(1 - 1 / k), and their distance is delta. As (x - m)^2 + (x + m)^2 >= 2 m^2, the error
    is at least ``m^2 (1 - TV)``, TV as in `local_le_cam`; delta is found by search.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 1, appendix B.1.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_mean_lower_bound(1000, epsilon=1.0, moment=2, form="published"), 5)
    0.0023
    """
    n, k, scale = checks.whole("n", n, least=1), _moment(moment), checks.positive("scale", scale)
    power = 2 - 2 / k
    half = 0.5 if form == "published" else 1.0
    return scale**2 * largest_of(lambda delta: half * delta**power * (1 - distinguishable(delta, epsilon, n, form)))


# ---- Corollary 2: medians ----


def local_median_upper_bound(n: SupportsIndex, *, epsilon: float, width: float) -> float:
    """Upper bound on ``E|X - estimate| - E|X - median|`` for private gradient descent, for every distribution.

    Parameters
    ----------
    n : int
        Number of people, at least 1.
    epsilon : float
        Positive.
    width : float
        Width D of the public bounds, in data units; positive.

    Returns
    -------
    float
        ``min(D / 2, sqrt(2) D c / sqrt(n))``: the bound for ``dpfast.local.median(..., steps="minimax")``, or for the
        middle of the bounds where that is better.

    Notes
    -----
    Corollary 2, upper bound: the regret of gradient descent with steps D / (sqrt(2) c sqrt(i)), for gradients times c,
    which are bounded by c.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 2, section 3.2.2.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_median_upper_bound(10_000, epsilon=0.5, width=1.5), 4)
    0.0866
    """
    n, width = checks.whole("n", n, least=1), checks.positive("width", width)
    c = 1 / math.tanh(checks.positive_down("epsilon", epsilon) / 2)
    return min(width / 2, math.sqrt(2 / n) * width * c)


def local_median_lower_bound(n: SupportsIndex, *, epsilon: float, width: float, form: str = "exact") -> float:
    """Lower bound on ``E|X - estimate| - E|X - median|`` for every private estimator.

    Parameters
    ----------
    n, epsilon, width
        See `local_median_upper_bound`.
    form : {"exact", "sharp", "published"}
        See `local_contraction`.

    Returns
    -------
    float
        Every estimator, interactive or not, has at least this excess for some distribution on the bounds.

    Notes
    -----
    Corollary 2, lower bound: masses (1 + delta) / 2 and (1 - delta) / 2 on the two ends or the reverse, whose distance
    is delta. For every estimate, the two excesses add up to D delta, so their mean is at least ``(D / 2) delta (1 -
    TV)``, TV as in `local_le_cam`; delta is found by search.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 2, appendix B.2.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_median_lower_bound(10_000, epsilon=0.5, width=1.5), 5)
    0.00743
    """
    n, width = checks.whole("n", n, least=1), checks.positive("width", width)
    return width / 2 * largest_of(lambda delta: delta * (1 - distinguishable(delta, epsilon, n, form)))


def _moment(moment: float) -> float:
    if moment != math.inf and checks.real("moment", moment) <= 1:
        raise ValueError(f"moment must be above 1, not {moment!r}")
    return float(moment)


def _noise(epsilon: float, method: str) -> float:
    """Worst-case variance of one report of a number in [-1, 1], or the variance of its noise."""
    if method == "two-point":
        return 1 / math.tanh(epsilon / 2) ** 2
    if method == "laplace":
        return 8 / epsilon**2
    raise ValueError(f"method must be 'two-point' or 'laplace', not {method!r}")


def _log_bias(k: float) -> float:
    """Return the logarithm of (k - 1)^(k - 1) / k^k."""
    return (k - 1) * math.log(k - 1) - k * math.log(k)
