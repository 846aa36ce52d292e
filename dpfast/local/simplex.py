"""Projection of noisy frequencies onto the simplex: the frequencies of categories are nonnegative and sum to 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _containers


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
    values = _containers.vector("frequencies", frequencies).astype(np.float64)
    if values.size < 1 or not np.isfinite(values).all():
        raise ValueError("frequencies must be at least one number, all finite")
    weights = np.ones(values.size) if variances is None else _containers.vector("variances", variances)
    if weights.shape != values.shape:
        raise ValueError(f"variances must be of shape {values.shape}, not {weights.shape}")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError("variances must be positive and finite")
    return simplex(values, weights.astype(np.float64))


def simplex(values: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """The projection of finite numbers, with positive weights; all 1 by default."""
    if weights is None:
        weights = np.ones(values.size)
    order = np.argsort(-values / weights)
    # With the first m entries in this order positive, they sum to 1 at the threshold t_m.
    thresholds = (np.cumsum(values[order]) - 1) / np.cumsum(weights[order])
    positive = np.flatnonzero(values[order] > thresholds * weights[order])
    threshold = thresholds[positive[-1] if positive.size else 0]
    return np.asarray(np.maximum(values - threshold * weights, 0.0))


def subsimplex(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The projection of finite numbers onto nonnegative vectors whose sum is at most 1."""
    clipped = np.maximum(values, 0.0)
    return clipped if clipped.sum() <= 1 else simplex(values)
