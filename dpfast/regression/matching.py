"""The coefficients of a logistic model whose gradients in a normal population match released ones."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.regression.models import Logistic
from dpfast.regression.populations import NormalRows

Values = NDArray[np.float64]

_CLIP_BIAS = 0.75, 0.15  # relative to that in a normal population: its mean and deviation, as the estimate takes them
_CLIP_DOUBT = 0.35  # the deviation that intervals allow for besides
_MISFIT = 0.12  # of a difference between gradients in a normal population, relative to it
_ROUNDS = 20
_MOST_STEP = 2.0
_CLOSE = 0.3  # a step, relative to the error of the estimate; the next one is a fifth of it or less
_SIZES = np.geomspace(1e-3, 1e3, 31)  # of the prior: the mean square length of the coefficients
_PRIOR = 5.0  # the scale of the half-Cauchy law of the root of a size
_LEAST_CURVATURE = 0.03  # in any direction, relative to the mean one
_LEAST_KEPT = 0.4  # of a coefficient, for the estimate of how much the prior removed
_JITTER = 1e-12  # relative to the trace: more than the rounding of a factor of up to 4000 numbers


class NoisyGradient(NamedTuple):
    """A released mean gradient at theta, with noise of this deviation on each number."""

    theta: Values
    gradient: Values
    deviation: float


class Matching:
    """The posterior of the coefficients of whitened rows, given released clipped gradients.

    The expected gradient at theta is that of normal rows with second moments I and labels of the model at the
    coefficients. Its errors are taken as normal: of noise; of sampling; of the second moments, whose noise E changes a
    gradient by about c E (theta - coefficients), c the mean curvature; and of the bias of the clip, which depends on
    the law of the rows. The coefficients have a normal prior around the start, alike in all directions, of unknown size
    (https://dpfast.readthedocs.io/en/latest/proofs/glm.html).

    Parameters
    ----------
    mean : ndarray of shape (p,)
        The mean of the rows.
    clip : float
    moment_noise : ndarray of shape (p,)
        The deviation of an entry of E is the product of two of them, and sqrt(2) times that on the diagonal.
    n : int
    start : ndarray of shape (p,)
    """

    def __init__(self, *, mean: Values, clip: float, moment_noise: Values, n: int, start: Values) -> None:
        self._rows = NormalRows(Logistic(), np.eye(len(mean)), mean, clip)
        self._squares, self._n, self._start = moment_noise**2, n, start
        self._released: list[NoisyGradient] = []

    def estimate(self, released: NoisyGradient) -> tuple[Values, Values]:
        """Return the estimate with one more gradient, and a root of the covariance of its error: R for R R'."""
        self._released.append(released)
        estimate, before = released.theta, math.inf
        for _ in range(_ROUNDS):
            better, root = self._posterior(*self._information(estimate))
            length = float(np.linalg.norm(better - estimate))
            pace = 1.0 if length < before / 2 else 0.5  # the curvature and the weights change with the estimate
            estimate = estimate + min(pace, _MOST_STEP / max(length, 1.0)) * (better - estimate)
            if length <= _CLOSE * np.linalg.norm(root):
                break
            before = length
        return estimate, root

    def _information(self, truth: Values) -> tuple[Values, Values, Values]:
        """Return the information H and the vector q of a quadratic log-likelihood, q' d - d' H d / 2 for d from the
        start.

        Also the change of q by a doubt of the bias of the clip.
        """
        p, (share, deviation), at_truth = len(truth), _CLIP_BIAS, self._rows.gradient(truth, truth)
        thetas = np.array([part.theta for part in self._released])
        expected = [self._rows.gradient(theta, truth) for theta in thetas]
        means, curvatures = (
            np.array(parts) for parts in zip(*((at.mean, at.by_truth) for at in expected), strict=True)
        )
        short = (means - (1 - share) * at_truth.mean - [part.gradient for part in self._released]).ravel()
        mean_curvatures = np.trace(curvatures, axis1=1, axis2=2) / p
        away = mean_curvatures[:, None] * (thetas - truth)
        variances = np.array([part.deviation**2 for part in self._released])
        variances += _MISFIT**2 * np.sum(away**2, axis=1) / p
        common = at_truth.outer / self._n + deviation**2 * np.outer(at_truth.mean, at_truth.mean)
        errors = self._errors(away, common, variances)
        factor, _ = scipy.linalg.lapack.dpotrf(errors)
        lines = scipy.linalg.lapack.dpotrs(factor, short)[0].reshape(-1, p) * self._squares
        noise = -lines.T @ (away * self._squares)  # E, as far as the gradients show it
        blurred = curvatures + mean_curvatures[:, None, None] * (noise + noise.T)
        design = _at_least(blurred, _LEAST_CURVATURE * mean_curvatures).reshape(-1, p)
        weighted, _ = scipy.linalg.lapack.dpotrs(factor, design)
        information = design.T @ weighted
        vector = weighted.T @ short + information @ (truth - self._start)
        return information, vector, _CLIP_DOUBT * weighted.T @ np.tile(at_truth.mean, len(away))

    def _errors(self, away: Values, common: Values, variances: Values) -> Values:
        """Return the covariance of the errors of all gradients: what is common to them, of each number of a gradient,
        and of the noise E of the second moments, by its column and by its row.
        """
        scaled, (k, p) = away * self._squares, away.shape
        errors = np.empty((k, p, k, p))
        errors[:] = common[:, None]
        errors += scaled[:, None, None, :] * scaled.T[:, :, None]  # E is symmetric
        places = np.arange(p)
        errors[:, places, :, places] += self._squares[:, None, None] * (scaled @ away.T)
        made = errors.reshape(k * p, k * p)
        diagonal = np.einsum("ii->i", made)
        diagonal += np.repeat(variances, p)
        diagonal += _JITTER * diagonal.sum()
        return made

    def _posterior(self, information: Values, vector: Values, doubt: Values) -> tuple[Values, Values]:
        """Return the mean of the coefficients over the sizes of the prior, and a root of the covariance of the error.

        The covariance is that of the posterior, and the squares of what the prior removes and of the effect of a doubt.
        """
        values, vectors = np.linalg.eigh(information)
        values, vector, doubt = np.maximum(values, 0.0), vectors.T @ vector, vectors.T @ doubt
        variances = _SIZES[:, None] / len(vector)
        left = variances / (1 + values * variances)  # of the error, for each size and direction
        chances = 0.5 * np.sum(vector**2 * left - np.log1p(values * variances), axis=1)
        chances += 0.5 * np.log(_SIZES) - np.log1p(_SIZES / _PRIOR**2)
        weights = np.exp(chances - chances.max())
        weights /= weights.sum()
        changes, variance = left * vector, weights @ left
        change = weights @ changes
        removed = change * (1 / np.maximum(values * variance, _LEAST_KEPT) - 1)
        spread = (changes - change) * np.sqrt(weights)[:, None]
        root = np.column_stack([np.diag(np.sqrt(variance)), spread.T, removed, variance * doubt])
        return self._start + vectors @ change, vectors @ root


def _at_least(matrices: Values, least: Values) -> Values:
    """Return symmetric matrices with their eigenvalues raised to `least`."""
    lowered = matrices - least[:, None, None] * np.eye(matrices.shape[1])
    if not any(scipy.linalg.lapack.dpotrf(part)[1] for part in lowered):
        return matrices  # all are at least that
    values, vectors = np.linalg.eigh(matrices)
    raised = np.maximum(values, least[:, None])
    return np.asarray((vectors * raised[:, None]) @ vectors.transpose(0, 2, 1))
