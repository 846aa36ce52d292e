"""Lower bounds with constants for means of vectors, logistic regressions and densities under local privacy.

Derivations: https://dpfast.readthedocs.io/en/latest/proofs/local-lower-bounds.html.
"""

from __future__ import annotations

import math
from typing import SupportsIndex

from dpfast.core import checks
from dpfast.theory.cube import gamma_ratio_half
from dpfast.theory.local_rates import local_mean_lower_bound
from dpfast.theory.local_testing import from_information, largest_of, per_report


def local_ball_mean_lower_bound(
    n: SupportsIndex, dimension: SupportsIndex, *, epsilon: float, radius: float = 1.0, form: str = "sharp"
) -> float:
    """Lower bound on the mean squared error of every private estimator of a mean of vectors in the Euclidean ball.

    Parameters
    ----------
    n, dimension : int
        Number of people, and d; at least 1.
    epsilon : float
        Positive, of any size.
    radius : float
        r, positive, in data units.
    form : {"sharp", "published"}
        See `local_assouad`. "published" bounds the divergence of a report by the constant of Theorem 3, and counts
        wrong signs as Lemma 1 does.

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
    Corollary 4, lower bound, of order ``r^2 min(1, d / (n (E - 1)^2))``. The distributions have independent coordinates
    +-r / sqrt(d) with means r b v_j / sqrt(d), v a corner of the cube; b is found by search. For small errors "sharp"
    is near ``(8 / 27) r^2 d / (2 n sinh(epsilon / 2)^2)``.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 4, appendix D.1.1.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_ball_mean_lower_bound(100_000, 10, epsilon=1.0), 7)
    5.32e-05
    """
    n, d = checks.whole("n", n, least=1), checks.whole("dimension", dimension, least=1)
    epsilon, radius = checks.positive_down("epsilon", epsilon), checks.positive("radius", radius)
    return radius**2 * largest_of(lambda b: b * b * _confused(n, d, form, _corner_divergence(b, d, epsilon, form)))


def local_ball_mean_upper_bound(
    n: SupportsIndex, dimension: SupportsIndex, *, epsilon: float, radius: float = 1.0
) -> float:
    """Upper bound on the mean squared error of the mean of `dpfast.local.L2Ball` reports, for every distribution.

    Parameters
    ----------
    n, dimension, epsilon, radius
        See `local_ball_mean_lower_bound`.

    Returns
    -------
    float
        ``min(r^2, B^2 / n)``, in squared data units: B is the length of a report of the half-space mechanism, and r^2
        the error of the estimate 0.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Corollary 4, upper bound, by equation (25): ``B = r c sqrt(pi) Gamma((d + 1) / 2) / Gamma(d / 2)``, about ``r c
    sqrt(pi d / 2)``, with c = coth(epsilon / 2). The error is ``(B^2 - |mean|^2) / n``.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 4, equation (25).

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_ball_mean_upper_bound(100_000, 10, epsilon=1.0), 7)
    0.0006997
    """
    n, d = checks.whole("n", n, least=1), checks.whole("dimension", dimension, least=1)
    c = 1 / math.tanh(checks.positive_down("epsilon", epsilon) / 2)
    length = c * math.sqrt(math.pi) * gamma_ratio_half(d / 2)
    return checks.positive("radius", radius) ** 2 * min(1.0, length * length / n)


def local_sparse_mean_lower_bound(
    n: SupportsIndex,
    dimension: SupportsIndex,
    *,
    epsilon: float,
    radius: float = 1.0,
    interactive: bool = False,
    form: str = "sharp",
) -> float:
    """Lower bound on the squared error of every private estimator of a mean with at most one nonzero coordinate.

    Parameters
    ----------
    n, dimension : int
        Number of people, and d; at least 1.
    epsilon : float
        Positive, of any size.
    radius : float
        r, positive: records are in [-r, r]^d.
    interactive : bool
        True: mechanisms may depend on earlier reports, as in two rounds of which the first finds the coordinate. False:
        they may not.
    form : {"sharp", "published"}
        See `local_fano`; "published" for ``interactive=False`` only, as the paper has no other bound.

    Returns
    -------
    float
        In squared data units: every estimator has at least this error for some distribution.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Corollary 5, lower bound, of order ``r^2 min(1, d log(d) / (n (E - 1)^2))``: Fano's bound for 2 d distributions,
    independent coordinates +-r, one of which has mean +-r b. With interaction, of order ``r^2 min(1, d / (n (E -
    1)^2))``: Le Cam's bound for mean 0 against each of the d means r b e_j, averaged over j. So rounds can save a
    factor of order log d and not the dimension. Both are at least the bound for d = 1, and b is found by search.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 5, appendix D.2.

    Examples
    --------
    >>> import dpfast as dpf
    >>> bounds = [dpf.theory.local_sparse_mean_lower_bound(10**7, 1000, epsilon=1.0, interactive=i) for i in (0, 1)]
    >>> [round(bound, 7) for bound in bounds]
    [0.0005777, 5.32e-05]
    """
    n, d = checks.whole("n", n, least=1), checks.whole("dimension", dimension, least=1)
    epsilon, radius = checks.positive_down("epsilon", epsilon), checks.positive("radius", radius)
    published = per_report(epsilon, form)
    if interactive and form == "published":
        raise ValueError("form must be 'sharp' for interactive mechanisms: the paper has no bound for them")

    line = local_mean_lower_bound(n, epsilon=epsilon, moment=math.inf, form="exact" if form == "sharp" else form)
    if form == "published":
        return radius**2 * max(line, largest_of(lambda b: _one_of_many(b, n, d, published * b * b / d)))

    def rounds(b: float) -> float:
        apart = -math.log1p(-b * b) / 2 if b < 1 else math.inf  # the divergence of the records
        return b * b / 4 * (1 - _distance(n * min(b * b * _least_factor(epsilon, 1 - b) / d, apart)))

    def one_round(b: float) -> float:
        apart = ((1 + b) * math.log1p(b) + (1 - b) * math.log1p(-b)) / 2 if b < 1 else math.log(2)
        return _one_of_many(b, n, d, min(apart * min(_contracted(epsilon) / d, 1.0), epsilon))

    found = [line, largest_of(rounds)]
    return radius**2 * max(found if interactive else [*found, largest_of(one_round)])


def local_logistic_lower_bound(
    n: SupportsIndex, dimension: SupportsIndex, *, epsilon: float, largest: float = 1.0, form: str = "sharp"
) -> float:
    """Lower bound on the squared error of the coefficients of a logistic regression on {-1, 1}^d.

    Parameters
    ----------
    n, dimension, epsilon, form
        See `local_ball_mean_lower_bound`.
    largest : float
        Coefficients are in [-largest, largest]; positive. (Without a bound, no estimator has a finite worst error.)

    Returns
    -------
    float
        Every estimator of the d coefficients, interactive or not, has at least this expected squared error for some
        coefficients and some distribution of the features.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Corollary 6, lower bound, of order ``min(d, d^2 / (n (E - 1)^2))``. Labels are even; given a label y of +-1, the
    features are independent with mean ``y v_j tanh(a / 2)``, so that the coefficients are a v, v a corner of the cube;
    a is found by search. The paper's proof has the correlation of mixtures (`local_assouad`); the corollary holds with
    the one used here.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 6, appendix F.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_logistic_lower_bound(100_000, 10, epsilon=0.5), 5)
    0.00882
    """
    n, d = checks.whole("n", n, least=1), checks.whole("dimension", dimension, least=1)
    epsilon, largest = checks.positive_down("epsilon", epsilon), checks.positive("largest", largest)

    def bound(share: float) -> float:
        a = share * largest
        return d * a * a * _confused(n, d, form, _corner_divergence(math.tanh(a / 2), d, epsilon, form))

    return largest_of(bound)


def local_density_lower_bound(
    n: SupportsIndex, *, epsilon: float, smoothness: float, roughness: float = 1.0, form: str = "sharp"
) -> float:
    """Lower bound on the mean integrated squared error of every private estimator of a density on [0, 1].

    Parameters
    ----------
    n, epsilon, form
        See `local_ball_mean_lower_bound`.
    smoothness, roughness : float
        beta, above 1/2, and C, positive: the coefficients of the density in the trigonometric basis, cos and sin of
        each frequency in turn, have ``sum_j j^(2 beta) b_j^2 <= C^2``.

    Returns
    -------
    float
        Every estimator, interactive or not, has at least this error for some density.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Corollary 7, lower bound, of order ``(n (E - 1)^2)^(-2 beta / (2 beta + 2))``: the densities ``1 + a sum_j v_j
    phi_j`` of the first k basis functions, with the largest a for which they are positive and smooth enough; an even k
    is found by search. They take the place of the paper's bumps, and have explicit constants.
    `dpfast.local.SeriesReports.mise_bound` is an upper bound for the same densities.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 7, appendix G.1.

    Examples
    --------
    >>> import dpfast as dpf
    >>> bounds = [dpf.theory.local_density_lower_bound(10**n, epsilon=1.0, smoothness=1.0) for n in (6, 10)]
    >>> [round(bound, 6) for bound in bounds]
    [0.000707, 8e-06]
    """
    n, epsilon = checks.whole("n", n, least=1), checks.positive_down("epsilon", epsilon)
    beta = checks.between("smoothness", smoothness, 0.5, math.inf)
    roughness, factor = checks.positive("roughness", roughness), per_report(epsilon, form)
    best, weight, k, divergence = 0.0, 0.0, 0, math.inf
    found = best
    while found >= best or n * divergence > k:  # where n divergence > k, signs are not confused, and rounding decides
        best, k = max(best, found), k + 2
        weight += (k - 1) ** (2 * beta) + k ** (2 * beta)
        a = min(1 / k, roughness / math.sqrt(weight))
        if form == "sharp":
            factor = _least_factor(epsilon, 1 - a * k, alone=k)
        divergence = 4 * a * a * factor
        found = k * a * a * _confused(n, k, form, divergence)
    return best


# ---- shared ----


def _distance(divergence: float) -> float:
    """Bound on the total variation distance by Pinsker or by Bretagnolle and Huber; concave in the divergence."""
    return min(math.sqrt(divergence / 2), math.sqrt(-math.expm1(-divergence)))


def _confused(n: int, d: int, form: str, divergence: float) -> float:
    """Return the factor of `local_assouad`, for a sum over j of the divergences of one person's reports from v and v_j.

    A squared error in a coordinate of +-a is a^2 at least, times one minus the distance; half of it as published.
    """
    if form == "published":
        return max(0.0, 1 - math.sqrt(n * divergence / (2 * d))) / 2
    return 1 - _distance(n * divergence / d)


def _one_of_many(b: float, n: int, d: int, information: float) -> float:
    return from_information(b * b / 2, 2 * d, n * information)


def _least_factor(epsilon: float, ratio: float, alone: float = math.inf) -> float:
    """Return the factor of the squared correlation in the divergence of a report, the least that is proved.

    ratio: lower bound on the ratio of the densities of the two distributions of the record, the second to that which
    the correlation refers to. alone: twice the factor for the records themselves, without privacy.
    """
    return min(per_report(epsilon, "sharp"), min(_contracted(epsilon), alone) / (2 * ratio) if ratio > 0 else math.inf)


def _contracted(epsilon: float) -> float:
    """sinh(epsilon / 2)^2, the largest of p (1 - p) (E - 1)^2 / (1 + (E - 1) p)^2; infinite if it overflows."""
    return math.sinh(epsilon / 2) ** 2 if epsilon < 350 else math.inf


def _corner_divergence(b: float, d: int, epsilon: float, form: str) -> float:
    """Sum over j of the divergences of one report, for d independent signs of means b v_j, from v and v_j flipped."""
    spread = 4 * b * b / (1 - b * b) if b < 1 else math.inf
    simple = per_report(epsilon, form) * min(spread, 4 * b * b * d)
    if form == "published" or b == 1:
        return simple
    apart = d * b * (math.log1p(b) - math.log1p(-b))  # the divergence of the records
    return min(simple, spread * _least_factor(epsilon, (1 - b) / (1 + b)), apart)
