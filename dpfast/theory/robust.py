"""Robust estimates released privately: Hopkins, Kamath, Majid and Narayanan 2023; Cockerell and Jayant 2023, slides.

A score of t means that t out of n records were replaced. Sample sizes are for true epsilon-privacy, with weights
``exp(-epsilon / 2 * score)``; the slides' ``exp(-epsilon * score)`` is 2 epsilon-private.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.least import least

_DENSITY = 1 / math.sqrt(2 * math.pi)  # of the standard normal distribution at 0
_TUKEY = {2: 1.35, 3: 1.27}  # the variance of a coordinate of the Tukey median of normal records, times n


def robust_sample_size(
    error: Callable[[NDArray[np.float64]], Any],
    fraction: float,
    *,
    dimension: SupportsIndex,
    epsilon: float,
    confidence: float = 0.95,
) -> int:
    """Return the records needed for the reduction from a robust estimator to be within ``2 * error(fraction)`` of the
    parameter.

    Parameters
    ----------
    error : callable
        alpha, vectorised and nondecreasing: with probability 1 - (1 - confidence) / 2 the robust estimate is within
        alpha(eta) of the parameter, in some norm, for all eta in [0, 1] simultaneously, if an adversary replaces eta n
        records. Beyond the breakdown point it is the diameter of the parameter space. Positive at `fraction`.
    fraction : float
        eta0, in (0, 1): the reduction's scores are distances to an estimate within alpha(eta0).
    dimension : int
        d, at least 1.
    epsilon : float
        Positive.
    confidence : float
        In (0, 1), for the whole statement.

    Returns
    -------
    int
        An n for which the sum of ``exp(-epsilon t / 2) (2 alpha(t / n) / alpha(eta0))**d`` over t >= eta0 n is at most
        (1 - confidence) / 2: found by doubling and bisection, the least if the sum decreases in n.

    Notes
    -----
    The slides' theorem, with the sum itself in place of the maximum that bounds it, and 2 / (eta epsilon) in place of
    1 / (eta epsilon). Proof: a point of score t is within alpha(eta0) + alpha(t / n) of the parameter, so such points
    have at most the volume of a ball of radius 2 alpha(t / n); those of score 0 fill a ball of radius alpha(eta0).

    References
    ----------
    Hopkins, Kamath, Majid and Narayanan 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import ndtri
    >>> from dpfast.theory import robust_sample_size
    >>> median = lambda eta: np.where(eta < 0.4, scipy.special.ndtri(np.minimum(0.55 + eta, 0.96)), 1000.0)
    >>> robust_sample_size(median, 0.1, dimension=5, epsilon=1.0)
    236
    """
    eta0 = checks.between("fraction", fraction, 0, 1)
    d = checks.whole("dimension", dimension, least=1)
    epsilon = checks.positive("epsilon", epsilon)
    log_risk = math.log((1 - checks.between("confidence", confidence, 0, 1)) / 2)
    at_eta0 = checks.positive("error(fraction)", float(np.asarray(error(np.array([eta0])))[0]))

    def suffices(n: int) -> bool:
        t = np.arange(math.ceil(eta0 * n), n + 1)
        growth = np.log(2 * np.asarray(error(t / n), dtype=np.float64) / at_eta0)
        return float(scipy.special.logsumexp(d * growth - epsilon / 2 * t)) <= log_risk

    return _least(suffices)


def gaussian_mean_error(
    n: SupportsIndex,
    *,
    dimension: SupportsIndex,
    epsilon: float,
    width: float,
    confidence: float = 0.95,
    contamination: float = 0.0,
    step: float = 0.0,
) -> float:
    """Upper bound on the largest coordinate error of `NestedBoxes`, medians of records from N(mu, I).

    Parameters
    ----------
    n : int
        Number of records, at least 1.
    dimension : int
        d, at least 1. The covariance need not be I: only the standard deviation of each coordinate must be 1.
    epsilon : float
        Positive.
    width : float
        Distance of the bounds in each coordinate, in standard deviations; mu is at least the resulting error + 4 away
        from all bounds.
    confidence : float
        In (0, 1).
    contamination : float
        In [0, 0.5): the fraction of the records that an omniscient adversary replaces.
    step : float
        Step of the grid, in standard deviations. It matters with contamination c: an adversary can collapse the middle
        of the records; then all boxes up to level c n may be small, but none is smaller than a point. For step = 0, no
        bound below the normal quantile of 1/2 + 2 c is guaranteed.

    Returns
    -------
    float
        alpha: with probability `confidence` every coordinate of the release is within alpha of mu. `width` if n is too
        small for a bound.

    Notes
    -----
    The bound uses the constants of this mechanism, and splits the risk 1 - confidence equally between three events.
    Positions of the boxes: with s = sqrt(log(6 d / (1 - confidence)) / (2 n)) + contamination, all attack ranges of
    level t lie in mu +- A(t), A(t) the normal quantile of 1/2 + (t + 1) / n + s (Dvoretzky, Kiefer, Wolfowitz,
    Massart). Widths: on the uniform scale, a width w is a spacing of 2 t records, within Bernstein's bounds for all t
    and coordinates; on the normal scale it is at least w sqrt(2 pi) and at most w over the density at A(t). Level: t
    has the weight ``(1 - q) q**t volume(t)``, q = exp(-epsilon / 2). The result is A at the least t for which the
    levels from t on have, by these volumes, at most a third of the risk.
    For small alpha, n is of the order of log(d) / alpha**2 + d / (alpha epsilon) + d log(width) / epsilon for the
    largest coordinate error. In Euclidean distance, sqrt(d) times as large, n is d / alpha**2 (up to a logarithm) +
    d**1.5 / (alpha epsilon) + d log(width) / epsilon; the slides' estimator, which cannot be computed in many
    dimensions, saves sqrt(d) in the middle term. In simulations, a half to a quarter of these records suffice without
    contamination, and a tenth or less with it, for the adversaries tried (``bench/pages/robust_accuracy.py``).

    References
    ----------
    Cockerell and Jayant 2023, slides, "Private Gaussian Mean Estimation"; Massart 1990 for the constant.

    Examples
    --------
    >>> from dpfast.theory import gaussian_mean_error
    >>> round(gaussian_mean_error(5000, dimension=10, epsilon=1.0, width=2e6), 2)
    0.11
    """
    n, d = checks.whole("n", n, least=1), checks.whole("dimension", dimension, least=1)
    epsilon, width = checks.positive("epsilon", epsilon), checks.positive("width", width)
    risk = (1 - checks.between("confidence", confidence, 0, 1)) / 3
    bad, step = checks.nonnegative("contamination", contamination), checks.nonnegative("step", step)
    if bad >= 0.5:
        raise ValueError(f"contamination must be at least 0 and below 0.5, not {contamination!r}")
    levels = (n + 1) // 2
    t = np.arange(levels + 1)  # the last one is the unbounded level
    place = math.sqrt(math.log(2 * d / risk) / (2 * n)) + bad
    reach = scipy.special.ndtri(np.minimum(0.5 + (t + 1) / n + place, 1.0))
    log_odds = math.log(2 * d * levels / risk)
    narrow = np.sqrt(np.maximum(2 * t - 2 * bad * n, 0) + log_odds / 6) - math.sqrt(log_odds / 2)
    wide = np.sqrt(2 * t + 2 * bad * n + log_odds / 2) + math.sqrt(log_odds / 2)
    with np.errstate(divide="ignore", over="ignore"):
        low = np.log(math.sqrt(2 * math.pi) * np.maximum(narrow, 0.0) ** 2 / n)
        spread = math.sqrt(2 * math.pi) * np.minimum(wide**2 / n, 1.0) * np.exp(np.minimum(reach, 40) ** 2 / 2)
    high = np.log(np.minimum(np.minimum(2 * reach, spread) + 2 * step, width))
    if step:
        low = np.maximum(low, math.log(step))
    low[-1], high[-1] = -math.inf, math.log(width)
    weights = -epsilon / 2 * t
    weights[:-1] += math.log(-math.expm1(-epsilon / 2))
    below = np.logaddexp.accumulate(weights + d * low)  # levels 0..t
    beyond = np.logaddexp.accumulate((weights + d * high)[::-1])[::-1]  # levels t..
    # P(level >= t) <= beyond / (below + beyond)
    small = np.flatnonzero(beyond[1:] - below[:-1] <= math.log(risk) - math.log1p(-risk))
    return float(min(reach[small[0]] + step, width)) if small.size else width


def gaussian_mean_sample_size(
    error: float,
    *,
    dimension: SupportsIndex,
    epsilon: float,
    width: float,
    confidence: float = 0.95,
    contamination: float = 0.0,
    step: float = 0.0,
) -> int:
    """Return the number of records for which every coordinate of `NestedBoxes` is within `error` of the mean of N(mu,
    I).

    Parameters
    ----------
    error : float
        Positive, in standard deviations, below `width`.
    dimension, epsilon, width, confidence, contamination, step
        See `gaussian_mean_error`; the assumptions are the same.

    Returns
    -------
    int
        An n for which `gaussian_mean_error` is at most `error`, found by doubling and bisection.

    Raises
    ------
    ValueError
        If no number of records gives this error, because contamination or step cause a larger one.

    Examples
    --------
    >>> from dpfast.theory import gaussian_mean_sample_size
    >>> gaussian_mean_sample_size(0.1, dimension=10, epsilon=1.0, width=2e6) < 6500
    True
    """
    alpha = checks.between("error", error, 0, width)
    if alpha <= scipy.special.ndtri(min(0.5 + (contamination if step else 2 * contamination), 1.0)) + step:
        raise ValueError(f"error must be larger than the error caused by contamination and step, not {error!r}")
    return _least(
        lambda n: (
            gaussian_mean_error(
                n,
                dimension=dimension,
                epsilon=epsilon,
                width=width,
                confidence=confidence,
                contamination=contamination,
                step=step,
            )
            <= alpha
        )
    )


def medians_error(
    n: SupportsIndex, dimension: SupportsIndex, epsilon: float, *, correlation: float = 0.0, independent: bool = False
) -> float:
    """Return the root mean square error of private coordinate-wise medians of normal records, in the Mahalanobis norm.

    Parameters
    ----------
    n, dimension : int
        At least 1.
    epsilon : float
        Positive: that of `NestedBoxes`, or that of each column for `independent` releases.
    correlation : float
        In [0, 1): of any two columns.
    independent : bool

    Notes
    -----
    For many records: the covariances of medians are those of signs over (2 f)**2 n, f = 0.399, so arcsin(correlation) /
    n; the noise has a radius of law Gamma(d, 2 / (n epsilon f)) in the maximum norm, or is a Laplace number of scale
    2 / (n epsilon f) in each column.

    Examples
    --------
    >>> from dpfast.theory import medians_error
    >>> round(medians_error(10_000, 10, 1.0), 4), round(medians_error(10_000, 10, 1.0, correlation=0.9), 4)
    (0.041, 0.072)
    """
    n, d = checks.whole("n", n, least=1), checks.whole("dimension", dimension, least=1)
    scale = 2 / (n * checks.positive("epsilon", epsilon) * _DENSITY)
    rho = checks.between("correlation", correlation, -1, 1)
    noise = scale**2 * (2 if independent else (d + 1) * (d + 2) / 3)
    least, greatest = 1 - rho, 1 + (d - 1) * rho  # eigenvalues of the correlations; those of medians' are with arcsines
    around = (d - 1) * ((math.pi / 2 - math.asin(rho)) / n + noise) / least
    along = ((math.pi / 2 + (d - 1) * math.asin(rho)) / n + noise) / greatest
    return math.sqrt(around + along)


def depth_error(n: SupportsIndex, dimension: SupportsIndex, epsilon: float) -> float:
    """Return the root mean square error of `dpfast.robust.TukeyDepth` for normal records, in the Mahalanobis norm.

    Parameters
    ----------
    n : int
        At least 1.
    dimension : int
        2 or 3.
    epsilon : float
        Positive.

    Notes
    -----
    For many records: the variance of the Tukey median, as simulated, and noise whose radius has the law Gamma(d, 2 / (n
    epsilon f)), f = 0.399. Bounds and grid are assumed to be wide and fine.

    Examples
    --------
    >>> from dpfast.theory import depth_error
    >>> round(depth_error(1000, 2, 1.0), 4)
    0.0534
    """
    n, d = checks.whole("n", n, least=1), checks.whole("dimension", dimension, least=2)
    if d not in _TUKEY:
        raise ValueError(f"dimension must be 2 or 3, not {d}")
    scale = 2 / (n * checks.positive("epsilon", epsilon) * _DENSITY)
    return math.sqrt(d * _TUKEY[d] / n + d * (d + 1) * scale**2)


def _least(suffices: Callable[[int], bool]) -> int:
    return least(suffices, most=2**25, too_many="more than 2**25 records are needed")
