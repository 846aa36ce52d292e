"""Expected clipped gradients of generalised linear models in normal populations, by quadrature or a public sample."""

from __future__ import annotations

import math
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.regression.models import Multinomial, OnePredictor

Values = NDArray[np.float64]


def _normal_nodes(count: int) -> tuple[Values, Values]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


_NODES, _WEIGHTS = _normal_nodes(14)
_PLANE = np.stack([part.ravel() for part in np.meshgrid(_NODES, _NODES)], axis=1)
_PLANE_WEIGHTS = np.outer(_WEIGHTS, _WEIGHTS).ravel()
_PLANE, _PLANE_WEIGHTS = _PLANE[_PLANE_WEIGHTS > 1e-9], _PLANE_WEIGHTS[_PLANE_WEIGHTS > 1e-9]
_LENGTHS, _LENGTH_WEIGHTS = _normal_nodes(6)
_LEAST = 1e-100  # of a square length
_SAMPLE = 2048  # rows of a population where no quadrature is made
_SEED = 1


class Gradient(NamedTuple):
    """The mean of a record's clipped gradient, its derivative by theta, and the mean outer square."""

    mean: Values
    derivative: Values
    outer: Values


class NormalRows:
    """Records with normal rows z of these moments, and labels of a model: their mean gradient, clipped.

    z is split into its part along the predictors, of dimension 2, and the rest e, independent of it. Of e only the
    square length matters, taken as a multiple of a chi-square with the mean and variance of |e|**2, by the cube of a
    normal number (Wilson and Hilferty); and e as uncorrelated with the clipped residual given that length, which is
    exact where its components have equal variances.

    Parameters
    ----------
    model : Model
    second, mean : ndarray of shape (p, p) and (p,)
        The second moments and the mean of z.
    clip : float
        Infinity: do not clip.
    """

    def __init__(self, model: OnePredictor, second: Values, mean: Values, clip: float) -> None:
        values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
        roots = np.sqrt(np.maximum(values, 0.0))
        self._root = (vectors * roots) @ vectors.T
        self._covariance = self._root @ self._root
        self._model, self._mean, self._clip = model, mean, clip

    def gradient(self, theta: Values, truth: Values) -> Gradient:
        """Return the gradient at theta, of shapes (p,), (p, p) and (p, p); `truth` is the theta of the labels."""
        z, weights, rest, limits, squares = self._nodes(theta, truth)
        first, slope, second, along_rest, along_second = (np.zeros(len(z)) for _ in range(5))
        predictor, size = z @ theta, max(float(np.trace(rest)), _LEAST)
        curvature = self._model.curvature(predictor)
        for chances, residuals in self._model.labels(predictor, z @ truth):
            clipped = np.clip(residuals[:, None], -limits, limits)
            inside = np.abs(residuals)[:, None] < limits
            first += chances * (clipped @ _LENGTH_WEIGHTS)
            second += chances * (clipped**2 @ _LENGTH_WEIGHTS)
            along_second += chances * (clipped**2 @ (_LENGTH_WEIGHTS * squares)) / size
            slope += chances * curvature * (inside @ _LENGTH_WEIGHTS)
            along_rest += chances * curvature * (inside @ (_LENGTH_WEIGHTS * squares)) / size
        derivative = (z.T * (weights * slope)) @ z + (weights @ along_rest) * rest
        outer = (z.T * (weights * second)) @ z + (weights @ along_second) * rest
        return Gradient((weights * first) @ z, derivative, outer)

    def expected(self, theta: Values, truth: Values) -> tuple[Values, Values]:
        """Return the mean gradient at theta in a logistic model, and minus its derivative by
        `truth`, of shape (p, p).
        """
        z, weights, rest, limits, squares = self._nodes(theta, truth)
        (chance, positive), (_, other) = self._model.labels(z @ theta, z @ truth)
        positive, other = (np.clip(residuals[:, None], -limits, limits) for residuals in (positive, other))
        first = (other + np.reshape(chance, (-1, 1)) * (positive - other)) @ _LENGTH_WEIGHTS
        slope = self._model.curvature(z @ truth)[:, None] * (other - positive) * _LENGTH_WEIGHTS
        along_rest = float(weights @ slope @ squares) / max(float(np.trace(rest)), _LEAST)
        return (weights * first) @ z, (z.T * (weights * slope.sum(axis=1))) @ z + along_rest * rest

    def _nodes(self, theta: Values, truth: Values) -> tuple[Values, Values, Values, Values, Values]:
        """Nodes of z, their weights, the covariance of e, and limits of residuals, for each square length of e."""
        basis, _ = np.linalg.qr(self._root @ np.stack([theta, truth], axis=1))
        along = self._root @ basis
        rest = self._covariance - along @ along.T
        plane, weights = (_PLANE, _PLANE_WEIGHTS) if basis.shape[1] > 1 else (_NODES[:, None], _WEIGHTS)
        z = self._mean + plane @ along.T
        size = max(float(np.trace(rest)), _LEAST)
        spread = float(np.sum(rest * rest)) / (size * size) / 4.5  # of the cube root, its variance
        squares = size * np.maximum(1 - spread + math.sqrt(spread) * _LENGTHS, 0.0) ** 3
        limits = self._clip / np.sqrt(np.sum(z * z, axis=1)[:, None] + squares + _LEAST)
        return z, weights, rest, limits, squares


@cache
def _sample(p: int) -> Values:
    """Return the normal rows of p columns, of mean 0 and second moments 1, symmetric around 0: the
    same in every fit.
    """
    count = max(_SAMPLE, 8 * p) // 2
    rows = np.random.Generator(np.random.PCG64(_SEED)).standard_normal((count, p))
    rows = np.linalg.solve(np.linalg.cholesky(rows.T @ rows / count), rows.T).T
    made = np.concatenate([rows, -rows])
    made.flags.writeable = False
    return made


class SampledRows:
    """Records with rows z of these moments, a public sample of normal ones, and labels of a multinomial model.

    A theta holds the coefficients of one free predictor after the other, see `Model.basis`.

    Parameters
    ----------
    model : Multinomial
    second, mean, clip
        See `NormalRows`.
    """

    def __init__(self, model: Multinomial, second: Values, mean: Values, clip: float) -> None:
        values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
        self.rows = mean + (_sample(len(mean)) * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        self.basis, self.limits = model.basis, clip / np.sqrt(np.sum(self.rows**2, axis=1) + _LEAST)

    def gradient(self, theta: Values, truth: Values) -> SampledGradient:
        """Return the same as that of `NormalRows`."""
        return SampledGradient(self, theta, truth)

    def chances(self, theta: Values) -> Values:
        """Return the probability of each class for each row, of shape (rows, classes)."""
        free = theta.reshape(self.basis.shape[1], -1)
        return np.asarray(scipy.special.softmax(self.rows @ free.T @ self.basis.T, axis=1))


class SampledGradient:
    """See `Gradient`; the parts are computed when needed.

    The residual of class k for a label y is P_k - (k == y). A sum over y of weights w times the outer products of the
    residuals is ``sum(w) P P' - P w' - w P' + diag(w)``.
    """

    def __init__(self, population: SampledRows, theta: Values, truth: Values) -> None:
        self._population, self._theta, self._truth = population, theta, truth

    def _clipped(self) -> tuple[Values, Values, Values, Values]:
        """Return the probabilities at theta and truth, and for each label the squared norm of the residuals and their
        share.

        All of shape (rows, classes).
        """
        here, true = map(self._population.chances, (self._theta, self._truth))
        squares = np.sum(here**2, axis=1, keepdims=True) - 2 * here + 1 + _LEAST
        return here, true, squares, np.minimum(1.0, self._population.limits[:, None] / np.sqrt(squares))

    @cached_property
    def mean(self) -> Values:
        here, true, _, shares = self._clipped()
        weights = true * shares
        residuals = weights.sum(axis=1, keepdims=True) * here - weights
        rows, basis = self._population.rows, self._population.basis
        return np.asarray((basis.T @ (residuals.T @ rows)).ravel() / len(rows))

    @cached_property
    def derivative(self) -> Values:
        here, true, squares, shares = self._clipped()
        weights = true * shares
        curvature = _squares(here, here)
        along = _squares(here, weights * (shares < 1) / squares)  # clipped residuals do not become longer
        return self._blocks(weights.sum(axis=1)[:, None, None] * curvature - along @ curvature)

    @cached_property
    def outer(self) -> Values:
        here, true, _, shares = self._clipped()
        return self._blocks(_squares(here, true * shares**2))

    def _blocks(self, weights: Values) -> Values:
        """Return the mean of the products of z z' and symmetrised weights, of shape (rows, classes, classes)."""
        rows, basis = self._population.rows, self._population.basis
        free = basis.T @ weights @ basis
        parts = [
            [(rows.T * ((free[:, a, b] + free[:, b, a]) / 2)) @ rows for a in range(b + 1)]
            for b in range(len(basis[0]))
        ]
        made = np.block([[parts[max(a, b)][min(a, b)] for a in range(len(parts))] for b in range(len(parts))])
        return np.asarray(made / len(rows))


def _diagonal(entries: Values) -> Values:
    """Diagonal matrices with these rows as diagonals."""
    return np.asarray(entries[:, :, None] * np.eye(entries.shape[1]))


def _squares(here: Values, weights: Values) -> Values:
    """Return the sum over the labels of weights times the outer products of the residuals."""
    cross = here[:, :, None] * weights[:, None, :]
    total = weights.sum(axis=1)[:, None, None]
    return np.asarray(total * here[:, :, None] * here[:, None, :] - cross - cross.swapaxes(1, 2) + _diagonal(weights))
