"""How much Gaussian noise an (epsilon, delta) guarantee takes."""

from __future__ import annotations

from fractions import Fraction

from dpfast.core import checks
from dpfast.core.divergences import gaussian_mu_down
from dpfast.core.rounding import up


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu such that mu-Gaussian differential privacy implies (epsilon, delta), rounded down.

    Parameters
    ----------
    epsilon : float
        Positive; rounded down to a double.
    delta : float
        In (0, 1); rounded down to a double.

    Returns
    -------
    float
        Positive. ``dpfast.Ledger(mu=gaussian_mu(epsilon, delta))`` is an (epsilon, delta) budget for Gaussian releases.

    Notes
    -----
    The solution of ``Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu) = delta``, by bisection of
    doubles, each compared in ball arithmetic; for an epsilon above 2**20 that of 2**20
    (https://dpfast.readthedocs.io/en/latest/proofs/concentration.html). Cost: some milliseconds, once for each epsilon
    and delta.

    References
    ----------
    Balle and Wang 2018, "Improving the Gaussian mechanism for differential privacy"; Dong, Roth and Su 2022, "Gaussian
    differential privacy", corollary 2.13.

    Examples
    --------
    >>> from dpfast.theory import gaussian_mu
    >>> round(gaussian_mu(1.0, 1e-6), 6)
    0.236704
    """
    epsilon, delta = checks.positive_down("epsilon", epsilon), checks.delta_down(delta)
    if not delta:
        raise ValueError("delta must be positive for Gaussian noise, not 0.0")
    return gaussian_mu_down(epsilon, delta)


def gaussian_scale(epsilon: float, delta: float) -> float:
    """Return the least standard deviation of Gaussian noise that is (epsilon, delta)-private for an l2 sensitivity of
    1.

    Rounded up; proportional to the sensitivity. Parameters, errors and references as `gaussian_mu`, of which it is the
    inverse.

    Examples
    --------
    >>> from dpfast.theory import gaussian_scale
    >>> round(gaussian_scale(1.0, 1e-6), 6)
    4.224679
    """
    return up(1 / Fraction(gaussian_mu(epsilon, delta)))
