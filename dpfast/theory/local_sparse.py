"""Upper bounds on the errors of sparse means under local privacy."""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

from dpfast.core import checks
from dpfast.theory.cube import Signs


def local_sparse_threshold(
    n: SupportsIndex,
    dimension: SupportsIndex,
    *,
    epsilon: float,
    radius: float = 1.0,
    confidence: float = 0.95,
    method: str = "auto",
) -> float:
    """Bound on the error of every coordinate of a mean of reports, which holds with probability `confidence`.

    Parameters
    ----------
    n, dimension : int
        Number of people, and d; at least 1.
    epsilon : float
        At least 2**-40; rounded down to a double.
    radius : float
        r, positive: records are in [-r, r]^d.
    confidence : float
        In (0, 1), for all coordinates together.
    method : {"auto", "majority", "subset"}
        Method of `dpfast.local.Hypercube`; "auto" selects the one with the smaller threshold.

    Returns
    -------
    float
        lambda of `dpfast.local.sparse_mean`, in data units.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The smaller of two proved bounds, with L = log(2 d / (1 - confidence)), scale M of a report and its number k of
    signs: Hoeffding's ``M sqrt(2 L / n)``, and Bernstein's for non-central moments::

        sqrt(2 M^2 (k / d) L / n) + M L / (3 n)

    as ``E Z_j^2 = M^2 k / d`` and ``|Z_j|^q <= M^(q - 2) Z_j^2 <= q! / 2 (M / 3)^(q - 2) Z_j^2`` for q >= 3
    (https://dpfast.readthedocs.io/en/latest/proofs/sparse-mean.html).

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
    n, confidence = checks.whole("n", n, least=1), checks.between("confidence", confidence, 0, 1)
    checks.choice("method", method, ("auto", "majority", "subset"))
    d = checks.whole("dimension", dimension, least=1)
    risk = math.log(2 * d / (1 - confidence))
    thresholds = []
    epsilon, radius = checks.positive_down("epsilon", epsilon), checks.radius(radius)
    for name in ("majority", "subset") if method == "auto" else (method,):
        signs = Signs.of(d, epsilon, name)
        scale = checks.finite_scale(radius * signs.scale * d / signs.k)
        hoeffding = scale * math.sqrt(2 * risk / n)
        bernstein = hoeffding * math.sqrt(signs.k / d) + scale * risk / (3 * n)
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
    """Upper bound on the squared error of `dpfast.local.sparse_mean`, with probability `confidence`.

    Parameters
    ----------
    n, dimension, epsilon, radius, confidence, method
        See `local_sparse_threshold`.
    sparsity : int
        s, the number of nonzero coordinates of the mean, from 0 to d.

    Returns
    -------
    float
        ``4 s lambda^2``, in squared data units: each coordinate of the support is off by at most 2 lambda, and all
        others are exactly 0.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 5, with its constants.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.local_sparse_mean_bound(1_000_000, 100, 2, epsilon=1.0), 4)
    0.063
    """
    s, d = checks.whole("sparsity", sparsity), checks.whole("dimension", dimension, least=1)
    if s > d:
        raise ValueError(f"sparsity must be at most dimension = {d}, not {s}")
    threshold = local_sparse_threshold(n, d, epsilon=epsilon, radius=radius, confidence=confidence, method=method)
    return 4 * s * threshold**2


class SparseRounds(NamedTuple):
    """What two rounds achieve: `least`, in data units, and `error`, in squared data units."""

    least: float
    error: float


def local_sparse_rounds_bound(
    n: SupportsIndex,
    dimension: SupportsIndex,
    sparsity: SupportsIndex,
    *,
    epsilon: float,
    radius: float = 1.0,
    confidence: float = 0.95,
) -> SparseRounds:
    """Upper bound on the squared error of a sparse mean in two rounds, if its nonzero coordinates are large.

    Parameters
    ----------
    n, dimension, epsilon, radius, confidence
        See `local_sparse_threshold`; n at least 2.
    sparsity : int
        s, the number of nonzero coordinates of the mean, from 1 to d.

    Returns
    -------
    SparseRounds
        With probability `confidence`: if every nonzero coordinate of the mean of the distribution is above `least` in
        absolute value, the squared error is at most `error`, ``s lambda^2`` for s instead of d coordinates.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Round 1: `dpfast.local.sparse_mean` with hard thresholds, of n // 2 people; `least` is 2 lambda, so that it keeps
    the s coordinates and no other. Round 2: `dpfast.local.Hypercube` of the kept coordinates, for the other people,
    with the method of the smaller threshold. Each with half of the failure probability. Where coordinates are smaller,
    two rounds may lose: `local_sparse_mean_lower_bound` is of order d / (n epsilon^2) for any number of rounds.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, section 4.2.2, where it is an open question.

    Examples
    --------
    >>> import dpfast as dpf
    >>> bound = dpf.theory.local_sparse_rounds_bound(1_000_000, 100, 2, epsilon=1.0)
    >>> round(bound.least, 3), round(bound.error, 6)
    (0.262, 0.000381)
    """
    n, s = checks.whole("n", n, least=2), checks.whole("sparsity", sparsity, least=1)
    d = checks.whole("dimension", dimension, least=1)
    if s > d:
        raise ValueError(f"sparsity must be at most dimension = {d}, not {s}")
    half = (1 + checks.between("confidence", confidence, 0, 1)) / 2
    first = local_sparse_threshold(n // 2, d, epsilon=epsilon, radius=radius, confidence=half)
    second = local_sparse_threshold(n - n // 2, s, epsilon=epsilon, radius=radius, confidence=half)
    return SparseRounds(2 * first, s * second**2)
