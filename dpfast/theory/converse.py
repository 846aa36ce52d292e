"""Private implies robust: what the guarantee of a private estimator says about replaced records.

The converse of `dpfast.theory.robust_sample_size`. Notation: an estimate fails if it is not within a stated error of
the target; b is the probability that it does, over records and release; c = delta / (exp(epsilon) - 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsIndex

from dpfast.core import checks


def implied_failure(replaced: SupportsIndex, failure: float, *, epsilon: float, delta: float = 0.0) -> float:
    """Bound on the failure probability of a private estimator if an adversary replaces some of the records.

    Parameters
    ----------
    replaced : int
        t, at least 0: the adversary sees all records and replaces up to t of them by any others. It does not see the
        random numbers of the release.
    failure : float
        b, in [0, 1]: the probability of a failure without an adversary.
    epsilon : float
        Positive: of the estimator, for one replaced record.
    delta : float
        In [0, 1).

    Returns
    -------
    float
        The probability of a failure is at most this, up to rounding.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    t steps of ``b -> min(exp(epsilon) b + delta, 1 - exp(-epsilon) (1 - b - delta))``, in closed form: ``(b + c) exp(t
    epsilon) - c`` up to ``(1 - delta) / (1 + exp(epsilon))``, and the mirror image of this from there on. No smaller
    bound holds for all private estimators: https://dpfast.readthedocs.io/en/latest/proofs/private-implies-robust.html.
    Cost: O(1).

    References
    ----------
    Georgiev and Hopkins 2022, "Privacy induces robustness"; Hopkins, Kamath, Majid and Narayanan 2023.

    Examples
    --------
    >>> from dpfast.theory import implied_failure
    >>> round(implied_failure(10, 1e-6, epsilon=1.0), 4), round(implied_failure(20, 1e-6, epsilon=1.0), 4)
    (0.022, 0.9995)
    """
    t = checks.whole("replaced", replaced, least=0)
    b = checks.fraction("failure", failure)
    epsilon, delta = checks.positive("epsilon", epsilon), checks.delta_down(delta)
    c = _offset(epsilon, delta)
    turn = (1 - delta) * math.exp(-_softplus(epsilon))
    if b + c == 0:
        return 0.0
    rising = 0 if b >= turn else min(t, math.ceil((math.log(turn + c) - math.log(b + c)) / epsilon))
    growth = rising * epsilon
    b = b + (b + c) * math.expm1(growth) if growth < 700 else math.exp(math.log(b + c) + growth) - c
    kept = (1 - b + c) * math.exp(-(t - rising) * epsilon) - c  # the probability of a success
    return min(max(1 - kept, 0.0), 1.0) if t > rising else min(b, 1.0)


def required_failure(replaced: SupportsIndex, *, epsilon: float, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Return the failure probability without an adversary for which an estimate keeps its error if records are
    replaced.

    Parameters
    ----------
    replaced, epsilon, delta
        See `implied_failure`.
    confidence : float
        In (0, 1): of the estimate after t records were replaced.

    Returns
    -------
    float
        The greatest b for which `implied_failure` is at most 1 - confidence; 0 if there is none, because of delta.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    If a private estimator is within ``error(b)`` of the target with probability 1 - b, for every b, it is within
    ``error(required_failure(t))`` with probability `confidence` after t of its records were replaced. For a mean with
    Laplace noise, ``error(b)`` increases as log(1 / b) width / (n epsilon), so the error increases by t width / n.

    Examples
    --------
    >>> from dpfast.theory import required_failure
    >>> print(f"{required_failure(10, epsilon=1.0):.3g}")
    2.27e-06
    """
    t = checks.whole("replaced", replaced, least=0)
    epsilon, delta = checks.positive("epsilon", epsilon), checks.delta_down(delta)
    b = 1 - checks.between("confidence", confidence, 0, 1)
    c = _offset(epsilon, delta)
    turned = 1 - (1 - delta) * math.exp(-_softplus(epsilon))  # the image of the turn is its mirror image
    falling = 0
    if b > turned:
        falling = min(t, math.ceil(math.log((1 - turned + c) / (1 - b + c)) / epsilon))
        b -= math.expm1(falling * epsilon) * (1 - b + c)
    return max((b + c) * math.exp(-(t - falling) * epsilon) - c, 0.0)


@dataclass(frozen=True)
class ImpliedRobustness:
    """The robustness that a private estimator has.

    Attributes
    ----------
    replaced : int
        The number of records that an adversary who sees all records may replace.
    contamination : float
        The fraction of the records that this is.
    mixture : float
        The greatest eta such that records may come from ``(1 - eta) P + eta Q`` for any Q, at P's target.
    error, confidence : float
        The estimate is within `error` with probability `confidence` in both cases.
    """

    replaced: int
    contamination: float
    mixture: float
    error: float
    confidence: float


def implied_robustness(
    error: float,
    failure: float,
    *,
    n: SupportsIndex,
    epsilon: float,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> ImpliedRobustness:
    """Return the contamination that a private estimator tolerates without a larger error.

    Parameters
    ----------
    error : float
        At least 0: without contamination the estimate is within this of the target, except with probability `failure`.
        The distance is any function of estimate and target.
    failure : float
        In [0, 1 - confidence].
    n : int
        Number of records, at least 1.
    epsilon : float
        Positive: of the estimator, for one replaced record.
    delta : float
        In [0, 1).
    confidence : float
        In (0, 1): of the error with contamination.

    Returns
    -------
    ImpliedRobustness

    Raises
    ------
    ValueError
        If a parameter is out of range, or `failure` is larger than 1 - confidence.

    Notes
    -----
    `replaced` is the greatest t for which `implied_failure` is at most 1 - confidence, about log((1 - confidence) /
    failure) / epsilon: an estimator with a failure probability of exp(-n epsilon eta) tolerates a fraction of about
    eta. `mixture` is the eta for which ``(failure + c) (1 + eta (exp(epsilon) - 1))**n - c = 1 - confidence``. Proof:
    https://dpfast.readthedocs.io/en/latest/proofs/private-implies-robust.html.

    References
    ----------
    Georgiev and Hopkins 2022, "Privacy induces robustness"; Hopkins, Kamath, Majid and Narayanan 2023.

    Examples
    --------
    >>> from dpfast.theory import implied_robustness
    >>> found = implied_robustness(0.1, 1e-20, n=1000, epsilon=1.0)
    >>> found.replaced, round(found.mixture, 4)
    (43, 0.0256)
    """
    error, failure = checks.nonnegative("error", error), checks.fraction("failure", failure)
    n, epsilon = checks.whole("n", n, least=1), checks.positive("epsilon", epsilon)
    delta, confidence = checks.delta_down(delta), checks.between("confidence", confidence, 0, 1)
    risk = 1 - confidence
    if failure > risk:
        raise ValueError(f"failure must be at most 1 - confidence = {risk:g}, not {failure!r}")
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if implied_failure(middle, failure, epsilon=epsilon, delta=delta) <= risk:
            low = middle
        else:
            high = middle
    c = _offset(epsilon, delta)
    growth = math.log((risk + c) / (failure + c)) / n if failure + c else math.inf
    mixture = math.expm1(growth) / math.expm1(epsilon) if growth < epsilon < 700 else float(growth >= epsilon)
    return ImpliedRobustness(low, low / n, min(mixture, 1.0), error, confidence)


def _offset(epsilon: float, delta: float) -> float:
    return delta / math.expm1(epsilon) if epsilon < 700 else 0.0


def _softplus(x: float) -> float:
    """log(1 + exp(x))."""
    return x + math.log1p(math.exp(-x))
