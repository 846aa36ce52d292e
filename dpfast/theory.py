"""What the theory promises: lower and upper bounds and sample sizes, one function per theorem.

Every bound takes public parameters and assumptions about the distribution, never data, and costs no privacy. Only
`influence_function` and `gross_error_sensitivity` look at a sample; what they return is as private as the sample.

Letters of Chaudhuri and Hsu (2012) in the equations: epsilon is their alpha, Gamma and GES the gross-error sensitivity,
R the width of the range, eta the failure probability of one step. `confidence` is the probability of the whole
statement: eta = (1 - confidence) / (number of steps that can fail).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, ndtr

from dpfast import _checks
from dpfast.statistics import Median, Quantile, Statistic

WeightedStatistic = Callable[[NDArray[np.float64], NDArray[np.float64]], float]

_LARGEST_N = 2**62


def influence_function(statistic: Statistic | WeightedStatistic, x: ArrayLike, at: float, rho: float) -> float:
    """Change of a statistic when a share `rho` of the sample's mass moves to the point `at`, divided by `rho`.

    PRIVATE: a function of x, for theory and diagnosis, not a release.

    Parameters
    ----------
    statistic : Quantile, Median or callable
        A quantile is the inverse distribution function ``inf{t : F(t) >= q}``, computed exactly. A callable is given
        ``(values, weights)``, float64 arrays of equal length, unsorted, the weights nonnegative of sum 1, and returns a
        number; it must treat a value of weight 0 as absent.
    x : array_like of shape (n,)
        The sample, finite; F is its empirical distribution.
    at : float
        Where the mass goes; infinite points are allowed for quantiles.
    rho : float or Fraction
        In (0, 1]. A float stands for the number that it prints as; give a Fraction where ties matter (1/3).

    Returns
    -------
    float
        Signed; infinite if a quantile moves to an infinite `at`.

    Raises
    ------
    TypeError
        A statistic that is neither a quantile nor a callable.
    ValueError
        `rho` out of range, `at` NaN, x empty or not one-dimensional.

    Notes
    -----
    Definition 3::

        IF_rho(at, T, F) = (T((1 - rho) F + rho delta_at) - T(F)) / rho

    For a linear T this is a(at) - T(F) at every scale. Cost: O(n log n) for a quantile.

    References
    ----------
    Chaudhuri and Hsu 2012, section 2; Huber 1981, "Robust Statistics".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> x = np.arange(11.0)
    >>> dpf.theory.influence_function(dpf.statistics.Median(), x, at=1e6, rho=0.1)
    10.0
    >>> mean = lambda values, weights: values @ weights
    >>> round(dpf.theory.influence_function(mean, x, at=25.0, rho=0.1), 9)
    20.0
    """
    share = _share(rho)
    place = float(at)
    if math.isnan(place):
        raise ValueError(f"at must be a number, not {at!r}")
    values = _sample(x)
    if isinstance(statistic, Statistic):
        level, data = _level(statistic), np.sort(values)
        return (_mixture_quantile(data, place, share, level) - _sorted_quantile(data, level)) / float(share)
    if not callable(statistic):
        raise TypeError(f"statistic must be a quantile or a callable, not {type(statistic).__name__}")
    place = _checks.real("at", at)
    n = values.size
    before = float(statistic(values.copy(), np.full(n, 1 / n)))
    weights = np.append(np.full(n, float((1 - share) / n)), float(share))
    return (float(statistic(np.append(values, place), weights)) - before) / float(share)


def gross_error_sensitivity(
    statistic: Statistic | WeightedStatistic,
    x: ArrayLike,
    rho: float,
    *,
    bounds: tuple[float, float] | None = None,
    points: ArrayLike | None = None,
) -> float:
    """Largest absolute influence, at scale `rho`, of any point on a statistic of a sample.

    PRIVATE: a function of x, for theory and diagnosis, not a release.

    Parameters
    ----------
    statistic, x, rho
        As for `influence_function`.
    bounds : tuple of two floats, optional
        Ends of the domain of the records. By default the whole line, for quantiles only; there the result is infinite
        once `rho` is large enough to carry the quantile away.
    points : array_like, optional
        Further places to try, for a callable that is not monotone.

    Returns
    -------
    float
        Exact for quantiles and for every statistic that does not decrease when a record grows: the ends of the domain
        are then the worst places. For another callable, the largest over the ends and `points`, a lower bound.

    Raises
    ------
    TypeError
        A callable without `bounds`.
    ValueError
        As `influence_function`, or `bounds` in the wrong order.

    Notes
    -----
    ``GES_rho(T, F) = sup_at |IF_rho(at, T, F)|``. Cost: two or more evaluations of the statistic.

    References
    ----------
    Chaudhuri and Hsu 2012, section 2.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> x = np.arange(11.0)
    >>> dpf.theory.gross_error_sensitivity(dpf.statistics.Median(), x, rho=0.1)
    10.0
    >>> dpf.theory.gross_error_sensitivity(dpf.statistics.Median(), x, rho=0.6)
    inf
    """
    if bounds is not None:
        lower, upper = _checks.pair("bounds", bounds)
        if lower > upper:
            raise ValueError(f"bounds must be in order, not {bounds!r}")
    elif isinstance(statistic, Statistic):
        lower, upper = -math.inf, math.inf
    else:
        raise TypeError("give bounds=(lower, upper), the domain of the records, with a callable")
    places = [lower, upper, *(() if points is None else _checks.vector("points", points).tolist())]
    return max(abs(influence_function(statistic, x, place, rho)) for place in places)


def _share(rho: Any) -> Fraction:
    number = _checks.real("rho", rho)
    share = _rational(rho)
    if not 0 < share <= 1:
        raise ValueError(f"rho must be above 0 and at most 1, not {number!r}")
    return share


def _rational(value: Any) -> Fraction:
    """The rational number that a float prints as; a Fraction or an integer stays itself."""
    return Fraction(repr(float(value))) if isinstance(value, (float, np.floating)) else _checks.exact(value)


def _sample(x: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(_checks.vector("x", x), dtype=np.float64)
    if values.size == 0:
        raise ValueError("x is empty: a statistic needs at least one record")
    return values


def _level(statistic: Statistic) -> Fraction:
    if isinstance(statistic, Median):
        return Fraction(1, 2)
    if isinstance(statistic, Quantile):
        return _rational(statistic.q)
    raise TypeError(f"statistic must be Quantile, Median or a callable, not {type(statistic).__name__}")


def _sorted_quantile(data: NDArray[np.float64], level: Fraction) -> float:
    return float(data[max(1, math.ceil(level * data.size)) - 1])


def _mixture_quantile(data: NDArray[np.float64], place: float, share: Fraction, level: Fraction) -> float:
    """Inverse distribution function of ``(1 - share) F + share delta_place`` at `level`; sorted data.

    As a function of `place` it is `place` clipped to the quantiles of F that mass on the far right and left leads to.
    """
    if share == 1:
        return place
    n = data.size
    without = math.ceil(level * n / (1 - share))  # least i with (1 - share) i / n >= level: mass not yet met
    with_mass = math.ceil((level - share) * n / (1 - share))  # the same where the mass has been met
    highest = float(data[max(1, without) - 1]) if without <= n else math.inf
    lowest = float(data[with_mass - 1]) if with_mass >= 1 else -math.inf
    if level == 0:  # the least point of positive mass
        lowest = -math.inf
    return min(max(place, lowest), highest)


def pure_lower_bound(width: float, *, epsilon: float, n: int) -> float:
    """Error that no epsilon-differentially private estimator can avoid when the target may lie anywhere in a range.

    Parameters
    ----------
    width : float
        Length R of an interval of which every point is the target of some distribution of the family.
    epsilon : float
        Positive.
    n : int
        Records, at least 1.

    Returns
    -------
    float
        Every estimator has an expected absolute error of at least this, for some distribution of the family.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    Theorem 2::

        max_F E|A(F_n) - T(F)| >= R / (4 (2 + exp(epsilon n)))

    Pure differential privacy only: with delta > 0 the range need not matter. Proof: of 2 + exp(epsilon n) disjoint
    intervals, each is hit with probability 1/2 on its own data, hence by group privacy with probability at least
    exp(-epsilon n) / 2 on the data of any other, which is more than there is.

    References
    ----------
    Chaudhuri and Hsu 2012, Theorem 2.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.pure_lower_bound(1e6, epsilon=1.0, n=10), 3)
    11.349
    """
    width = _checks.positive("width", width)
    epsilon, n = _checks.positive_down("epsilon", epsilon), _checks.whole("n", n, least=1)
    return width / 4 * math.exp(-np.logaddexp(math.log(2), epsilon * n))


def lower_bound_scale(*, epsilon: float, n: int) -> Fraction:
    """Scale rho at which Theorem 1 (`lower_bound`) reads the gross-error sensitivity: ``ceil(ln 2 / (2 epsilon)) / n``.

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
        A parameter out of range, or too few records: then rho would exceed 1.

    Notes
    -----
    That n must be so large is not stated in the paper.

    References
    ----------
    Chaudhuri and Hsu 2012, Theorem 1.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.theory.lower_bound_scale(epsilon=0.1, n=1000)
    Fraction(1, 250)
    """
    epsilon = _checks.between("epsilon", epsilon, 0, math.log(2) / 2)
    moved = math.ceil(math.log(2) / (2 * epsilon))
    return Fraction(moved, _checks.whole("n", n, least=moved))


def lower_bound(gross_error_sensitivity: float, *, epsilon: float, delta: float = 0.0, n: int) -> float:
    """Error that no (epsilon, delta)-differentially private estimator can avoid near a distribution.

    Parameters
    ----------
    gross_error_sensitivity : float
        At least 0, of the target T at the distribution F, at scale ``lower_bound_scale(epsilon=epsilon, n=n)``.
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
        A parameter out of range.

    Notes
    -----
    Theorem 1::

        max(E|A(F_n) - T(F)|, E|A(G_n) - T(G)|) >= rho GES_rho(T, F) / 16,    rho = ceil(ln 2 / (2 epsilon)) / n

    for G = (1 - rho) F + rho delta_x, x the point of largest influence. The paper states it for all n; the proof needs
    rho <= 1. It holds for delta up to (1 - exp(-epsilon)) / 16, which is a little more than is accepted here.

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
    influence = _checks.nonnegative("gross_error_sensitivity", gross_error_sensitivity)
    rho = lower_bound_scale(epsilon=epsilon, n=n)
    if _checks.delta_down(delta) >= epsilon / 23:
        raise ValueError(f"delta must be below epsilon / 23 = {epsilon / 23:g}, not {delta!r}")
    return float(rho) * influence / 16


def smooth_sensitivity_bound(
    gross_error_sensitivity: float, *, width: float, beta: float, n: int, confidence: float = 0.95
) -> float:
    """Bound on the smooth sensitivity of a statistic of n independent records.

    Parameters
    ----------
    gross_error_sensitivity : float
        Gamma_n, at least 0: the supremum of the gross-error sensitivity at scale 1/n over *all* distributions of the
        family within Kolmogorov distance ``sqrt(2 ln(2 / eta) / n)`` of F (Condition 2), discrete ones included.
    width : float
        R, length of the range of the statistic (Condition 1).
    beta : float
        At least 0.
    n : int
        At least 2.
    confidence : float
        In (0, 1).

    Returns
    -------
    float
        The smooth sensitivity is at most this with probability at least `confidence`.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    Lemma 1, with eta = 1 - confidence::

        SS_beta(T, F_n) <= max(2 Gamma_n / n, R exp(-beta (sqrt(n ln(2 / eta) / 2) - 1)))

    The paper's proof has ``2 r_n = sqrt(2 ln(1 / eta) / n)``, which should be ``ln(2 / eta)``; the statement is right.
    n = 1 is excluded, as the proof removes a record.

    For the median, Gamma_n is not 1/2, as Example 3 has it: the ball holds distributions whose distribution function is
    flat at 1/2 on an interval of length 4 r, r = sqrt(2 ln(2 / eta) / n), and one record moves the median across it.
    So Gamma_n >= 4 n r, which grows like sqrt(n): 109 at n = 100, 10865 at n = 1e6 (confidence 0.95), Condition 2
    fails, and the smooth sensitivity of the median is of order 1 / (e beta f n), f the density there, not Gamma / n.

    References
    ----------
    Chaudhuri and Hsu 2012, Lemma 1, appendix C.

    Examples
    --------
    The mean of records in [-1/2, 1/2], all other influences being at most 1:

    >>> import dpfast as dpf
    >>> dpf.theory.smooth_sensitivity_bound(1.0, width=1.0, beta=0.5, n=1000)
    0.002
    """
    influence = _checks.nonnegative("gross_error_sensitivity", gross_error_sensitivity)
    width, beta = _checks.positive("width", width), _checks.nonnegative("beta", beta)
    n, eta = _checks.whole("n", n, least=2), 1 - _checks.between("confidence", confidence, 0, 1)
    return max(2 * influence / n, width * math.exp(-beta * (math.sqrt(n * math.log(2 / eta) / 2) - 1)))


def smooth_upper_bound(
    gross_error_sensitivity: float,
    *,
    width: float,
    epsilon: float,
    delta: float,
    n: int,
    confidence: float = 0.95,
) -> float:
    """Error that the published smooth sensitivity estimator adds to that of the statistic itself.

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

    Returns
    -------
    float
        ``|A(F_n) - T(F)| - |T(F_n) - T(F)|`` is at most this with probability at least `confidence`.

    Raises
    ------
    ValueError
        A parameter out of range, or (epsilon, delta) for which the published constants are not certified as private.

    Notes
    -----
    Theorem 3, for ``A = T(F_n) + SS_beta(T, F_n) (2 / epsilon) Z``, Z standard Laplace, beta = epsilon / (2 ln(1 /
    delta)), eta = (1 - confidence) / 2 below 1/4::

        |A(F_n) - T(F)| <= |T(F_n) - T(F)| + (2 ln(1 / eta) / epsilon)
            max(2 Gamma_n / n, R exp(-beta (sqrt(n ln(2 / eta) / 2) - 1)))

    in the unsimplified form: the exponent is not legible in the published statement.

    Proposition 1 says that A is (epsilon, delta)-differentially private for every epsilon; it is not. On neighbours
    whose smooth sensitivities differ by the factor exp(beta), the divergence reaches, with r = 1 / (exp(beta) - 1)::

        (1 - exp(-beta)) exp(-r (epsilon + beta)) cosh(r epsilon / 2)

    which exceeds delta beyond an epsilon* of 6.7 (delta 0.1), 8.5 (1e-2), 9.4 (1e-3), 10.1 (1e-4), 11.2 (1e-6), 12.0
    (1e-8). Beyond it this function refuses: an accuracy without the privacy is of no use. It refuses also where the
    loss with the wider noise, exp(-beta) epsilon / 2 + beta, exceeds epsilon (delta above about 1 / e): not certified.

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
    epsilon = _checks.positive_down("epsilon", epsilon)
    delta = _checks.between("delta", delta, 0, 1)
    eta = (1 - _checks.between("confidence", confidence, 0.5, 1)) / 2
    if not _published_constants_hold(epsilon, delta):
        raise ValueError(f"epsilon = {epsilon:g} is too large for delta = {delta:g}: Proposition 1 fails there")
    beta = epsilon / (2 * math.log(1 / delta))
    sensitivity = smooth_sensitivity_bound(gross_error_sensitivity, width=width, beta=beta, n=n, confidence=1 - eta)
    return 2 * math.log(1 / eta) / epsilon * sensitivity


def _published_constants_hold(epsilon: float, delta: float) -> bool:
    """Whether scale 2 S / epsilon with beta = epsilon / (2 ln(1 / delta)) is (epsilon, delta)-private: equation (L)."""
    beta = epsilon / (2 * math.log(1 / delta))
    if epsilon / 2 * math.exp(-beta) + beta > epsilon:  # the loss where the neighbour's noise is the wider
        return False
    r = 1 / math.expm1(beta) if beta < 700 else 0.0
    log_cosh = float(np.logaddexp(r * epsilon / 2, -r * epsilon / 2)) - math.log(2)
    return math.log(-math.expm1(-beta)) - r * (epsilon + beta) + log_cosh <= math.log(delta)


def m_estimator_sample_size(
    error: float,
    *,
    epsilon: float,
    confidence: float = 0.95,
    bound: float,
    derivative: float,
    distribution_radius: float,
    parameter_radius: float,
    distribution_lipschitz: float,
    parameter_lipschitz: float,
    plug_in_sample_size: int,
    width: float | None = None,
    location: float | None = None,
    corrected: bool = True,
) -> int:
    """Records with which the exponential mechanism comes within `error` of an M-estimator.

    Parameters
    ----------
    error : float
        Positive, below e2 (Notes): what the mechanism may add to the error of the M-estimator itself.
    epsilon : float
        Positive.
    confidence : float
        In (0, 1).
    bound : float
        K: psi takes values in [-K, K] and does not decrease in the parameter (Condition 3).
    derivative : float
        Psi'(F, T(F)), not 0; its absolute value counts.
    distribution_radius, parameter_radius, distribution_lipschitz, parameter_lipschitz : float
        r1, r2, Lambda1, Lambda2, positive (Condition 4): Psi' changes by at most Lambda1 d over a Kolmogorov distance
        d <= r1, and by at most Lambda2 t over a distance t <= r2 of the parameter.
    plug_in_sample_size : int
        Least n with which the M-estimator itself is within e2 of T(F) with probability 1 - eta.
    width : float, optional
        Uniform prior on an interval of this length that holds the range of the estimator.
    location : float, optional
        Standard Cauchy prior, |T(F)| at most this. Exactly one of `width` and `location`.
    corrected : bool
        Whether the mechanism is the one that is epsilon-private, with density proportional to
        ``exp(-n epsilon |Psi| / (4 K))``. False: the published one, with 2 in place of 4, which is 2 epsilon-private.

    Returns
    -------
    int
        From so many records on, ``|A(F_n) - T(F)| <= |T(F_n) - T(F)| + error`` with probability at least `confidence`.

    Raises
    ------
    TypeError
        Neither or both of `width` and `location`.
    ValueError
        A parameter out of range, `error` not below e2 included.

    Notes
    -----
    Theorem 4. With eta = (1 - confidence) / 3, e1 = min(r1, |Psi'| / (6 Lambda1)), e2 = min(r2 / 2, |Psi'| / (6
    Lambda2)), Gamma = K / |Psi'|, and a = epsilon / 2 if corrected, else epsilon::

        n >= max(ln(2 / eta) / (2 e1^2), plug_in_sample_size, 8 Gamma L / (a error))
        L = ln(6 R / (error eta))                                                             (uniform prior)
        L = ln((pi / eta) ((2 (|T(F)| + e2)^2 + 1) / (error / 3) + error / 6))                 (Cauchy prior)

    Proposition 3 of the paper is off by 2: one record changes n |Psi| by as much as 2 K, not K. The median (psi the
    sign) is not covered: its Psi of a sample has no derivative.

    References
    ----------
    Chaudhuri and Hsu 2012, Theorem 4, appendix D.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.theory.m_estimator_sample_size(
    ...     0.1, epsilon=1.0, bound=1.0, derivative=0.5, distribution_radius=1.0, parameter_radius=1.0,
    ...     distribution_lipschitz=0.5, parameter_lipschitz=0.5, plug_in_sample_size=100, width=10.0)
    3358
    """
    epsilon = _checks.positive_down("epsilon", epsilon)
    eta = (1 - _checks.between("confidence", confidence, 0, 1)) / 3
    slope = _checks.positive("abs(derivative)", abs(_checks.real("derivative", derivative)))
    bound = _checks.positive("bound", bound)
    distribution_radius = _checks.positive("distribution_radius", distribution_radius)
    parameter_radius = _checks.positive("parameter_radius", parameter_radius)
    distribution_lipschitz = _checks.positive("distribution_lipschitz", distribution_lipschitz)
    parameter_lipschitz = _checks.positive("parameter_lipschitz", parameter_lipschitz)
    plug_in = _checks.whole("plug_in_sample_size", plug_in_sample_size, least=1)
    e1 = min(distribution_radius, slope / (6 * distribution_lipschitz))
    e2 = min(parameter_radius / 2, slope / (6 * parameter_lipschitz))
    error = _checks.between("error", error, 0, e2)
    if width is not None and location is None:
        inverse_mass = 6 * _checks.positive("width", width) / error
    elif location is not None and width is None:
        farthest = abs(_checks.real("location", location)) + e2
        inverse_mass = math.pi * ((2 * farthest**2 + 1) / (error / 3) + error / 6)
    else:
        raise TypeError("give either width (uniform prior) or location (Cauchy prior)")
    exponent = epsilon / 2 if corrected else epsilon
    mechanism = 8 * bound / slope * math.log(inverse_mass / eta) / (exponent * error)
    return math.ceil(max(math.log(2 / eta) / (2 * e1**2), plug_in, mechanism))


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
        Of a(x) under F: from 0 to the square of `gross_error_sensitivity`.
    epsilon : float
        Positive.
    n : int
        At least 1.
    confidence : float
        In (0, 1).
    corrected : bool
        True: noise of scale S / epsilon, S the sensitivity, which suffices as S is constant. False: the published
        2 S / epsilon, twice as much as needed.

    Returns
    -------
    float
        ``|A(F_n) - T(F)|`` is at most this with probability at least `confidence`.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    Theorem 5 (delta = 0, beta = 0), with eta = (1 - confidence) / 2 and c = 1 if corrected, else 2::

        |A(F_n) - T(F)| <= sqrt(2 variance ln(2 / eta) / n) + (2/3 + 2 c / epsilon) GES ln(2 / eta) / n

    by Bernstein's inequality for the mean and the tail of the Laplace law for the noise, whose sensitivity is at most
    2 GES / n. (The proof of Lemma 4 writes sup |a(x)| / n for that sensitivity, which is sup |a(x) - a(y)| / n.)

    References
    ----------
    Chaudhuri and Hsu 2012, Theorem 5, appendix B.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.linear_upper_bound(1.0, variance=0.1, epsilon=1.0, n=10_000), 6)
    0.01053
    """
    influence = _checks.positive("gross_error_sensitivity", gross_error_sensitivity)
    variance = _checks.nonnegative("variance", variance)
    if variance > influence**2:
        raise ValueError(f"variance must be at most gross_error_sensitivity**2 = {influence**2:g}, not {variance!r}")
    epsilon, n = _checks.positive_down("epsilon", epsilon), _checks.whole("n", n, least=1)
    logarithm = math.log(2 / ((1 - _checks.between("confidence", confidence, 0, 1)) / 2))
    noise = (2 if corrected else 4) / epsilon
    return math.sqrt(2 * variance * logarithm / n) + (2 / 3 + noise) * influence * logarithm / n


def quantile_error(
    n: int, q: float = 0.5, *, density: float, width: float, epsilon: float, confidence: float = 0.95
) -> float:
    """Error to expect of a quantile released by inverse sensitivity, from an assumed density at the target.

    Parameters
    ----------
    n : int
        Records, at least 1.
    q : float
        In (0, 1).
    density : float
        Assumed density f of the records at the q-quantile, per data unit; about constant over the error.
    width : float
        Of the public bounds, in data units.
    epsilon : float
        Positive.
    confidence : float
        In (0, 1).

    Returns
    -------
    float
        The release is about this close to the q-quantile of the distribution with probability `confidence`; at most
        `width`, which says that n is too small.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    A large-sample approximation, not a bound. The sample quantile is off by a normal error of standard deviation
    ``sqrt(q (1 - q) / n) / f``. Between it and a value t away lie N records, about Poisson of mean f n |t|: its weight
    exp(-epsilon N / 2) is on average exp(-|t| / b), so the mechanism adds a Laplace error of scale::

        b = 1 / ((1 - exp(-epsilon / 2)) f n),    about 2 / (epsilon f n) for a small epsilon

    which alone exceeds ``b ln(1 / eta)`` with probability eta. (Averaging the weights is exact as epsilon goes to 0 and
    up to 1.5 times too much for a large epsilon, where the sample's own error rules.) Used is the tail of the sum of
    both errors, plus the probability of a value beyond all records, whose score is about m = n min(q, 1 - q)::

        width exp(-epsilon m / 2) / (4 / (epsilon f n))

    which is where the width of the bounds matters: compare Theorem 2 (`pure_lower_bound`). The grid is
    taken to be finer than the error; thin tails between the target and the bounds are not accounted for.

    References
    ----------
    Asi and Duchi 2020, "Near instance-optimality in differential privacy"; docs/proofs/nested-intervals.md.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.quantile_error(1000, density=0.4, width=40, epsilon=1.0), 3)
    0.079
    """
    n = _checks.whole("n", n, least=1)
    failing = _failure(q, density, width, epsilon)
    allowed = 1 - _checks.between("confidence", confidence, 0, 1)
    low, high = 0.0, float(width)
    if failing(n, high) > allowed:
        return high
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if failing(n, middle) <= allowed else (middle, high)
    return high


def sample_size(
    error: float, q: float = 0.5, *, density: float, width: float, epsilon: float, confidence: float = 0.95
) -> int:
    """Records with which a quantile released by inverse sensitivity comes within `error` of the truth.

    Parameters
    ----------
    error : float
        Positive, in data units.
    q, density, width, epsilon, confidence
        As for `quantile_error`, of which this is the inverse.

    Returns
    -------
    int
        The least n with ``quantile_error(n, ...) <= error``.

    Raises
    ------
    ValueError
        A parameter out of range, `error` not below `width`, or more than 2**62 records.

    Notes
    -----
    For a small epsilon about ``2 ln(1 / (1 - confidence)) / (epsilon f error)`` records, and for a large one the
    ``q (1 - q) (z / (f error))^2`` of the sample quantile, z the two-sided normal quantile; assumptions, derivation and
    references as for `quantile_error`. From public assumptions only, never from data.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.theory.sample_size(0.1, density=0.4, width=40, epsilon=1.0)
    649
    >>> dpf.theory.sample_size(0.1, density=0.4, width=40, epsilon=0.01)
    15254
    """
    failing = _failure(q, density, width, epsilon)
    error = _checks.between("error", error, 0, float(width))
    allowed = 1 - _checks.between("confidence", confidence, 0, 1)
    enough = 1
    while failing(enough, error) > allowed:
        enough *= 2
        if enough > _LARGEST_N:
            raise ValueError(f"error = {error!r} takes more than 2**62 records")
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if failing(middle, error) <= allowed else (middle, enough)
    return enough


def _failure(q: Any, density: Any, width: Any, epsilon: Any) -> Callable[[int, float], float]:
    """Probability, as a function of n and error, that the release is farther off; nonincreasing in both."""
    q = _checks.between("q", q, 0, 1)
    density, width = _checks.positive("density", density), _checks.positive("width", width)
    epsilon = _checks.positive_down("epsilon", epsilon)
    side = min(q, 1 - q)

    def failing(n: int, error: float) -> float:
        if epsilon * n * side < 2:  # below, all values of the range weigh about alike
            return 1.0
        deviation = math.sqrt(q * (1 - q) / n) / density
        scale = 1 / (-math.expm1(-epsilon / 2) * density * n)
        beyond = width * math.exp(-epsilon * n * side / 2) * epsilon * density * n / 4
        return float(min(1.0, _normal_plus_laplace_tail(error, deviation, scale) + beyond))

    return failing


def _normal_plus_laplace_tail(t: float, deviation: float, scale: float) -> float:
    """``P(|deviation Z + scale L| > t)``, Z standard normal and L standard Laplace, without overflow."""
    u, c = t / deviation, deviation / scale
    bell = math.exp(-u * u / 2) / 2
    inner = bell * float(erfcx((c - u) / math.sqrt(2))) if u < c else math.exp(c * (c / 2 - u)) * float(ndtr(u - c))
    outer = bell * float(erfcx((c + u) / math.sqrt(2)))
    return 2 * float(ndtr(-u)) + inner - outer
