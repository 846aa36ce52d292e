"""Duchi, Jordan and Wainwright (2018): what local privacy costs, as lower and upper bounds.

Letters in the equations: E = exp(epsilon), c = coth(epsilon / 2), t a total variation distance between distributions of
one person's number, J a divergence between those of one report. n people answer once each, one after the other or all
at once, unless a function says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import SupportsIndex

from dpfast import _checks

_FORMS = ("exact", "sharp", "published")


def local_contraction(
    total_variation: float, *, epsilon: float, form: str = "exact", directions: SupportsIndex = 2
) -> float:
    """How far apart the reports of people from two distributions can be, whatever the private mechanism.

    Parameters
    ----------
    total_variation : float
        Distance t of the two distributions of a person's number, in [0, 1].
    epsilon : float
        Positive.
    form : {"exact", "sharp", "published"}
        The least such bound, ``(E - 1)^2 max(1 / E, 2 / (E + 2)) t^2``, or the paper's ``min(4, E^2) (E - 1)^2 t^2``.
    directions : {1, 2}
        2: the sum of both Kullback-Leibler divergences. 1: either of them alone, which is what interaction asks for.

    Returns
    -------
    float
        In nats; infinite where epsilon is beyond the range of the formula.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    Theorem 1. All three hold for every epsilon and t. Divergences are convex and homogeneous in each report's column of
    probabilities, so the worst mechanism has columns of entries s and E s only, and what matters of the distributions
    is the part that they share, the one's own and the other's own: a linear programme of 8 columns and 3 rows. With s =
    t (E - 1), a = log(1 + s) and b = -log(1 - s / E) its optimum for both directions is::

        max{ s (a + b) / (E + 1),   2 s a / (E + 2),   2 s b / (2 E + 1) }

    (randomised response on two answers; "which of three" with one of them kept more often; its mirror image), and for
    one direction, compared with a solver and not proved::

        max{ ((1 + s) a - (E - s) b) / (E + 1),   (E b - a) / (E + 1),   s a / (E + 2) }

    "sharp" is the limit of small t and a bound for all; half of it, and of "published", bounds one direction.

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
    t, epsilon = _checks.fraction("total_variation", total_variation), _checks.positive_down("epsilon", epsilon)
    if form not in _FORMS:
        raise ValueError(f"form must be one of {', '.join(map(repr, _FORMS))}, not {form!r}")
    two = _checks.whole("directions", directions, least=1) == 2
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
    a, b = math.log1p(s), -math.log1p(-s / e)
    if two:
        return max(s * (a + b) / (e + 1), 2 * s * a / (e + 2), 2 * s * b / (2 * e + 1))
    if s < 1e-4:  # where the terms cancel and the limit is as good
        return local_contraction(t, epsilon=epsilon, form="sharp", directions=1)
    return max(((1 + s) * a - (e - s) * b) / (e + 1), (e * b - a) / (e + 1), s * a / (e + 2))


def _distinguishable(t: float, epsilon: float, n: int, form: str) -> float:
    """A bound on the total variation distance of the reports of n people: Pinsker's, or Bretagnolle and Huber's."""
    divergence = n * local_contraction(t, epsilon=epsilon, form=form, directions=1)
    return min(math.sqrt(divergence / 2), math.sqrt(-math.expm1(-divergence)))


def local_le_cam(
    loss: float, total_variation: float, *, epsilon: float, n: SupportsIndex, form: str = "exact"
) -> float:
    """Le Cam's two-point bound under local privacy, interactive or not.

    Parameters
    ----------
    loss : float
        What an estimate that points to the wrong one of two distributions loses at least: Phi(delta), for parameters 2
        delta apart. At least 0.
    total_variation : float
        Distance of the two distributions, in [0, 1].
    epsilon : float
        Positive.
    n : int
        People, at least 1.
    form : {"exact", "sharp", "published"}
        As for `local_contraction`.

    Returns
    -------
    float
        Every estimator has at least this expected loss, for one of the two.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    Proposition 1: ``loss (1 - TV) / 2``, TV the distance of all reports: at most ``sqrt(n J / 2)`` and at most
    ``sqrt(1 - exp(-n J))``, J the contraction in one direction.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Proposition 1 and inequality (8).

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_le_cam(1.0, 0.01, epsilon=1.0, n=1000), 3)
    0.412
    """
    loss, n = _checks.nonnegative("loss", loss), _checks.whole("n", n, least=1)
    return loss * (1 - _distinguishable(_checks.fraction("total_variation", total_variation), epsilon, n, form)) / 2


def local_fano(
    loss: float, hypotheses: SupportsIndex, correlation: float, *, epsilon: float, n: SupportsIndex
) -> float:
    """Fano's bound under local privacy, for people who answer all at once: not for interactive mechanisms.

    Parameters
    ----------
    loss : float
        What an estimate that points to a wrong one of the hypotheses loses at least; at least 0.
    hypotheses : int
        How many distributions P_v there are, at least 2.
    correlation : float
        ``sup over |g| <= 1 of the mean over v of (P_v g - P g)^2``, P their mean; at most 1.
    epsilon : float
        Positive.
    n : int
        People, at least 1.

    Returns
    -------
    float
        Every estimator has at least this expected loss, on average over the hypotheses; 0 where the bound is vacuous.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    Proposition 2: ``loss (1 - (I + log 2) / log(hypotheses))`` with the information I at most ``n (E - 1)^2 correlation
    / 4`` and ``n epsilon``. The constant 1/4 is not the paper's: a report's column q has values in [s, E s], so ``q = s
    (E + 1) / 2 + s (E - 1) / 2 g`` with g in [-1, 1], its probability is at least s, and the information is at most the
    mean chi-square divergence from P; the s sum to at most 1.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Proposition 2, Theorem 2.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_fano(1.0, 1024, 1e-4, epsilon=0.5, n=10_000), 3)
    0.885
    """
    loss, number = _checks.nonnegative("loss", loss), _checks.whole("hypotheses", hypotheses, least=2)
    correlation, n = _checks.fraction("correlation", correlation), _checks.whole("n", n, least=1)
    epsilon = _checks.positive_down("epsilon", epsilon)
    information = n * min(_squared(epsilon) * correlation / 4, epsilon)
    return loss * max(0.0, 1 - (information + math.log(2)) / math.log(number))


def local_assouad(
    loss: float, dimension: SupportsIndex, correlation: float, *, epsilon: float, n: SupportsIndex
) -> float:
    """Assouad's bound under local privacy, interactive or not.

    Parameters
    ----------
    loss : float
        delta, where an estimate loses at least 2 delta for each coordinate of a corner of the cube that it gets wrong.
    dimension : int
        d of the cube {-1, 1}^d whose corners v index the distributions P_v; at least 1.
    correlation : float
        ``max over v of sup over |g| <= 1 of sum_j (P_v g - P_(v, j flipped) g)^2``.
    epsilon : float
        Positive.
    n : int
        People, at least 1.

    Returns
    -------
    float
        Every estimator has at least this expected loss, on average over the corners; 0 where the bound is vacuous.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    Proposition 3: ``d delta (1 - sqrt(n (E - 1)^2 correlation / (8 d)))``. Derived here: the divergence of the reports
    of v from those of its neighbour is a sum over people, each given the reports before, whose law is the same for all
    neighbours; the divergence of one report is at most ``(E - 1)^2 / 4 (P_v g - P_v' g)^2`` as in `local_fano`, so the
    sum over j is at most ``n (E - 1)^2 correlation / 4``; Pinsker and Cauchy-Schwarz do the rest.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Proposition 3, Theorem 3.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_assouad(1.0, 10, 1e-3, epsilon=1.0, n=10_000), 3)
    3.925
    """
    loss, d = _checks.nonnegative("loss", loss), _checks.whole("dimension", dimension, least=1)
    correlation, n = _checks.nonnegative("correlation", correlation), _checks.whole("n", n, least=1)
    squared = _squared(_checks.positive_down("epsilon", epsilon))
    return d * loss * max(0.0, 1 - math.sqrt(n * squared * correlation / (8 * d)))


def local_testing_error(*, epsilon: float) -> float:
    """The error of telling which of two numbers a person has, equally likely beforehand, from one report.

    Returns
    -------
    float
        ``1 / (1 + exp(epsilon))``: no test and no mechanism is better, randomised response is as good.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_testing_error(epsilon=1.0), 4)
    0.2689
    """
    e = math.exp(-_checks.positive_down("epsilon", epsilon))
    return e / (1 + e)


def local_effective_sample_size(n: float, *, epsilon: float) -> float:
    """How many true answers are worth as much as n private ones, where each answers a fair question with yes or no.

    Parameters
    ----------
    n : float
        People, positive.
    epsilon : float
        Positive.

    Returns
    -------
    float
        ``n tanh(epsilon / 2)^2``, about ``n epsilon^2 / 4`` for a small epsilon: the ratio of the variances of a median
        by `dpfast.local.median` and of the sample median, and that of a proportion near 1/2. (The paper's lower bounds
        speak of an order n epsilon^2, and in d dimensions n epsilon^2 / d.)

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_effective_sample_size(10_000, epsilon=1.0))
    2136
    """
    return _checks.positive("n", n) * math.tanh(_checks.positive_down("epsilon", epsilon) / 2) ** 2


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
    """Where to clip numbers of which only ``E|X|**moment <= scale**moment`` is known, for their mean.

    Parameters
    ----------
    n : int
        People, at least 1.
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
        T, in data units: numbers are clipped to [-T, T].

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    "optimal" minimises the leading terms ``A T^2 / n + b^2 T^(2 - 2k)`` of `local_mean_upper_bound` (scale 1)::

        T = ((k - 1) b^2 n / A)^(1 / 2k),    A = c^2 (two-point) or 8 / epsilon^2 (Laplace),    b = (k-1)^(k-1) / k^k

    "paper" is ``(n epsilon^2)^(1 / 2k)``, equation (10): the same order. Clipping changes the mean by at most b T^(1 -
    k): the supremum of (x - T)+ / x^k.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, equation (10); mechanisms-b 1.4 of the specification.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_truncation(20_000, epsilon=1.0, moment=2), 4)
    4.0421
    """
    n, k = _checks.whole("n", n, least=1), _moment(moment)
    epsilon, scale = _checks.positive_down("epsilon", epsilon), _checks.positive("scale", scale)
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
    """Mean squared error that `dpfast.local.mean` does not exceed, for any distribution with a k-th moment.

    Parameters
    ----------
    n, epsilon, moment, scale, method, truncation
        As for `local_truncation`, whose T it uses.

    Returns
    -------
    float
        In squared data units.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    Corollary 1, upper bound, with explicit constants; for scale 1::

        two-point: c^2 T^2 / n + b^2 T^(2 - 2k)        Laplace: (V + 8 T^2 / epsilon^2) / n + b^2 T^(2 - 2k)

    V = min(1, T^2) for k >= 2, else T^2. Infinite k: no bias. Of order ``(n epsilon^2)^(-(k - 1) / k)``.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 1; mechanisms-b 1.4 of the specification.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_mean_upper_bound(20_000, epsilon=1.0, moment=2), 5)
    0.00765
    """
    t = local_truncation(n, epsilon=epsilon, moment=moment, scale=scale, method=method, truncation=truncation)
    n, k, scale = _checks.whole("n", n), _moment(moment), _checks.positive("scale", scale)
    t /= scale
    variance = _noise(epsilon, method) * t * t
    if method == "laplace":
        variance += min(1.0, t * t) if k >= 2 else t * t
    bias = 0.0 if k == math.inf else math.exp(_log_bias(k) + (1 - k) * math.log(t))
    return float(scale**2 * (variance / n + bias**2))


def local_mean_lower_bound(
    n: SupportsIndex, *, epsilon: float, moment: float, scale: float = 1.0, form: str = "exact"
) -> float:
    """Mean squared error that no private estimator of a mean with a k-th moment can avoid.

    Parameters
    ----------
    n, epsilon, moment, scale
        As for `local_mean_upper_bound`.
    form : {"exact", "sharp", "published"}
        As for `local_contraction`. "published" moreover uses the generic `local_le_cam`, half of what the squared error
        allows.

    Returns
    -------
    float
        In squared data units: every estimator, interactive or not, has at least this for some distribution.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    Corollary 1, lower bound: of the two distributions with mass delta at +-delta^(-1 / k), else 0, the means are 2
    delta^(1 - 1 / k) apart and their distance is delta. As (x - m)^2 + (x + m)^2 >= 2 m^2, the error is at least ``m^2
    (1 - TV)``, TV as in `local_le_cam`; delta is chosen by search.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 1, appendix B.1.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_mean_lower_bound(1000, epsilon=1.0, moment=2, form="published"), 5)
    0.0023
    """
    n, k, scale = _checks.whole("n", n, least=1), _moment(moment), _checks.positive("scale", scale)
    power = 2 - 2 / k
    half = 0.5 if form == "published" else 1.0
    return scale**2 * _largest(lambda delta: half * delta**power * (1 - _distinguishable(delta, epsilon, n, form)))


def local_mean_rate(n: SupportsIndex, *, epsilon: float, moment: float) -> float:
    """The order of the mean squared error of a mean with a k-th moment: ``min(1, (n epsilon^2)^(-(k - 1) / k))``.

    Parameters
    ----------
    n : int
        People.
    epsilon : float
        In (0, 1], for which the order is proved.
    moment : float
        k, above 1; may be infinite.

    Notes
    -----
    Corollary 1, scale 1, up to constants; with constants: `local_mean_lower_bound`, `local_mean_upper_bound`.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 1.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_mean_rate(100_000, epsilon=0.5, moment=2), 5)
    0.00632
    """
    return min(1.0, float(_information(n, epsilon) ** (1 / _moment(moment) - 1)))


# ---- Corollary 2: medians ----


def local_median_upper_bound(n: SupportsIndex, *, epsilon: float, width: float) -> float:
    """Excess ``E|X - estimate| - E|X - median|`` that private gradient descent does not exceed, on any distribution.

    Parameters
    ----------
    n : int
        People, at least 1.
    epsilon : float
        Positive.
    width : float
        D of the public bounds, in data units; positive.

    Returns
    -------
    float
        ``min(D / 2, sqrt(2) D c / sqrt(n))``: of ``dpfast.local.median(..., steps="minimax")``, or of the middle of the
        bounds where that is better.

    Notes
    -----
    Corollary 2, upper bound: the regret of gradient descent with steps D / (sqrt(2) c sqrt(i)), whose c-fold gradients
    are bounded by c.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 2, section 3.2.2.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_median_upper_bound(10_000, epsilon=0.5, width=1.5), 4)
    0.0866
    """
    n, width = _checks.whole("n", n, least=1), _checks.positive("width", width)
    c = 1 / math.tanh(_checks.positive_down("epsilon", epsilon) / 2)
    return min(width / 2, math.sqrt(2 / n) * width * c)


def local_median_lower_bound(n: SupportsIndex, *, epsilon: float, width: float, form: str = "exact") -> float:
    """Excess ``E|X - estimate| - E|X - median|`` that no private estimator can avoid.

    Parameters
    ----------
    n, epsilon, width
        As for `local_median_upper_bound`.
    form : {"exact", "sharp", "published"}
        As for `local_contraction`.

    Returns
    -------
    float
        Every estimator, interactive or not, has at least this for some distribution on the bounds.

    Notes
    -----
    Corollary 2, lower bound: masses (1 + delta) / 2 and (1 - delta) / 2 on the two ends or the reverse, whose distance
    is delta. Whatever the estimate, its two excesses add up to D delta, so their mean is at least ``(D / 2) delta (1 -
    TV)``, TV as in `local_le_cam`; delta is chosen by search.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 2, appendix B.2.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_median_lower_bound(10_000, epsilon=0.5, width=1.5), 5)
    0.00743
    """
    n, width = _checks.whole("n", n, least=1), _checks.positive("width", width)
    return width / 2 * _largest(lambda delta: delta * (1 - _distinguishable(delta, epsilon, n, form)))


def local_median_rate(n: SupportsIndex, *, epsilon: float, width: float) -> float:
    """The order of the excess of a median: ``D min(1, (n epsilon^2)^(-1 / 2))``.

    Parameters
    ----------
    n, width
        As for `local_median_upper_bound`.
    epsilon : float
        In (0, 1], for which the order is proved.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 2.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.theory.local_median_rate(10_000, epsilon=0.5, width=2.0)
    0.04
    """
    return _checks.positive("width", width) * min(1.0, 1 / math.sqrt(_information(n, epsilon)))


# ---- Corollaries 4 to 7: orders ----


def local_ball_mean_rate(n: SupportsIndex, dimension: SupportsIndex, *, epsilon: float, radius: float = 1.0) -> float:
    """The order of the mean squared error of a mean of vectors of the Euclidean ball.

    Parameters
    ----------
    n, dimension : int
        People; d, at least 1.
    epsilon : float
        Positive, of any size.
    radius : float
        r, positive, in data units.

    Returns
    -------
    float
        ``r^2 min(1, max(d / (n min(epsilon, epsilon^2)), 1 / n))``, up to constants.

    Notes
    -----
    Corollary 4 in its later, sharp form: the paper's lower bound leaves a gap between epsilon = 1 and log d.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 4; Bhowmick et al. 2018, "Protection against reconstruction".

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.theory.local_ball_mean_rate(10_000, 10, epsilon=0.5)
    0.004
    """
    n, d = _checks.whole("n", n, least=1), _checks.whole("dimension", dimension, least=1)
    epsilon, radius = _checks.positive_down("epsilon", epsilon), _checks.positive("radius", radius)
    return radius**2 * min(1.0, max(d / n / min(epsilon, epsilon**2), 1 / n))


def local_sparse_mean_rate(n: SupportsIndex, dimension: SupportsIndex, *, epsilon: float, radius: float = 1.0) -> float:
    """The order of the squared error of a mean with one nonzero coordinate of d, each vector in [-r, r]^d.

    For people who answer all at once: ``r^2 min(1, d log(2 d) / (n epsilon^2))``, epsilon in (0, 1]. The dimension does
    not shrink to a logarithm, as it does without privacy. Parameters as for `local_ball_mean_rate`.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 5.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_sparse_mean_rate(100_000, 10, epsilon=0.5), 5)
    0.0012
    """
    d, radius = _checks.whole("dimension", dimension, least=1), _checks.positive("radius", radius)
    return radius**2 * min(1.0, d * math.log(2 * d) / _information(n, epsilon))


def local_sparse_threshold(
    n: SupportsIndex,
    dimension: SupportsIndex,
    *,
    epsilon: float,
    radius: float = 1.0,
    confidence: float = 0.95,
    method: str = "auto",
) -> float:
    """How far any of the d coordinates of a mean of reports is from the mean, at most, with the given probability.

    Parameters
    ----------
    n, dimension : int
        People; d; at least 1.
    epsilon : float
        At least 2**-40; rounded down to a double.
    radius : float
        r, positive: records are in [-r, r]^d.
    confidence : float
        In (0, 1), for all coordinates together.
    method : {"auto", "majority", "subset"}
        Of `dpfast.local.Hypercube`; "auto" is the one of the smaller threshold.

    Returns
    -------
    float
        lambda, in data units: of `dpfast.local.sparse_mean`.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    The smaller of two proved bounds, with L = log(2 d / (1 - confidence)), M the scale of a report and k the number of
    its signs: Hoeffding's ``M sqrt(2 L / n)``, and Bernstein's for moments that are not central::

        sqrt(2 M^2 (k / d) L / n) + M L / (3 n)

    as ``E Z_j^2 = M^2 k / d`` and ``|Z_j|^q <= M^(q - 2) Z_j^2 <= q! / 2 (M / 3)^(q - 2) Z_j^2`` for q >= 3
    (docs/proofs/sparse-mean.md).

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 5; Boucheron, Lugosi and Massart 2013, "Concentration inequalities",
    Theorem 2.10.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_sparse_threshold(100_000, 100, epsilon=1.0), 4)
    0.2847
    """
    from dpfast.local.hypercube import Hypercube  # a module of a package that stands on this one

    n, confidence = _checks.whole("n", n, least=1), _checks.between("confidence", confidence, 0, 1)
    _checks.choice("method", method, ("auto", "majority", "subset"))
    d = _checks.whole("dimension", dimension, least=1)
    risk = math.log(2 * d / (1 - confidence))
    thresholds = []
    for name in ("majority", "subset") if method == "auto" else (method,):
        reports = Hypercube(d, epsilon, radius=radius, method=name)
        hoeffding = reports.scale * math.sqrt(2 * risk / n)
        bernstein = hoeffding * math.sqrt(reports.k / d) + reports.scale * risk / (3 * n)
        thresholds.append(min(hoeffding, bernstein))
    return min(thresholds)


def local_sparse_mean_bound(
    n: SupportsIndex,
    dimension: SupportsIndex,
    sparsity: SupportsIndex,
    *,
    epsilon: float,
    radius: float = 1.0,
    confidence: float = 0.95,
    method: str = "auto",
) -> float:
    """Squared error that `dpfast.local.sparse_mean` does not exceed, with the given probability.

    Parameters
    ----------
    n, dimension, epsilon, radius, confidence, method
        As for `local_sparse_threshold`.
    sparsity : int
        s, the number of coordinates of the mean that are not 0; at least 0, at most d.

    Returns
    -------
    float
        ``4 s lambda^2``, in squared data units: each coordinate of the support is off by at most 2 lambda, and all
        others are 0, exactly.

    Raises
    ------
    ValueError
        A parameter out of range.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 5, with its constants.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_sparse_mean_bound(1_000_000, 100, 2, epsilon=1.0), 4)
    0.063
    """
    s, d = _checks.whole("sparsity", sparsity), _checks.whole("dimension", dimension, least=1)
    if s > d:
        raise ValueError(f"sparsity must be at most dimension = {d}, not {s}")
    threshold = local_sparse_threshold(n, d, epsilon=epsilon, radius=radius, confidence=confidence, method=method)
    return 4 * s * threshold**2


def local_logistic_rate(n: SupportsIndex, dimension: SupportsIndex, *, epsilon: float) -> float:
    """The order of the squared error of the coefficients of a logistic regression on {-1, 1}^d.

    ``min(d, d^2 / (n epsilon^2))``, epsilon in (0, 1], up to constants. Parameters as for `local_ball_mean_rate`.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 6.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.theory.local_logistic_rate(100_000, 10, epsilon=0.5)
    0.004
    """
    d = _checks.whole("dimension", dimension, least=1)
    return min(float(d), d * d / _information(n, epsilon))


def local_density_rate(n: SupportsIndex, *, epsilon: float, smoothness: float) -> float:
    """The order of the integrated squared error of a density on [0, 1] with the given number of derivatives.

    Parameters
    ----------
    n : int
        People.
    epsilon : float
        In (0, 1], for which the order is proved.
    smoothness : float
        beta, above 1/2.

    Returns
    -------
    float
        ``min(1, (n epsilon^2)^(-2 beta / (2 beta + 2)))``, up to constants; without privacy n^(-2 beta / (2 beta + 1)).

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 7.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_density_rate(100_000, epsilon=1.0, smoothness=2), 6)
    0.000464
    """
    beta = _checks.between("smoothness", smoothness, 0.5, math.inf)
    return min(1.0, float(_information(n, epsilon) ** (-beta / (beta + 1))))


# ---- shared ----


def _squared(epsilon: float) -> float:
    """(E - 1)^2, infinite where it is beyond the doubles."""
    return math.expm1(epsilon) ** 2 if epsilon < 350 else math.inf


def _information(n: SupportsIndex, epsilon: float) -> float:
    """The product n epsilon^2, for epsilon up to 1."""
    epsilon = _checks.positive_down("epsilon", epsilon)
    if epsilon > 1:
        raise ValueError(f"epsilon must be at most 1 for this order to be proved, not {epsilon!r}")
    return _checks.whole("n", n, least=1) * epsilon**2


def _moment(moment: float) -> float:
    if moment != math.inf and _checks.real("moment", moment) <= 1:
        raise ValueError(f"moment must be above 1, not {moment!r}")
    return float(moment)


def _noise(epsilon: float, method: str) -> float:
    """Variance of one report of a number of [-1, 1], in the worst case, or of its noise."""
    if method == "two-point":
        return 1 / math.tanh(epsilon / 2) ** 2
    if method == "laplace":
        return 8 / epsilon**2
    raise ValueError(f"method must be 'two-point' or 'laplace', not {method!r}")


def _log_bias(k: float) -> float:
    """The logarithm of (k - 1)^(k - 1) / k^k."""
    return (k - 1) * math.log(k - 1) - k * math.log(k)


def _largest(bound: Callable[[float], float]) -> float:
    """The largest value on delta = 1, ..., 2^-48, 32 in an octave: what any delta gives is a bound."""
    return max(bound(2.0 ** (-j / 32)) for j in range(48 * 32))
