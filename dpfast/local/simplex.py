"""Projection of noisy frequencies onto the simplex: the frequencies of categories are nonnegative and sum to 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers

RULES = ("stein", "l2", "likelihood")
_TINY = 1e-30


def project(frequencies: ArrayLike, *, variances: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return the nearest vector of frequencies that are nonnegative and sum to 1.

    Post-processing of released estimates, at no privacy cost. The result is at most as far from the true frequencies as
    the input is, in the distance that is minimised; it is biased: small frequencies are overestimated on average.

    Parameters
    ----------
    frequencies : array_like of shape (k,)
        Estimates, for instance from `Categorical.estimate`.
    variances : array_like of shape (k,), optional
        Positive: minimises ``sum((result - frequencies)**2 / variances)``, so that inaccurate entries move more.
        Default: all equal, the Euclidean projection.

    Returns
    -------
    ndarray of float64, shape (k,)

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry of `frequencies` is not finite, or one of `variances` is not positive and
        finite.

    Notes
    -----
    The result is ``max(frequencies - t variances, 0)`` with the t at which the entries sum to 1. Cost: one sort,
    O(k log k).

    References
    ----------
    Held, Wolfe and Crowder 1974; Duchi et al. 2008, "Efficient projections onto the l1-ball"; Wang et al. 2020,
    "Locally differentially private frequency estimation with consistency" (norm-sub).

    Examples
    --------
    >>> from dpfast import local
    >>> local.project([0.75, 0.5, -0.125]).tolist()
    [0.625, 0.375, 0.0]
    >>> local.project([0.75, 0.5, -0.125], variances=[3, 1, 1]).tolist()
    [0.5625, 0.4375, 0.0]
    """
    values = containers.vector("frequencies", frequencies).astype(np.float64)
    if values.size < 1 or not np.isfinite(values).all():
        raise ValueError("frequencies must be at least one number, all finite")
    if variances is None:
        return simplex(values)
    weights = containers.vector("variances", variances)
    if weights.shape != values.shape:
        raise ValueError(f"variances must be of shape {values.shape}, not {weights.shape}")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError("variances must be positive and finite")
    return simplex(values, weights.astype(np.float64))


def simplex(values: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the projection of finite numbers, with positive weights; all 1 by default."""
    if weights is None:
        weights = np.ones(values.size)
        with np.errstate(over="ignore"):
            values = values - values.max()  # the projection is the same, without rounding errors of large numbers
    order = np.argsort(-values / weights)
    # With the first m entries in this order positive, they sum to 1 at the threshold t_m.
    thresholds = (np.cumsum(values[order]) - 1) / np.cumsum(weights[order])
    positive = np.flatnonzero(values[order] > thresholds * weights[order])
    threshold = thresholds[positive[-1] if positive.size else 0]
    return np.asarray(np.maximum(values - threshold * weights, 0.0))


def rule_of(project: bool | str, rules: tuple[str, ...] = RULES) -> str | None:
    """Return the rule that an argument `project` of `estimate` selects: the first for True, None for unbiased
    estimates.
    """
    if isinstance(project, (bool, np.bool_)):
        return rules[0] if project else None
    return checks.choice("project", project, rules)


def likeliest(frequencies: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the f in the simplex that maximises ``sum(counts * log(q + (p - q) f))``; `frequencies` are the unbiased
    ones.

    The condition for a maximum is that ``q + (p - q) f`` is a multiple of the counts where f > 0. So f is the
    projection with variances proportional to the counts; if all of them are 0, it is uniform.
    """
    return simplex(frequencies, np.maximum(counts, _TINY))


def shrunken(frequencies: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """Return the projection P, moved towards the uniform frequencies u: u + a (P - u), a in [0, 1].

    The risk of an estimate with a fixed a has Stein's unbiased estimate, with m - 1 for the derivatives of P, where m
    entries are positive. It is least at the a below, with m - 1 instead of m - 3; the 2 allows for the choice of a from
    the same data, as in the estimator of James and Stein. So a is 1 where m <= 3.
    """
    projected, even = simplex(frequencies), 1 / frequencies.size
    distance = projected - even
    square = float(distance @ distance)
    if square == 0:
        return projected
    positive = int(np.count_nonzero(projected))
    fraction = (float(distance @ (frequencies - even)) - max(positive - 3, 0) * variance) / square
    return np.asarray(even + min(max(fraction, 0.0), 1.0) * distance)


def subsimplex(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the projection of finite numbers onto nonnegative vectors whose sum is at most 1."""
    clipped = np.maximum(values, 0.0)
    return clipped if clipped.sum() <= 1 else simplex(values)
