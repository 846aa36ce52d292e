"""Chaudhuri and Hsu (2012), section 5: private M-estimators.

Notation: epsilon is the paper's alpha, Gamma and GES are the gross-error sensitivity, R is the width of the range, eta
the failure probability of one step. `confidence` is the probability of the whole statement: eta = (1 - confidence) /
(number of steps that can fail).
"""

from __future__ import annotations

import math

from dpfast.core import checks


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
    """Return the number of records for which the exponential mechanism is within `error` of an M-estimator.

    Parameters
    ----------
    error : float
        Error that the mechanism may add to that of the M-estimator itself; positive, below e2 (Notes).
    epsilon : float
        Positive.
    confidence : float
        In (0, 1).
    bound : float
        K: psi takes values in [-K, K] and does not decrease in the parameter (Condition 3).
    derivative : float
        Psi'(F, T(F)), not 0; its absolute value is used.
    distribution_radius, parameter_radius, distribution_lipschitz, parameter_lipschitz : float
        r1, r2, Lambda1, Lambda2, positive (Condition 4): Psi' changes by at most Lambda1 d over a Kolmogorov distance
        d <= r1, and by at most Lambda2 t over a distance t <= r2 of the parameter.
    plug_in_sample_size : int
        Least n for which the M-estimator itself is within e2 of T(F) with probability 1 - eta.
    width : float, optional
        Uniform prior on an interval of this length, which contains the range of the estimator.
    location : float, optional
        Standard Cauchy prior, with |T(F)| at most this. Give exactly one of `width` and `location`.
    corrected : bool
        True: the mechanism is epsilon-private, with density proportional to ``exp(-n epsilon |Psi| / (4 K))``. False:
        the published one, with 2 in place of 4, which is 2 epsilon-private.

    Returns
    -------
    int
        For this many records or more, ``|A(F_n) - T(F)| <= |T(F_n) - T(F)| + error`` with probability `confidence`.

    Raises
    ------
    TypeError
        If neither or both of `width` and `location` are given.
    ValueError
        If a parameter is out of range, including `error` if it is not below e2.

    Notes
    -----
    Theorem 4. With eta = (1 - confidence) / 3, e1 = min(r1, |Psi'| / (6 Lambda1)), e2 = min(r2 / 2, |Psi'| / (6
    Lambda2)), Gamma = K / |Psi'|, and a = epsilon / 2 if corrected, else epsilon::

        n >= max(ln(2 / eta) / (2 e1^2), plug_in_sample_size, 8 Gamma L / (a error))
        L = ln(6 R / (error eta))                                                             (uniform prior)
        L = ln((pi / eta) ((2 (|T(F)| + e2)^2 + 1) / (error / 3) + error / 6))                 (Cauchy prior)

    Proposition 3 of the paper is off by a factor of 2: one record changes n |Psi| by up to 2 K, not K. The median (psi
    the sign) is not covered: Psi of a sample has no derivative.

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
    epsilon = checks.positive_down("epsilon", epsilon)
    eta = (1 - checks.between("confidence", confidence, 0, 1)) / 3
    slope = checks.positive("abs(derivative)", abs(checks.real("derivative", derivative)))
    bound = checks.positive("bound", bound)
    distribution_radius = checks.positive("distribution_radius", distribution_radius)
    parameter_radius = checks.positive("parameter_radius", parameter_radius)
    distribution_lipschitz = checks.positive("distribution_lipschitz", distribution_lipschitz)
    parameter_lipschitz = checks.positive("parameter_lipschitz", parameter_lipschitz)
    plug_in = checks.whole("plug_in_sample_size", plug_in_sample_size, least=1)
    e1 = min(distribution_radius, slope / (6 * distribution_lipschitz))
    e2 = min(parameter_radius / 2, slope / (6 * parameter_lipschitz))
    error = checks.between("error", error, 0, e2)
    if width is not None and location is None:
        inverse_mass = 6 * checks.positive("width", width) / error
    elif location is not None and width is None:
        farthest = abs(checks.real("location", location)) + e2
        inverse_mass = math.pi * ((2 * farthest**2 + 1) / (error / 3) + error / 6)
    else:
        raise TypeError("give either width (uniform prior) or location (Cauchy prior)")
    exponent = epsilon / 2 if corrected else epsilon
    mechanism = 8 * bound / slope * math.log(inverse_mass / eta) / (exponent * error)
    return math.ceil(max(math.log(2 / eta) / (2 * e1**2), plug_in, mechanism))
