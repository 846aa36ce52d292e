"""Second moments of rows with noise, moved towards those of columns of one variance and one correlation."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

_RATIOS = np.geomspace(1e-2, 1e4, 31)  # of the variance of numbers around their target to that of their noise
_STRUCTURE = 0.15  # root mean square of the differences that are kept, from which on columns are taken as different
_LEAST = 1e-100


class ShrunkMoments(NamedTuple):
    """Second moments, the deviation of what is left of their noise, and whether columns were found to differ."""

    moments: Values
    noise: float
    structured: bool


def shrunk_moments(moments: Values, noise: float, *, means: bool) -> ShrunkMoments:
    """Shrink released second moments of columns, by estimates of how much their parts differ from their targets.

    The variances are moved towards their mean, the covariances towards those of one correlation, and the means towards
    0, each by the mean of the factors of `_kept`.

    Parameters
    ----------
    moments : ndarray of shape (p, p)
        Symmetric.
    noise : float
        The deviation of the noise off the diagonal; that on it is sqrt(2) times this.
    means : bool
        Whether the last row holds means times a constant and, on the diagonal, its square, without noise.
    """
    d = len(moments) - means
    shrunk, constant = moments.copy(), max(float(moments[-1, -1]), _LEAST)
    center = shrunk[d, :d] if means else np.zeros(d)
    of_means = _kept(center, noise)
    center = of_means * center
    covariances = moments[:d, :d] - np.outer(center, center) / constant
    variances, around = np.diag(covariances), float(np.trace(covariances)) / d
    of_variances = _kept(variances - around, math.sqrt(2) * noise, fitted=1)
    apart = of_variances * (variances - around)
    variances = around + apart
    above = np.triu_indices(d, 1)
    entries, deviations = covariances[above], np.sqrt(np.maximum(variances, 0.0))
    target = np.outer(deviations, deviations)[above]
    slope = float(entries @ target) / max(float(target @ target), _LEAST)
    target = target * min(max(slope, -1 / max(d - 1, 1)), 1.0)
    of_covariances = _kept(entries - target, noise, fitted=1)
    made, others = np.zeros((d, d)), of_covariances * (entries - target)
    made[above] = target + others
    shrunk[:d, :d] = made + made.T + np.diag(variances) + np.outer(center, center) / constant
    if means:
        shrunk[d, :d] = shrunk[:d, d] = center
    kept = of_covariances * len(entries) + of_variances * 2 * (d - 1) + 2 + of_means * d * means
    left = noise * math.sqrt(kept / (len(entries) + 2 * d + d * means))
    differ = max(float(np.mean(part**2)) for part in (apart, others) if len(part))
    return ShrunkMoments(shrunk, left, differ > (_STRUCTURE * around) ** 2)


def _kept(differences: Values, noise: float, fitted: int = 0) -> float:
    """Return the part of the differences to keep: w / (1 + w), w the unknown ratio of their variance to that of the
    noise.

    The mean over w by its likelihood, for a prior uniform in log w; `fitted` numbers were used up by the target.
    """
    count = len(differences) - fitted
    if count < 1:
        return 1.0
    squares = float(np.sum((differences / max(noise, _LEAST)) ** 2))
    chances = -0.5 * (count * np.log1p(_RATIOS) + squares / (1 + _RATIOS))
    weights = np.exp(chances - chances.max())
    return float(weights @ (_RATIOS / (1 + _RATIOS)) / weights.sum())
