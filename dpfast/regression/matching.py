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
_CLOSE = 0.03  # a step, relative to the error of the estimate
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
        expected = [self._rows.expected(part.theta, truth) for part in self._released]
        curvatures = [curvature for _, curvature in expected]
        means = [mean - (1 - share) * at_truth.mean for mean, _ in expected]
        short = np.concatenate([mean - part.gradient for mean, part in zip(means, self._released, strict=True)])
        mean_curvatures = [float(np.trace(curvature)) / p for curvature in curvatures]
        away = np.array([c * (part.theta - truth) for c, part in zip(mean_curvatures, self._released, strict=True)])
        variances = [part.deviation**2 for part in self._released] + _MISFIT**2 * np.sum(away**2, axis=1) / p
        scaled = (away * self._squares).reshape(-1)
        common = at_truth.outer / self._n + deviation**2 * np.outer(at_truth.mean, at_truth.mean)
        errors = np.kron(np.ones((len(away), len(away))), common) + np.diag(np.repeat(variances, p))
        errors += np.kron((away * self._squares) @ away.T, np.diag(self._squares)) + _swapped(scaled, p)
        errors += _JITTER * np.trace(errors) * np.eye(len(errors))
        factor = scipy.linalg.cho_factor(errors, lower=True, check_finite=False)
        lines = scipy.linalg.cho_solve(factor, short, check_finite=False).reshape(-1, p) * self._squares
        noise = -lines.T @ (away * self._squares)  # E, as far as the gradients show it
        design = np.concatenate(
            [
                _at_least(part + c * (noise + noise.T), _LEAST_CURVATURE * c)
                for part, c in zip(curvatures, mean_curvatures, strict=True)
            ]
        )
        weighted = scipy.linalg.cho_solve(factor, design, check_finite=False)
        information = design.T @ weighted
        vector = weighted.T @ short + information @ (truth - self._start)
        return information, vector, _CLIP_DOUBT * weighted.T @ np.tile(at_truth.mean, len(away))

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


def _swapped(vector: Values, p: int) -> Values:
    """Return the matrix of blocks b_s b_t' at (t, s), for the blocks b of p numbers of a vector."""
    blocks = np.outer(vector, vector).reshape(-1, p, len(vector) // p, p)
    return np.asarray(blocks.swapaxes(0, 2).reshape(len(vector), len(vector)))


def _at_least(matrix: Values, least: float) -> Values:
    """Return a symmetric matrix with its eigenvalues raised to `least`."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)
