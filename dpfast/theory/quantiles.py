"""Error and sample size of a private quantile, for an assumed density."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.least import least
from dpfast.core.quadrature import gauss_legendre


def quantile_error(
    n: int, q: float = 0.5, *, density: float, width: float, epsilon: float, confidence: float = 0.95
) -> float:
    """Return the expected error of a quantile released by inverse sensitivity, for an assumed density at the target.

    Parameters
    ----------
    n : int
        Number of records, at least 1.
    q : float
        In (0, 1).
    density : float
        Assumed density f of the records at the q-quantile, per data unit; about constant over the range of the error.
    width : float
        Width of the public bounds, in data units.
    epsilon : float
        Positive.
    confidence : float
        In (0, 1).

    Returns
    -------
    float
        The release is about this close to the q-quantile of the distribution with probability `confidence`. If n is too
        small for such a statement, the return value is `width`: if ``epsilon n min(q, 1 - q)`` is below 2, or not large
        compared to ``2 log(width f)``, as for extreme quantiles in wide bounds. The release is then often anywhere
        within the bounds: off by half of their width if the quantile is in the middle, or by all of it if at an end.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    A large-sample approximation, not a bound. The sample quantile has a normal error of standard deviation
    ``sqrt(q (1 - q) / n) / f``. Between it and a value at distance t lie N records, about Poisson of mean f n |t|; the
    weight exp(-epsilon N / 2) is on average exp(-|t| / b), so the mechanism adds a Laplace error of scale::

        b = 1 / ((1 - exp(-epsilon / 2)) f n),    about 2 / (epsilon f n) for a small epsilon

    which alone exceeds ``b ln(1 / eta)`` with probability eta. (Averaging the weights is exact as epsilon tends to 0;
    it is up to 1.5 times too large for a large epsilon, where the error of the sample dominates.) The result combines
    the tail of the sum of both errors with the probability of a value beyond all records, of score about
    m = n min(q, 1 - q)::

        width exp(-epsilon m / 2) / (4 / (epsilon f n))

    which depends on the width of the bounds: compare Theorem 2 (`pure_lower_bound`). The grid is assumed to be finer
    than the error; thin tails between the target and the bounds are not accounted for.

    References
    ----------
    Asi and Duchi 2020, "Near instance-optimality in differential privacy";
    https://dpfast.readthedocs.io/en/latest/proofs/nested-intervals.html.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.quantile_error(1000, density=0.4, width=40, epsilon=1.0), 3)
    0.079
    """
    n = checks.whole("n", n, least=1)
    failing = _failure(q, density, width, epsilon)
    allowed = 1 - checks.between("confidence", confidence, 0, 1)
    low, high = 0.0, float(width)
    if failing(n, high) > allowed:
        return high
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if failing(n, middle) <= allowed else (middle, high)
    return high


def sample_size(
    error: float, q: float = 0.5, *, density: float, width: float, epsilon: float, confidence: float = 0.95
) -> int:
    """Return the number of records for which a quantile released by inverse sensitivity is within `error` of the true
    quantile.

    Parameters
    ----------
    error : float
        Positive, in data units.
    q, density, width, epsilon, confidence
        See `quantile_error`; this function is its inverse.

    Returns
    -------
    int
        The least n with ``quantile_error(n, ...) <= error``.

    Raises
    ------
    ValueError
        If a parameter is out of range, `error` is not below `width`, or more than 2**62 records are needed.

    Notes
    -----
    About ``2 ln(1 / (1 - confidence)) / (epsilon f error)`` records for a small epsilon; for a large one, the
    ``q (1 - q) (z / (f error))^2`` of the sample quantile, z the two-sided normal quantile. Assumptions, derivation and
    references: see `quantile_error`. From public assumptions only, never from data. For other statistics and
    mechanisms: `dpfast.Mechanism.sample_size`.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.theory.sample_size(0.1, density=0.4, width=40, epsilon=1.0)
    649
    >>> dpf.theory.sample_size(0.1, density=0.4, width=40, epsilon=0.01)
    15254
    """
    failing = _failure(q, density, width, epsilon)
    error = checks.between("error", error, 0, float(width))
    allowed = 1 - checks.between("confidence", confidence, 0, 1)
    return least(
        lambda n: failing(n, error) <= allowed,
        most=2**62,
        too_many=f"error = {error!r} requires more than 2**62 records",
    )


def _failure(q: Any, density: Any, width: Any, epsilon: Any) -> Callable[[int, float], float]:
    """Probability, as a function of n and error, that the release is further off; nonincreasing in both."""
    q = checks.between("q", q, 0, 1)
    density, width = checks.positive("density", density), checks.positive("width", width)
    epsilon = checks.positive_down("epsilon", epsilon)
    side = min(q, 1 - q)

    def failing(n: int, error: float) -> float:
        if epsilon * n * side < 2:  # below this, all values of the range have similar weights
            return 1.0
        deviation = math.sqrt(q * (1 - q) / n) / density
        scale = 1 / (-math.expm1(-epsilon / 2) * density * n)
        beyond = width * math.exp(-epsilon * n * side / 2) * epsilon * density * n / 4
        return float(min(1.0, _normal_plus_laplace_tail(error, deviation, scale) + beyond))

    return failing


def normal_plus_laplace_error(deviation: float, scale: float, confidence: float) -> float:
    """Return the least t with ``P(|deviation Z + scale L| <= t) >= confidence``, Z standard normal and L standard
    Laplace.
    """
    low, high = 0.0, 40 * (deviation + scale)  # here the tail is below 2**-53
    while low < (middle := (low + high) / 2) < high:
        failing = _normal_plus_laplace_tail(middle, deviation, scale)
        low, high = (low, middle) if failing <= 1 - confidence else (middle, high)
    return high


def _normal_plus_laplace_tail(t: float, deviation: float, scale: float) -> float:
    """``P(|deviation Z + scale L| > t)``, Z standard normal and L standard Laplace, without overflow."""
    u, c = t / deviation, deviation / scale
    bell = math.exp(-u * u / 2) / 2
    inner = (
        bell * float(scipy.special.erfcx((c - u) / math.sqrt(2)))
        if u < c
        else math.exp(c * (c / 2 - u)) * float(scipy.special.ndtr(u - c))
    )
    outer = bell * float(scipy.special.erfcx((c + u) / math.sqrt(2)))
    return 2 * float(scipy.special.ndtr(-u)) + inner - outer


def normal_plus_box_error(deviation: float, scale: float, dimension: int, confidence: float) -> float:
    """Return the least t with ``P(|deviation Z + scale X| <= t) >= confidence``, Z standard normal.

    X is a coordinate of a vector of density proportional to ``exp(-max_i |x_i|)``: standard Laplace for one dimension.
    """
    if dimension == 1:
        return normal_plus_laplace_error(deviation, scale, confidence)
    # |X| is uniform up to a Gamma(dimension + 1) variable: Gauss-Legendre quadrature over it.
    nodes, weights = gauss_legendre(256)
    most = dimension + 10 * math.sqrt(dimension) + 60
    reach = (nodes + 1) * most / 2
    masses = weights * most / 2 * np.exp(dimension * np.log(reach) - reach - math.lgamma(dimension + 1))
    low, high = 0.0, 40 * deviation + most * scale
    while low < (middle := (low + high) / 2) < high:
        failing = masses @ _normal_plus_uniform_tail(middle, deviation, scale * reach)
        low, high = (low, middle) if failing <= 1 - confidence else (middle, high)
    return high


def _normal_plus_uniform_tail(t: float, deviation: float, reach: NDArray[np.float64]) -> NDArray[np.float64]:
    """``P(|deviation Z + U| > t)``, Z standard normal and U uniform up to `reach` on both sides."""

    def excess(z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * scipy.special.ndtr(-z))

    return np.asarray(deviation / reach * (excess((t - reach) / deviation) - excess((t + reach) / deviation)))
