"""The cost of local privacy in testing: contraction, and the bounds of Le Cam, Fano and Assouad."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import SupportsIndex

from dpfast.core import checks

_FORMS = ("exact", "sharp", "published")


def local_contraction(
    total_variation: float, *, epsilon: float, form: str = "exact", directions: SupportsIndex = 2
) -> float:
    """Bound on the divergence of the reports of people from two distributions, for every private mechanism.

    Parameters
    ----------
    total_variation : float
        Distance t of the two distributions of a person's value, in [0, 1].
    epsilon : float
        Positive.
    form : {"exact", "sharp", "published"}
        The least bound; ``(E - 1)^2 max(1 / E, 2 / (E + 2)) t^2``; or the paper's ``min(4, E^2) (E - 1)^2 t^2``.
    directions : {1, 2}
        2: the sum of both Kullback-Leibler divergences. 1: each of them alone, as needed for interactive mechanisms.

    Returns
    -------
    float
        In nats; infinite if the formula overflows.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Theorem 1. All three hold for every epsilon and t. Divergences are convex and homogeneous in each report's column of
    probabilities, so a worst mechanism has only columns with entries s and E s, and only three parts of the
    distributions matter: the common part, and the rest of each. This is a linear programme with 8 columns and 3 rows.
    With s = t (E - 1), a = log(1 + s) and b = -log(1 - s / E), its optimum for both directions is::

        max{ s (a + b) / (E + 1),   2 s a / (E + 2),   2 s b / (2 E + 1) }

    (randomised response with two answers; with three answers, one of which is kept more often; its mirror image), and
    for one direction, checked against a solver but not proved::

        max{ ((1 + s) a - (E - s) b) / (E + 1),   (E b - a) / (E + 1),   s a / (E + 2) }

    "sharp" is the limit for small t and a bound for all t; half of it, and of "published", bounds one direction.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Theorem 1; Kairouz, Oh and Viswanath 2016, "Extremal mechanisms for local
    differential privacy".

    Examples
    --------
    >>> import dpfast as dpf
    >>> [round(dpf.theory.local_contraction(0.1, epsilon=1.0, form=f), 4) for f in ("exact", "sharp", "published")]
    [0.0115, 0.0125, 0.1181]
    """
    t, epsilon = checks.fraction("total_variation", total_variation), checks.positive_down("epsilon", epsilon)
    if form not in _FORMS:
        raise ValueError(f"form must be one of {', '.join(map(repr, _FORMS))}, not {form!r}")
    two = checks.whole("directions", directions, least=1) == 2
    if not two and directions != 1:
        raise ValueError(f"directions must be 1 or 2, not {directions!r}")
    if t == 0:
        return 0.0
    if epsilon > 300:
        return math.inf
    e, y = math.exp(epsilon), math.expm1(epsilon)
    if form != "exact":
        factor = max(1 / e, 2 / (e + 2)) if form == "sharp" else min(4, e * e)
        return factor * (y * t) ** 2 / (1 if two else 2)
    s = t * y
    a, b = math.log1p(s), -math.log1p(-s / e) if s < e / 2 else -math.log(1 - t + t / e)
    if two:
        return max(s * (a + b) / (e + 1), 2 * s * a / (e + 2), 2 * s * b / (2 * e + 1))
    if s < 1e-4:  # here the terms cancel, and the limit is as accurate
        return local_contraction(t, epsilon=epsilon, form="sharp", directions=1)
    return max(((1 + s) * a - (e - s) * b) / (e + 1), (e * b - a) / (e + 1), s * a / (e + 2))


def distinguishable(t: float, epsilon: float, n: int, form: str) -> float:
    """Bound on the total variation distance of the reports of n people, by Pinsker or Bretagnolle and Huber."""
    divergence = n * local_contraction(t, epsilon=epsilon, form=form, directions=1)
    return min(math.sqrt(divergence / 2), math.sqrt(-math.expm1(-divergence)))


def local_le_cam(
    loss: float, total_variation: float, *, epsilon: float, n: SupportsIndex, form: str = "exact"
) -> float:
    """Le Cam's two-point bound under local privacy, interactive or not.

    Parameters
    ----------
    loss : float
        Least loss of an estimate that points to the wrong one of the two distributions: Phi(delta), for parameters 2
        delta apart. At least 0.
    total_variation : float
        Distance of the two distributions, in [0, 1].
    epsilon : float
        Positive.
    n : int
        Number of people, at least 1.
    form : {"exact", "sharp", "published"}
        See `local_contraction`.

    Returns
    -------
    float
        Every estimator has at least this expected loss, for one of the two distributions.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Proposition 1: ``loss (1 - TV) / 2``, where TV is the distance of all reports, at most ``sqrt(n J / 2)`` and at most
    ``sqrt(1 - exp(-n J))``, with J the contraction in one direction.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Proposition 1 and inequality (8).

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_le_cam(1.0, 0.01, epsilon=1.0, n=1000), 3)
    0.412
    """
    loss, n = checks.nonnegative("loss", loss), checks.whole("n", n, least=1)
    return loss * (1 - distinguishable(checks.fraction("total_variation", total_variation), epsilon, n, form)) / 2


def local_fano(
    loss: float,
    hypotheses: SupportsIndex,
    correlation: float,
    *,
    epsilon: float,
    n: SupportsIndex,
    neighborhood: SupportsIndex = 1,
    form: str = "sharp",
) -> float:
    """Fano's bound under local privacy, for non-interactive mechanisms only.

    Parameters
    ----------
    loss : float
        Least loss of an estimate that points to a wrong hypothesis; at least 0.
    hypotheses : int
        Number of distributions P_v, at least 2.
    correlation : float
        ``sup over |g| <= 1 of the mean over v of (P_v g - P g)^2``, where P is their mean; at most 1.
    epsilon : float
        Positive.
    n : int
        Number of people, at least 1.
    neighborhood : int
        The largest number of hypotheses that count as right for an estimate, 1 if only the true one does; at least 1.
    form : {"sharp", "published"}
        "published" has the constant of Theorem 2, eight times that of "sharp". Both are proved.

    Returns
    -------
    float
        Every estimator has at least this expected loss, on average over the hypotheses; 0 if the bound is vacuous.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Proposition 2: ``loss (1 - (I + log 2) / log(hypotheses / neighborhood))``. "published" has the information ``I = n
    (E - 1)^2 correlation``, "sharp" the least of ``n (E - 1)^2 correlation / 8`` and ``n epsilon``. The factor 1/8: a
    report's column q has values in [s, E s], so ``q = s (E + 1) / 2 + s (E - 1) / 2 g`` with g in [-1, 1]; its
    probability is at least s; a divergence is at most half of ``sum (m - m')^2 / min(m, m')``; and the s sum to at most
    1 (https://dpfast.readthedocs.io/en/latest/proofs/local-lower-bounds.html).

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Proposition 2, Theorem 2, inequalities (19) and (22).

    Examples
    --------
    >>> import dpfast as dpf
    >>> [round(dpf.theory.local_fano(1.0, 1024, 1e-4, epsilon=0.5, n=9000, form=f), 3) for f in ("sharp", "published")]
    [0.893, 0.845]
    """
    loss, number = checks.nonnegative("loss", loss), checks.whole("hypotheses", hypotheses, least=2)
    correlation, n = checks.fraction("correlation", correlation), checks.whole("n", n, least=1)
    epsilon, near = checks.positive_down("epsilon", epsilon), checks.whole("neighborhood", neighborhood, least=1)
    information = per_report(epsilon, form) * correlation
    return from_information(
        loss, number / near, n * (information if form == "published" else min(information, epsilon))
    )


def from_information(loss: float, ratio: float, information: float) -> float:
    """Return the bound of Fano for a ratio of the hypotheses to those that count as right."""
    return loss * max(0.0, 1 - (information + math.log(2)) / math.log(ratio)) if ratio > 1 else 0.0


def local_assouad(
    loss: float, dimension: SupportsIndex, correlation: float, *, epsilon: float, n: SupportsIndex, form: str = "sharp"
) -> float:
    """Assouad's bound under local privacy, interactive or not.

    Parameters
    ----------
    loss : float
        delta: an estimate loses at least 2 delta for each wrong coordinate of a corner of the cube.
    dimension : int
        Dimension d of the cube {-1, 1}^d; its corners v index the distributions P_v. At least 1.
    correlation : float
        ``max over v of sup over |g| <= 1 of sum_j (P_v g - P_(v, j flipped) g)^2``.
    epsilon : float
        Positive.
    n : int
        Number of people, at least 1.
    form : {"sharp", "published"}
        "published" has the constant of Theorem 3, eight times that of "sharp". Both are proved for this correlation.

    Returns
    -------
    float
        Every estimator has at least this expected loss, on average over the corners; 0 if the bound is vacuous.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Proposition 3: ``d delta (1 - sqrt(n (E - 1)^2 correlation / (2 d)))``, with 16 d for 2 d if "sharp". Derivation:
    the divergence of the reports of v from those of its neighbour is a sum over people, each given the earlier reports,
    whose law is the same for all neighbours; the divergence of one report is at most ``(E - 1)^2 / 8 (P_v g - P_v'
    g)^2`` as in `local_fano`, so the sum over j is at most ``n (E - 1)^2 correlation / 8``; the rest follows by Pinsker
    and Cauchy-Schwarz.

    The paper has another correlation, that of the mixtures of the P_v with v_j = 1 and with v_j = -1, for which the
    bound is false: n records of a mixture of P_v are not independent
    (https://dpfast.readthedocs.io/en/latest/proofs/local-lower-bounds.html). Where ``P_v - P_(v, j flipped)`` depends
    on v_j only, the two are equal.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Proposition 3, Theorem 3.

    Examples
    --------
    >>> import dpfast as dpf
    >>> [round(dpf.theory.local_assouad(1.0, 10, 1e-3, epsilon=1.0, n=2000, form=f), 3) for f in ("sharp", "published")]
    [8.079, 4.566]
    """
    loss, d = checks.nonnegative("loss", loss), checks.whole("dimension", dimension, least=1)
    correlation, n = checks.nonnegative("correlation", correlation), checks.whole("n", n, least=1)
    divergence = n * per_report(checks.positive_down("epsilon", epsilon), form) * correlation
    return d * loss * max(0.0, 1 - math.sqrt(divergence / (2 * d)))


def local_testing_error(*, epsilon: float) -> float:
    """Least error probability of a test between two values of a person, equally likely a priori, from one report.

    Returns
    -------
    float
        ``1 / (1 + exp(epsilon))``: a lower bound for every test and mechanism, attained by randomised response.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_testing_error(epsilon=1.0), 4)
    0.2689
    """
    e = math.exp(-checks.positive_down("epsilon", epsilon))
    return e / (1 + e)


def local_effective_sample_size(n: float, *, epsilon: float) -> float:
    """Return the number of non-private answers as accurate as n private ones, for yes/no questions with probability
    near 1/2.

    Parameters
    ----------
    n : float
        Number of people, positive.
    epsilon : float
        Positive.

    Returns
    -------
    float
        ``n tanh(epsilon / 2)^2``, about ``n epsilon^2 / 4`` for small epsilon: the ratio of the variances of the median
        from `dpfast.local.median` and of the sample median, also for a proportion near 1/2. (The paper's lower bounds
        are of order n epsilon^2, and n epsilon^2 / d in d dimensions.)

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_effective_sample_size(10_000, epsilon=1.0))
    2136
    """
    return checks.positive("n", n) * math.tanh(checks.positive_down("epsilon", epsilon) / 2) ** 2


# ---- shared ----


def per_report(epsilon: float, form: str) -> float:
    """(E - 1)^2 / 8, or (E - 1)^2 as published: the factor of a correlation in the divergence of a report."""
    if form not in ("sharp", "published"):
        raise ValueError(f"form must be 'sharp' or 'published', not {form!r}")
    return (math.expm1(epsilon) ** 2 if epsilon < 350 else math.inf) / (1 if form == "published" else 8)


def largest_of(bound: Callable[[float], float]) -> float:
    """Return the largest value over delta = 1, ..., 2^-48, 32 per octave; the value at every delta is a bound."""
    return max(bound(2.0 ** (-j / 32)) for j in range(48 * 32))
