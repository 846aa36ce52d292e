"""Random scaling: confidence intervals for averages of stochastic gradient descent, from the path of the averages.

Partial sums of the path behave like a Brownian motion, whose unknown scale divides out: the average is compared with
the spread of its own partial averages around it, whatever the noise, its correlation and the curvature are.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.quadrature import gauss_legendre

# Nodes of the integral; twice as many change no critical value of 2 to 1000 parts by more than 1e-9 of itself.
_NODES = 400
_MOST = 1e4  # a critical value of two parts at a confidence of 0.9999


def half_widths(totals: NDArray[np.float64], counts: NDArray[np.int64], confidence: float) -> NDArray[np.float64]:
    """Return half-widths of confidence intervals for the limits of averages, each coordinate by itself.

    Parameters
    ----------
    totals : ndarray of shape (parts, ...)
        The sums of the path over its first ``counts[k]`` points.
    counts : ndarray of shape (parts,)
        Increasing, the last one the number n of all points; at least two.
    confidence : float
        In (0, 1).

    Notes
    -----
    With r = counts / n, S_k the sums and m = S_n / n, ``sqrt(n) (m - limit) / sqrt(V)`` tends to ``W(1) /
    sqrt(sum_k (r_k - r_(k-1)) B(r_k)^2)`` for ``V = sum_k (r_k - r_(k-1)) (S_k - r_k S_n)^2 / n``, W a Brownian motion
    and B its bridge, independent of W(1): `critical_value`. For many parts it is Lee et al.'s statistic.

    References
    ----------
    Lee, Liao, Seo and Shin 2022, "Fast and robust online inference with stochastic gradient descent via random
    scaling".
    """
    confidence = checks.between("confidence", confidence, 0, 1)
    n = int(counts[-1])
    ends = counts / n
    weights = np.diff(ends, prepend=0.0)
    apart = totals - ends.reshape(-1, *[1] * (totals.ndim - 1)) * totals[-1]
    spread = np.tensordot(weights, np.square(apart), 1) / n
    return np.asarray(critical_value(confidence, tuple(ends.tolist())) * np.sqrt(spread / n))


@lru_cache(maxsize=64)
def critical_value(confidence: float, ends: tuple[float, ...]) -> float:
    """Return the q for which |W(1)| exceeds q sqrt(sum_k (r_k - r_(k-1)) B(r_k)^2) with probability 1 - confidence.

    The sum is one of independent squares of normals, weighted by the eigenvalues of its covariance; with Craig's
    ``P(|N| > x) = 2 / pi * integral over (0, pi / 2) of exp(-x^2 / (2 sin^2))``, the probability is the integral of
    ``prod_j (1 + q^2 eigenvalue_j / sin^2)^(-1/2)``. 6.747 for many equal parts and 0.95.
    """
    r = np.array(ends)
    roots = np.sqrt(np.diff(r, prepend=0.0))
    covariance = (np.minimum.outer(r, r) - np.multiply.outer(r, r)) * np.multiply.outer(roots, roots)
    eigenvalues = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
    nodes, weights = gauss_legendre(_NODES)
    squares = np.sin(math.pi / 4 * (1 + nodes)) ** 2

    def beyond(logarithm: float) -> float:
        q = math.exp(logarithm)
        logs = np.log1p(q * q * eigenvalues[:, None] / squares).sum(axis=0)
        return float(weights @ np.exp(-logs / 2)) / 2 - (1 - confidence)

    return math.exp(scipy.optimize.brentq(beyond, math.log(1e-6), math.log(_MOST), xtol=1e-12))
