"""Smith (2008): sample-and-aggregate estimators, how many blocks, and how close to the maximum-likelihood estimator.

A block of b records gives an estimate of variance ``1 / (b I) + v2 / b**2`` and bias ``b1 / b + b2 / b**2``, I the
Fisher information of a record (b1 = 0 where the bias is corrected). The mean of k = n / b of them, with Laplace noise
of scale ``width / (k epsilon)``, has the mean squared error ``1 / (n I)``, that of the best estimator without privacy,
plus an excess that depends on k.
"""

from __future__ import annotations

from typing import SupportsIndex

from dpfast import _checks
from dpfast._least import least as least_number


def block_excess(
    n: SupportsIndex,
    blocks: float,
    *,
    width: float,
    epsilon: float,
    v2: float,
    b1: float = 0.0,
    b2: float = 0.0,
) -> float:
    """What privacy adds to the mean squared error ``1 / (n I)`` of an efficient estimator.

    Parameters
    ----------
    n : int
        Records.
    blocks : float
        k, positive.
    width : float
        Of the public range of the parameter.
    epsilon : float
        Positive.
    v2, b1, b2 : float
        Second-order terms of the estimate of a block.

    Returns
    -------
    float
        ``v2 k / n**2 + (b1 k / n + b2 k**2 / n**2)**2 + 2 (width / (k epsilon))**2``.

    Examples
    --------
    >>> from dpfast import theory
    >>> round(1 + 10**6 * theory.block_excess(10**6, 35851, width=4.8, epsilon=1.0, v2=2.0), 4)
    1.1076
    """
    n = _checks.whole("n", n, least=1)
    k, width = _checks.positive("blocks", blocks), _checks.positive("width", width)
    epsilon, v2 = _checks.positive("epsilon", epsilon), _checks.nonnegative("v2", v2)
    bias = _checks.real("b1", b1) * k / n + _checks.real("b2", b2) * (k / n) ** 2
    return v2 * k / n**2 + bias**2 + 2 * (width / (k * epsilon)) ** 2


def block_count(
    n: SupportsIndex,
    *,
    width: float,
    epsilon: float,
    v2: float,
    b1: float = 0.0,
    b2: float = 0.0,
    least: SupportsIndex = 20,
) -> int:
    """The number of blocks with the least `block_excess`, of at least `least` records each.

    Parameters
    ----------
    n, width, epsilon, v2, b1, b2
        As for `block_excess`; b1 and b2 count as their absolute values.
    least : int
        At least 1. Below 20 records, skewness and clamping spoil the expansion that `block_excess` is.

    Returns
    -------
    int
        ``(4 width**2 n**2 / (v2 epsilon**2))**(1/3)`` where there is no bias, rounded, and at most ``n // least``; at
        least 1.

    Examples
    --------
    >>> from dpfast import theory
    >>> theory.block_count(10**6, width=4.8, epsilon=1.0, v2=2.0)
    35851
    """
    n, least = _checks.whole("n", n, least=1), _checks.whole("least", least, least=1)
    width, epsilon = _checks.positive("width", width), _checks.positive("epsilon", epsilon)
    v2, b1, b2 = _checks.nonnegative("v2", v2), abs(_checks.real("b1", b1)), abs(_checks.real("b2", b2))

    def slope(k: float) -> float:
        share = k / n
        bias = b1 * share + b2 * share**2
        return v2 / n**2 + 2 * bias * (b1 + 2 * b2 * share) / n - 4 * (width / epsilon) ** 2 / k**3

    low, high = 1.0, max(float(n // least), 1.0)
    if slope(high) <= 0:
        return int(high)
    while high - low > 2.0**-30 * high:  # the slope increases
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return max(round(low), 1)


def aggregate_efficiency(
    n: SupportsIndex,
    *,
    information: float,
    width: float,
    epsilon: float,
    v2: float,
    b1: float = 0.0,
    b2: float = 0.0,
    blocks: float | None = None,
) -> float:
    """Mean squared error of the private estimate over ``1 / (n I)``, that of the best one without privacy: 1 or more.

    Parameters
    ----------
    n, width, epsilon, v2, b1, b2
        As for `block_excess`.
    information : float
        I, positive: Fisher information of one record.
    blocks : float, optional
        Default: that of `block_count`.

    Returns
    -------
    float
        Tends to 1, as ``1 + 1.5 I (4 v2**2 width**2 / epsilon**2)**(1/3) n**(-1/3)`` where there is no bias.

    Examples
    --------
    >>> from dpfast import theory
    >>> exponential = {"information": 1.0, "width": 4.8, "epsilon": 1.0, "v2": 2.0}
    >>> [round(theory.aggregate_efficiency(n, **exponential), 3) for n in (10**4, 10**6, 10**8)]
    [2.943, 1.108, 1.023]
    """
    information = _checks.positive("information", information)
    if blocks is None:
        blocks = block_count(n, width=width, epsilon=epsilon, v2=v2, b1=b1, b2=b2)
    excess = block_excess(n, blocks, width=width, epsilon=epsilon, v2=v2, b1=b1, b2=b2)
    return 1 + _checks.whole("n", n) * information * excess


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
    """Records with which `aggregate_efficiency` is at most `efficiency`.

    Parameters
    ----------
    efficiency : float
        Above 1.
    information, width, epsilon, v2, b1, b2
        As for `aggregate_efficiency`.

    Returns
    -------
    int
        The least such n, at least 40.

    Raises
    ------
    ValueError
        More than 2**50 records.

    Examples
    --------
    >>> from dpfast import theory
    >>> n = theory.aggregate_sample_size(1.1, information=1.0, width=4.8, epsilon=1.0, v2=2.0)
    >>> 10**6 < n < 2 * 10**6
    True
    """
    if not _checks.real("efficiency", efficiency) > 1:
        raise ValueError(f"efficiency must be above 1, not {efficiency!r}")
    terms = {"information": information, "width": width, "epsilon": epsilon, "v2": v2, "b1": b1, "b2": b2}
    return least_number(
        lambda n: n >= 40 and aggregate_efficiency(n, **terms) <= efficiency,
        most=2**50,
        too_many="such an efficiency takes more than 2**50 records",
    )
