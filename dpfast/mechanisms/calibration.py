"""Calibration of the noise for a smooth bound on the sensitivity, and the range of the published constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpfast.core import checks
from dpfast.laws import IntegerNoise, RoundedLaplace, RoundedStudent3

NOISES: dict[str, type[IntegerNoise]] = {"laplace": RoundedLaplace, "student-t": RoundedStudent3}
# Allowance for rounding: the computed bound is raised by this much, so that it is not below the exact bound, and the
# noise is calibrated for a beta larger by this much. docs/proofs/smooth-sensitivity.md
SLACK = 2.0**-38
LEAST_BETA = 2.0**-30
SMOOTHNESS = 0.05  # the default beta of averages of many records with Student-t noise, relative to epsilon
# Larger epsilons use the constants of this one, which keeps exp in range and makes no noticeable difference.
_MOST_EPSILON = 600.0


def calibrate(
    epsilon: float, delta: float, *, noise: str = "laplace", beta: float | None = None
) -> tuple[float, float]:
    """Return the smoothness beta and the matching scale of the noise.

    If S is a beta-smooth bound on the local sensitivity of a statistic (S >= LS, and S changes by a factor of at most
    e**beta with one record), then the statistic plus noise of scale ``scale * S`` is (epsilon, delta)-differentially
    private for one replaced record.

    Parameters
    ----------
    epsilon : float
        Positive; rounded down to a double.
    delta : float
        In (0, 1) for Laplace noise; 0 for Student-t noise, which gives pure differential privacy.
    noise : {"laplace", "student-t"}
        Student-t has 3 degrees of freedom.
    beta : float, optional
        At least 2**-30. Default: for Laplace the largest with a scale of 2 / epsilon; for Student-t 0.236 epsilon.
        Both suit order statistics of smooth data, whose smooth sensitivity is about proportional to 1 / beta.

    Returns
    -------
    beta, scale : float
        Public. `scale` is rounded up.

    Raises
    ------
    ValueError
        If a parameter is out of range, or if no noise of this kind is private for `beta`.

    Notes
    -----
    Privacy: https://dpfast.readthedocs.io/en/latest/proofs/smooth-sensitivity.html. The scales are exact: the worst
    case over all smooth bounds attains them (for Laplace, if delta is small relative to epsilon). They replace
    ``beta = epsilon / (2 log(1/delta))``, ``scale = 2 / epsilon``, which is not private for large epsilon
    (`valid_region`) and wasteful for small epsilon. The scale allows for a beta larger by 2**-38, the rounding error of
    a bound computed in doubles. Cost: microseconds.

    References
    ----------
    Nissim, Raskhodnikova and Smith 2007; Bun and Steinke 2019.

    Examples
    --------
    >>> from dpfast.mechanisms.calibration import calibrate
    >>> beta, scale = calibrate(1.0, 1e-6)
    >>> round(beta, 4), round(scale, 4)
    (0.053, 2.0)
    """
    epsilon, delta, noise = privacy_down(epsilon, delta, noise)
    return calibrated(epsilon, delta, noise, beta, averages=False)


def privacy_down(epsilon: Any, delta: Any, noise: Any) -> tuple[float, float, str]:
    """Check epsilon, delta and noise; round the privacy parameters down."""
    epsilon, delta = checks.positive_down("epsilon", epsilon), checks.delta_down(delta)
    if noise is None:
        noise = "laplace" if delta else "student-t"
    if noise not in NOISES:
        raise ValueError(f"noise must be {' or '.join(map(repr, NOISES))}, not {noise!r}")
    if noise == "laplace" and not delta:
        raise ValueError("delta must be positive for noise='laplace'; noise='student-t' is pure")
    if noise == "student-t" and delta:
        raise ValueError(f"delta must be 0 for noise='student-t', which is pure, not {delta!r}")
    return epsilon, delta, noise


def calibrated(epsilon: float, delta: float, noise: str, beta: Any, *, averages: bool) -> tuple[float, float]:
    """`calibrate` for checked parameters; `averages` selects the default beta for sums of many records."""
    if beta is not None:
        beta = checks.real("beta", beta)
    elif noise == "laplace":
        beta = laplace_beta_max(epsilon, delta, 0.75 if averages else 0.5)
    else:
        beta = (SMOOTHNESS if averages else 0.236) * epsilon
    if not beta >= LEAST_BETA:
        raise ValueError(f"beta must be at least 2**-30, not {beta!r} (by default it is proportional to epsilon)")
    rate = _laplace_rate_down(epsilon, delta, beta) if noise == "laplace" else _student_rate_down(epsilon, beta)
    if not rate > 0:
        raise ValueError(
            f"beta={beta!r} is too large for epsilon={epsilon!r}, delta={delta!r}: no {noise} noise is private"
        )
    return beta, math.nextafter(1 / rate, math.inf)


def _laplace_rate_down(epsilon: float, delta: float, beta: float) -> float:
    """Return the largest x such that Laplace noise of scale S / x is private, rounded down; 0 if there is none.

    Equation (L) of https://dpfast.readthedocs.io/en/latest/proofs/smooth-sensitivity.html, b = beta: ``x = min(epsilon,
    (e^b - 1) acosh(delta e^((epsilon + b)/(e^b - 1)) / (1 - e^-b)), e^b (epsilon - b))``.
    """
    epsilon, b = min(epsilon, _MOST_EPSILON), beta + SLACK
    if b >= epsilon:
        return 0.0
    growth = math.expm1(b)
    terms = math.log(delta), (epsilon + b) / growth, -math.log(-math.expm1(-b))
    log_argument = math.fsum(terms) - 2.0**-48 * math.fsum(map(abs, terms))
    if log_argument < 0:
        return 0.0
    arcosh = log_argument + math.log1p(math.sqrt(-math.expm1(-2 * log_argument)))
    return min(epsilon, growth * arcosh, math.exp(b) * (epsilon - b)) * (1 - 1e-12)


def _student_rate_down(epsilon: float, beta: float) -> float:
    """Return the largest x such that Student-t(3) noise of scale S / x is private, rounded down; 0 if there is none.

    Mechanisms-a 3.3 with nu = 3, b = beta: ``x = min over t in {-b, 0, b} of sqrt(3 (m - 1) (1 - e^(2t) / m)) / min(1,
    e^t)``, ``m = e^((epsilon + 3t)/2)``.
    """
    epsilon, b = min(epsilon, _MOST_EPSILON), beta + SLACK
    if 3 * b >= epsilon:
        return 0.0
    rates = (
        math.sqrt(3 * math.expm1((epsilon + 3 * t) / 2) * -math.expm1((t - epsilon) / 2)) / min(1.0, math.exp(t))
        for t in (-b, 0.0, b)
    )
    # epsilon - 3 b is accurate to an ulp of epsilon.
    return min(rates) * (1 - 1e-12) * (1 - 2.0**-50 * epsilon / (epsilon - 3 * b))


def laplace_beta_max(epsilon: float, delta: float, kappa: float) -> float:
    """Return the largest beta for which Laplace noise of scale ``S / (kappa epsilon)`` is private, rounded down.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    kappa : float
        In (0, 1): the share of epsilon for the shift of the statistic; the rest is for the change of scale.

    Notes
    -----
    Bisects the scale of `calibrate`, which grows with beta. Privacy and cost: see `calibrate`.

    Examples
    --------
    >>> from dpfast.mechanisms.calibration import laplace_beta_max
    >>> [round(laplace_beta_max(1.0, delta, 0.5), 4) for delta in (1e-3, 1e-6, 1e-9)]
    [0.1424, 0.053, 0.0316]
    """
    epsilon, delta, _ = privacy_down(epsilon, delta, "laplace")
    kappa = checks.between("kappa", kappa, 0, 1)
    wanted = kappa * min(epsilon, _MOST_EPSILON)
    low, high = 0.0, min(epsilon, _MOST_EPSILON)
    while low < (middle := (low + high) / 2) < high:
        if _laplace_rate_down(epsilon, delta, middle) >= wanted:
            low = middle
        else:
            high = middle
    return low


@dataclass(frozen=True)
class PublishedConstants:
    """Whether ``beta = epsilon / (2 log(1/delta))`` and noise ``2 S / epsilon`` are (epsilon, delta)-private.

    Attributes
    ----------
    epsilon, delta : float
    beta, scale : float
        The published constants.
    ratio : float
        The largest divergence at epsilon over all beta-smooth bounds and neighbours, divided by delta.
    holds : bool
        Whether ratio <= 1.
    largest_epsilon : float
        The largest epsilon for which they hold at this delta.
    """

    epsilon: float
    delta: float
    beta: float
    scale: float
    ratio: float
    holds: bool
    largest_epsilon: float


def valid_region(epsilon: float, delta: float) -> PublishedConstants:
    """Whether the published constants of smooth sensitivity with Laplace noise are private at epsilon and delta.

    Chaudhuri and Hsu 2012, proposition 1: Laplace noise of scale ``2 S / epsilon``, S the smooth sensitivity with
    ``beta = epsilon / (2 log(1/delta))``. This is (epsilon, delta)-private for epsilon up to 4.6 (delta = 0.3), 9.4
    (1e-3), 11.2 (1e-6), and not beyond. For small epsilon it is wasteful: at 1 the true delta is 100 times smaller.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1/e]; above 1/e the published beta exceeds epsilon / 2 and its proof does not apply.

    Returns
    -------
    PublishedConstants

    Notes
    -----
    Exact: the largest divergence is ``(1 - e^-b) e^(-(epsilon + b)/(e^b - 1)) cosh(epsilon / (2 (e^b - 1)))``, b = beta
    (https://dpfast.readthedocs.io/en/latest/proofs/smooth-sensitivity.html). The constants of `calibrate` hold for
    every epsilon and delta.

    Examples
    --------
    >>> from dpfast.mechanisms.calibration import valid_region
    >>> valid_region(1.0, 1e-6).holds, valid_region(20.0, 1e-2).holds
    (True, False)
    >>> round(valid_region(1.0, 1e-6).largest_epsilon, 1)
    11.2
    """
    epsilon, delta, _ = privacy_down(epsilon, delta, "laplace")
    if delta > math.exp(-1):
        raise ValueError(f"delta must be at most 1/e for the published constants, not {delta!r}")
    low, high = 0.0, _MOST_EPSILON
    while low < (middle := (low + high) / 2) < high:
        if _published_log_ratio(middle, delta) <= 0:
            low = middle
        else:
            high = middle
    log_ratio = _published_log_ratio(min(epsilon, _MOST_EPSILON), delta)
    beta = epsilon / (2 * math.log(1 / delta))
    return PublishedConstants(epsilon, delta, beta, 2 / epsilon, math.exp(log_ratio), log_ratio <= 0, low)


def _published_log_ratio(epsilon: float, delta: float) -> float:
    """Log of (largest divergence / delta) under the published constants, with x = epsilon / 2."""
    b = epsilon / (2 * math.log(1 / delta)) + SLACK
    growth = math.expm1(b)
    shift = epsilon / 2 / growth
    log_cosh = shift + math.log1p(math.exp(-2 * shift)) - math.log(2)
    return math.log(-math.expm1(-b)) - (epsilon + b) / growth + log_cosh - math.log(delta)
