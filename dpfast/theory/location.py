"""Chaudhuri and Hsu (2012), sections 3 and 4: lower bounds for private estimators, and the error of theirs.

Notation: epsilon is the paper's alpha, Gamma and GES are the gross-error sensitivity, R is the width of the range, eta
the failure probability of one step. `confidence` is the probability of the whole statement: eta = (1 - confidence) /
(number of steps that can fail).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpfast.core import checks


def pure_lower_bound(width: float, *, epsilon: float, n: int) -> float:
    """Lower bound on the error of epsilon-differentially private estimators, if the target can be anywhere in a range.

    Parameters
    ----------
    width : float
        Length R of an interval; every point of it is the target of some distribution of the family.
    epsilon : float
        Positive.
    n : int
        Number of records, at least 1.

    Returns
    -------
    float
        Every estimator has an expected absolute error of at least this, for some distribution of the family.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Theorem 2::

        max_F E|A(F_n) - T(F)| >= R / (4 (2 + exp(epsilon n)))

    Pure differential privacy only: with delta > 0 the range need not matter. Proof: take 2 + exp(epsilon n) disjoint
    intervals; each is hit with probability 1/2 on its own data, hence by group privacy with probability at least
    exp(-epsilon n) / 2 on the data of any other; these probabilities sum to more than 1.

    References
    ----------
    Chaudhuri and Hsu 2012, Theorem 2.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.pure_lower_bound(1e6, epsilon=1.0, n=10), 3)
    11.349
    """
    width = checks.positive("width", width)
    epsilon, n = checks.positive_down("epsilon", epsilon), checks.whole("n", n, least=1)
    return width / 4 * math.exp(-np.logaddexp(math.log(2), epsilon * n))


def lower_bound_scale(*, epsilon: float, n: int) -> Fraction:
    """Scale rho of the gross-error sensitivity in Theorem 1 (`lower_bound`): ``ceil(ln 2 / (2 epsilon)) / n``.

    Parameters
    ----------
    epsilon : float
        In (0, ln(2) / 2).
    n : int
        At least ``ceil(ln 2 / (2 epsilon))``.

    Returns
    -------
    Fraction
        In (0, 1].

    Raises
    ------
    ValueError
        If a parameter is out of range, or n is so small that rho would exceed 1.

    Notes
    -----
    The paper does not state this requirement on n.

    References
    ----------
    Chaudhuri and Hsu 2012, Theorem 1.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.theory.lower_bound_scale(epsilon=0.1, n=1000)
    Fraction(1, 250)
    """
    epsilon = checks.between("epsilon", epsilon, 0, math.log(2) / 2)
    moved = math.ceil(math.log(2) / (2 * epsilon))
    return Fraction(moved, checks.whole("n", n, least=moved))


def lower_bound(gross_error_sensitivity: float, *, epsilon: float, delta: float = 0.0, n: int) -> float:
    """Lower bound on the error of every (epsilon, delta)-differentially private estimator near a distribution.

    Parameters
    ----------
    gross_error_sensitivity : float
        Of the target T at the distribution F, at scale ``lower_bound_scale(epsilon=epsilon, n=n)``; at least 0.
    epsilon : float
        In (0, ln(2) / 2).
    delta : float
        In [0, epsilon / 23).
    n : int
        At least ``ceil(ln 2 / (2 epsilon))``.

    Returns
    -------
    float
        Every estimator has an expected absolute error of at least this, for F or for some distribution within total
        variation rho of F.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Theorem 1::

        max(E|A(F_n) - T(F)|, E|A(G_n) - T(G)|) >= rho GES_rho(T, F) / 16,    rho = ceil(ln 2 / (2 epsilon)) / n

    for G = (1 - rho) F + rho delta_x, x the point of largest influence. The paper states it for all n; the proof needs
    rho <= 1. It holds for delta up to (1 - exp(-epsilon)) / 16, slightly more than accepted here.

    References
    ----------
    Chaudhuri and Hsu 2012, Theorem 1 and Lemmas 2 and 3.

    Examples
    --------
    The mean of records in [0, 1], all 0: one point at 1 has influence 1 at every scale.

    >>> import dpfast as dpf
    >>> dpf.theory.lower_bound(1.0, epsilon=0.1, n=1000)
    0.00025
    """
    influence = checks.nonnegative("gross_error_sensitivity", gross_error_sensitivity)
    rho = lower_bound_scale(epsilon=epsilon, n=n)
    if checks.delta_down(delta) >= epsilon / 23:
        raise ValueError(f"delta must be below epsilon / 23 = {epsilon / 23:g}, not {delta!r}")
    return float(rho) * influence / 16


def smooth_sensitivity_bound(
    gross_error_sensitivity: float,
    *,
    width: float,
    beta: float,
    n: int,
    confidence: float = 0.95,
    exponent: float | None = None,
) -> float:
    """Bound on the smooth sensitivity of a statistic of n independent records.

    Parameters
    ----------
    gross_error_sensitivity : float
        Gamma_n, at least 0: the supremum of the gross-error sensitivity at scale 1/n over *all* distributions of the
        family within Kolmogorov distance ``sqrt(2 ln(2 / eta) / n)`` of F (Condition 2), including discrete ones; with
        an `exponent` p, within ``sqrt(ln(2 / eta) / (2 n)) + n**-p`` (Condition 5).
    width : float
        R, length of the range of the statistic (Condition 1).
    beta : float
        At least 0.
    n : int
        At least 2.
    confidence : float
        In (0, 1).
    exponent : float, optional
        p of appendix E, in [0, 1/2]. The smaller it is, the more distributions count for Gamma, and the faster the
        second term decreases.

    Returns
    -------
    float
        The smooth sensitivity is at most this with probability at least `confidence`.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Lemma 1, with eta = 1 - confidence::

        SS_beta(T, F_n) <= max(2 Gamma_n / n, R exp(-beta (sqrt(n ln(2 / eta) / 2) - 1)))

    and, with an exponent p (appendix E)::

        SS_beta(T, F_n) <= max(2 Gamma_(p, n) / n, R exp(-beta (n**(1 - p) - 1)))

    With p = 0 all distributions count, and the second term decreases like the lower bound for pure privacy,
    `pure_lower_bound`.

    The paper's proof has ``2 r_n = sqrt(2 ln(1 / eta) / n)``, which should be ``ln(2 / eta)``; the statement is right.
    n = 1 is excluded because the proof removes a record.

    For the median, Gamma_n is not 1/2 as in Example 3: the ball contains distributions whose distribution function is
    flat at 1/2 on an interval of length 4 r, r = sqrt(2 ln(2 / eta) / n), and one record moves the median across it.
    So Gamma_n >= 4 n r, which grows like sqrt(n): 109 at n = 100, 10865 at n = 1e6 (confidence 0.95). Condition 2
    fails, and the smooth sensitivity of the median is of order 1 / (e beta f n), f the density there, not Gamma / n.

    References
    ----------
    Chaudhuri and Hsu 2012, Lemma 1, appendix C.

    Examples
    --------
    The mean of records in [-1/2, 1/2], with all influences at most 1:

    >>> import dpfast as dpf
    >>> dpf.theory.smooth_sensitivity_bound(1.0, width=1.0, beta=0.5, n=1000)
    0.002
    """
    influence = checks.nonnegative("gross_error_sensitivity", gross_error_sensitivity)
    width, beta = checks.positive("width", width), checks.nonnegative("beta", beta)
    n, eta = checks.whole("n", n, least=2), 1 - checks.between("confidence", confidence, 0, 1)
    beyond = math.sqrt(n * math.log(2 / eta) / 2) if exponent is None else n ** (1 - _exponent(exponent))
    return max(2 * influence / n, width * math.exp(-beta * (beyond - 1)))


def _exponent(exponent: float) -> float:
    p = checks.nonnegative("exponent", exponent)
    if p > 0.5:
        raise ValueError(f"exponent must be at most 1/2, not {exponent!r}")
    return p


def smooth_upper_bound(
    gross_error_sensitivity: float,
    *,
    width: float,
    epsilon: float,
    delta: float,
    n: int,
    confidence: float = 0.95,
    exponent: float | None = None,
) -> float:
    """Additional error of the published smooth sensitivity estimator over that of the statistic itself.

    Parameters
    ----------
    gross_error_sensitivity, width
        Gamma_n and R, as for `smooth_sensitivity_bound`, at eta = (1 - confidence) / 2.
    epsilon : float
        Positive, and small enough for `delta`: see Notes.
    delta : float
        In (0, 1).
    n : int
        At least 2.
    confidence : float
        In (1/2, 1).
    exponent : float, optional
        p of appendix E, see `smooth_sensitivity_bound`.

    Returns
    -------
    float
        ``|A(F_n) - T(F)| - |T(F_n) - T(F)|`` is at most this with probability at least `confidence`.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the published constants are not certified as private for (epsilon, delta).

    Notes
    -----
    Theorem 3, for ``A = T(F_n) + SS_beta(T, F_n) (2 / epsilon) Z``, Z standard Laplace, beta = epsilon / (2 ln(1 /
    delta)), eta = (1 - confidence) / 2 below 1/4::

        |A(F_n) - T(F)| <= |T(F_n) - T(F)| + (2 ln(1 / eta) / epsilon)
            max(2 Gamma_n / n, R exp(-beta (sqrt(n ln(2 / eta) / 2) - 1)))

    in the unsimplified form, because the exponent is not legible in the published statement; with an exponent p the
    bound of appendix E.

    Proposition 1 claims that A is (epsilon, delta)-differentially private for every epsilon, which is false. On
    neighbours whose smooth sensitivities differ by the factor exp(beta), the divergence reaches, with
    r = 1 / (exp(beta) - 1)::

        (1 - exp(-beta)) exp(-r (epsilon + beta)) cosh(r epsilon / 2)

    which exceeds delta beyond an epsilon* of 6.7 (delta 0.1), 8.5 (1e-2), 9.4 (1e-3), 10.1 (1e-4), 11.2 (1e-6), 12.0
    (1e-8). There this function raises an error, since accuracy without privacy is of no use. It also raises if the loss
    with the wider noise, exp(-beta) epsilon / 2 + beta, exceeds epsilon (delta above about 1 / e): not certified.

    Example 3 applies the theorem to the median with Gamma_n = 1/2, which is wrong: see `smooth_sensitivity_bound`.

    References
    ----------
    Chaudhuri and Hsu 2012, Proposition 1 and Theorem 3; Nissim, Raskhodnikova and Smith 2007.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.smooth_upper_bound(1.0, width=1.0, epsilon=1.0, delta=1e-6, n=1_000_000), 9)
    1.4756e-05
    """
    epsilon = checks.positive_down("epsilon", epsilon)
    delta = checks.between("delta", delta, 0, 1)
    eta = (1 - checks.between("confidence", confidence, 0.5, 1)) / 2
    if not _published_constants_hold(epsilon, delta):
        raise ValueError(f"epsilon = {epsilon:g} is too large for delta = {delta:g}: Proposition 1 fails there")
    beta = epsilon / (2 * math.log(1 / delta))
    sensitivity = smooth_sensitivity_bound(
        gross_error_sensitivity, width=width, beta=beta, n=n, confidence=1 - eta, exponent=exponent
    )
    return 2 * math.log(1 / eta) / epsilon * sensitivity


def _published_constants_hold(epsilon: float, delta: float) -> bool:
    """Whether scale 2 S / epsilon with beta = epsilon / (2 ln(1 / delta)) is (epsilon, delta)-private: equation (L)."""
    beta = epsilon / (2 * math.log(1 / delta))
    if epsilon / 2 * math.exp(-beta) + beta > epsilon:  # the loss if the neighbour's noise is wider
        return False
    r = 1 / math.expm1(beta) if beta < 700 else 0.0
    log_cosh = float(np.logaddexp(r * epsilon / 2, -r * epsilon / 2)) - math.log(2)
    return math.log(-math.expm1(-beta)) - r * (epsilon + beta) + log_cosh <= math.log(delta)


def linear_upper_bound(
    gross_error_sensitivity: float,
    *,
    variance: float,
    epsilon: float,
    n: int,
    confidence: float = 0.95,
    corrected: bool = True,
) -> float:
    """Error of a mean of bounded terms released with Laplace noise of the global sensitivity.

    Parameters
    ----------
    gross_error_sensitivity : float
        ``sup_x |a(x) - T(F)|`` of T(F) = integral of a dF, positive.
    variance : float
        Variance of a(x) under F, from 0 to the square of `gross_error_sensitivity`.
    epsilon : float
        Positive.
    n : int
        At least 1.
    confidence : float
        In (0, 1).
    corrected : bool
        True: noise of scale S / epsilon, S the sensitivity; this suffices because S is constant. False: the published
        2 S / epsilon, twice as much as needed.

    Returns
    -------
    float
        ``|A(F_n) - T(F)|`` is at most this with probability at least `confidence`.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Theorem 5 (delta = 0, beta = 0), with eta = (1 - confidence) / 2 and c = 1 if corrected, else 2::

        |A(F_n) - T(F)| <= sqrt(2 variance ln(2 / eta) / n) + (2/3 + 2 c / epsilon) GES ln(2 / eta) / n

    by Bernstein's inequality for the mean and the tail of the Laplace law for the noise; the sensitivity is at most
    2 GES / n. (The proof of Lemma 4 uses sup |a(x)| / n for this sensitivity, which is sup |a(x) - a(y)| / n.)

    References
    ----------
    Chaudhuri and Hsu 2012, Theorem 5, appendix B.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.linear_upper_bound(1.0, variance=0.1, epsilon=1.0, n=10_000), 6)
    0.01053
    """
    influence = checks.positive("gross_error_sensitivity", gross_error_sensitivity)
    variance = checks.nonnegative("variance", variance)
    if variance > influence**2:
        raise ValueError(f"variance must be at most gross_error_sensitivity**2 = {influence**2:g}, not {variance!r}")
    epsilon, n = checks.positive_down("epsilon", epsilon), checks.whole("n", n, least=1)
    logarithm = math.log(2 / ((1 - checks.between("confidence", confidence, 0, 1)) / 2))
    noise = (2 if corrected else 4) / epsilon
    return math.sqrt(2 * variance * logarithm / n) + (2 / 3 + noise) * influence * logarithm / n
