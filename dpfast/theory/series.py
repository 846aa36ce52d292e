"""Wasserman and Zhou (2010), orthogonal series: sensitivities, errors, rates; the actual loss of their constants.

Notation: m is the number of terms, gamma the smoothness and C the roughness of the Sobolev ellipsoid
``sum_j j^(2 gamma) beta_j^2 <= C^2``, c0 = sqrt(2) the bound on the basis functions. All is on the unit interval.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks

BASES = ("cosine", "trigonometric")
_POINTS = 2**12


def series_sensitivity(terms: int, *, basis: str = "cosine", norm: int = 1) -> float:
    """Sensitivity of the sums of the basis functions to one record, in the l1 or l2 norm.

    ``S = sup over x, y of the norm of (psi_j(x) - psi_j(y)), j = 1..m``: n times the sensitivity of the coefficients.

    Parameters
    ----------
    terms : int
        m, at least 1.
    basis : {"cosine", "trigonometric"}
        ``c0 cos(pi j x)``, or ``c0 cos(2 pi l x), c0 sin(2 pi l x)`` alternating.
    norm : {1, 2}

    Returns
    -------
    float
        For the trigonometric basis in the l1 norm, an upper bound that is at most 4.6 % too large; else the supremum.

    Notes
    -----
    With u and v half the sum and half the difference of two angles, ``cos j x - cos j y = -2 sin(j u) sin(j v)``. By
    Cauchy-Schwarz the cosine supremum is at u = v, with a record at the end of the interval
    (https://dpfast.readthedocs.io/en/latest/proofs/series.html)::

        cosine, l1           c0 (m - min_t sum_j cos(j t))         about 1.217 c0 (m + 1/2)
        cosine, l2           c0 (max_t sum_j (1 - cos(j t))^2)^(1/2)
        trigonometric, l1 <= 2 c0 max_v (sqrt(2) sum_(l <= m / 2) |sin(l v)| + |sin(L v)| if m is odd)
        trigonometric, l2    2 c0 (max_v sum_(l <= L) sin(l v)^2)^(1/2)

    The published bounds 2 c0 m for l1 (implied) and 2 c0^2 m for l2 (Lemma 13) hold but are loose.

    References
    ----------
    Wasserman and Zhou 2010, Lemma 13.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.series_sensitivity(8), 4), round(dpf.theory.series_sensitivity(8, norm=2), 4)
    (14.6628, 5.7948)
    """
    terms, basis = checks.whole("terms", terms, least=1), _known(basis)
    if norm not in (1, 2):
        raise ValueError(f"norm must be 1 or 2, not {norm!r}")
    return _sensitivity(terms, basis, norm)


@lru_cache(maxsize=4096)
def _sensitivity(terms: int, basis: str, norm: int) -> float:
    change = {
        ("cosine", 1): _cosine_l1,
        ("cosine", 2): _cosine_l2,
        ("trigonometric", 1): _trigonometric_l1,
        ("trigonometric", 2): _trigonometric_l2,
    }[basis, norm]
    largest = float(np.max(change(terms)))
    return math.sqrt(2) * (largest if norm == 1 else math.sqrt(largest))


def _cosine_l1(terms: int) -> NDArray[np.float64]:
    """Evaluate on the first and deepest negative lobe of sum_j cos(j t) = sin((m + 1/2) t) / (2 sin(t / 2)) - 1/2."""
    z = np.linspace(math.pi, min(2 * math.pi, (terms + 0.5) * math.pi), _POINTS)
    return np.asarray(terms + 0.5 - np.sin(z) / (2 * np.sin(z / (2 * terms + 1))))


def _cosine_l2(terms: int) -> NDArray[np.float64]:
    near = np.linspace(0, min(2 * math.pi / (terms + 0.5), math.pi), _POINTS)
    t = np.concatenate([near, math.pi - near])
    return np.asarray(sum((1 - np.cos(j * t)) ** 2 for j in range(1, terms + 1)))


def _trigonometric_l1(terms: int) -> NDArray[np.float64]:
    """sin(v) + ... + sin(L v) = (cos(v / 2) - cos((L + 1/2) v)) / (2 sin(v / 2)), where all terms are positive."""
    pairs, odd = divmod(terms, 2)
    v = np.linspace(0, math.pi / (pairs + odd), _POINTS)[1:]
    paired = (np.cos(v / 2) - np.cos((pairs + 0.5) * v)) / (2 * np.sin(v / 2))
    return np.asarray(2 * (math.sqrt(2) * paired + odd * np.sin((pairs + 1) * v)))


def _trigonometric_l2(terms: int) -> NDArray[np.float64]:
    frequencies = (terms + 1) // 2
    v = np.linspace(0, min(2 * math.pi / (frequencies + 0.5), math.pi), _POINTS)
    return np.asarray(sum(4 * np.sin(j * v) ** 2 for j in range(1, frequencies + 1)))


def series_error(
    terms: int,
    n: SupportsIndex,
    *,
    epsilon: float = math.inf,
    smoothness: float = 2.0,
    roughness: float = 1.0,
    basis: str = "cosine",
) -> float:
    """Upper bound on the mean integrated squared error of the perturbed series, before conversion to a density.

    Parameters
    ----------
    terms : int
        m, at least 1.
    n : int
        Number of records, at least 1.
    epsilon : float
        Positive; inf means no noise.
    smoothness, roughness : float
        gamma > 1/2 and C > 0 of the Sobolev ellipsoid: an assumption about the distribution, never an estimate.
    basis : {"cosine", "trigonometric"}

    Returns
    -------
    float
        Error on the unit interval; divide by the width of the bounds for data units.

    Notes
    -----
    Bias, sampling, noise::

        C^2 (m + 1)^(-2 gamma) + (m + C / sqrt(2) (sum_(j <= m) (2 j)^(-2 gamma))^(1/2)) / n + 2 m (S1 / (n epsilon))^2

    since ``E psi_j^2 = 1 + beta_2j / sqrt(2)`` for the cosine basis, and 1 on average over a pair.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.series_error(8, 10_000, epsilon=1.0), 6)
    0.001005
    """
    terms, n = checks.whole("terms", terms, least=1), checks.whole("n", n, least=1)
    gamma, c = _smoothness(smoothness), checks.positive("roughness", roughness)
    return _error(terms, n, _epsilon(epsilon), gamma, c, _known(basis))


def _error(terms: int, n: int, epsilon: float, gamma: float, c: float, basis: str) -> float:
    bias = c**2 * math.pow(terms + 1, -2 * gamma)
    even = 2.0 * np.arange(1, terms + 1)
    sampling = (terms + c / math.sqrt(2) * math.sqrt(float(np.sum(even ** (-2 * gamma))))) / n
    scale = _sensitivity(terms, basis, 1) / (n * epsilon)
    return bias + sampling + 2 * terms * scale * scale


def series_terms(
    n: int,
    *,
    epsilon: float = math.inf,
    smoothness: float = 2.0,
    roughness: float = 1.0,
    basis: str = "cosine",
    most: int = 1024,
) -> int:
    """Return the number of terms with the least `series_error`, at most `most`.

    Parameters: see `series_error`. For large n epsilon it is ``(2 gamma C^2 n)^(1 / (2 gamma + 1))``, the published
    n^(1 / (2 gamma + 1)) with its constant; if the noise dominates, it is of order (C n epsilon)^(1 / (gamma + 3/2)).

    References
    ----------
    Wasserman and Zhou 2010, equation (15).

    Examples
    --------
    >>> import dpfast as dpf
    >>> [dpf.theory.series_terms(n, epsilon=0.1) for n in (100, 10_000, 1_000_000)]
    [1, 5, 18]
    """
    n, most = checks.whole("n", n, least=1), checks.whole("most", most, least=1)
    gamma, c = _smoothness(smoothness), checks.positive("roughness", roughness)
    arguments = n, _epsilon(epsilon), gamma, c, _known(basis)
    terms, least = 1, _error(1, *arguments)
    while terms < most and (error := _error(terms + 1, *arguments)) < least:
        terms, least = terms + 1, error
    return terms


def series_published_loss(
    terms: int, epsilon: float, *, mechanism: str = "perturbation", basis: str = "cosine"
) -> float:
    """Privacy loss of the series mechanisms with the constants of the slides, which claim epsilon.

    Parameters
    ----------
    terms : int
        m, at least 1.
    epsilon : float
        The loss that the slides claim, positive.
    mechanism : {"perturbation", "exponential"}
    basis : {"cosine", "trigonometric"}

    Returns
    -------
    float
        For "perturbation", Laplace noise of scale c0 m / (n epsilon): the exact loss ``epsilon S1 / (c0 m)``, 2 epsilon
        for one term (for the trigonometric basis, with the bound of `series_sensitivity`). For "exponential", mechanism
        (17), exp(-epsilon xi / Delta) with Delta = 2 c0^2 m / n and without the 2 of (8): the provable loss ``epsilon
        S2 / (2 m)``, sqrt(2) epsilon for one term, and below epsilon for two or more.

    Notes
    -----
    `SeriesCoefficients` uses S1 / (n epsilon). The correct exponential mechanism has exp(-n epsilon xi / (2 S2)).

    References
    ----------
    Wasserman and Zhou 2010, equation (17) and the perturbation approach.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.series_published_loss(1, 0.5), 6), round(dpf.theory.series_published_loss(8, 0.5), 3)
    (1.0, 0.648)
    """
    terms, epsilon = checks.whole("terms", terms, least=1), checks.positive_down("epsilon", epsilon)
    if mechanism == "perturbation":
        return epsilon * series_sensitivity(terms, basis=basis) / (math.sqrt(2) * terms)
    if mechanism == "exponential":
        return epsilon * series_sensitivity(terms, basis=basis, norm=2) / (2 * terms)
    raise ValueError(f"mechanism must be 'perturbation' or 'exponential', not {mechanism!r}")


def _known(basis: str) -> str:
    if basis not in BASES:
        raise ValueError(f"basis must be {' or '.join(map(repr, BASES))}, not {basis!r}")
    return basis


def _epsilon(epsilon: float) -> float:
    return math.inf if epsilon == math.inf else checks.positive_down("epsilon", epsilon)


def _smoothness(smoothness: float) -> float:
    return checks.between("smoothness", smoothness, 0.5, math.inf)
