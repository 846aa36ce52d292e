"""Expected clipped gradients of generalised linear models in normal populations, by quadrature or a public sample."""

from __future__ import annotations

import math
from functools import cache, cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast._kernels import _populations
from dpfast.regression.models import Multinomial, OnePredictor

Values = NDArray[np.float64]


def _normal_nodes(count: int) -> tuple[Values, Values]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


_NODES, _WEIGHTS = _normal_nodes(14)
_PLANE = np.column_stack([part.ravel() for part in (np.outer(_WEIGHTS, _WEIGHTS), *np.meshgrid(_NODES, _NODES))])
_PLANE = _PLANE[_PLANE[:, 0] > 1e-9]
_POINTS = _PLANE[:, 1:].T.copy()
_LENGTHS = np.column_stack(_normal_nodes(6)[::-1])
_SQUARES = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])  # the places of the products of (1, u, v)
_LEAST = 1e-100  # of a square length
_SAMPLE = 2048  # rows of a population where no quadrature is made
_SEED = 1


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

    def gradient(self, theta: Values, truth: Values) -> NormalGradient:
        """Return the gradient at theta; `truth` is the theta of the labels."""
        axes, sums = np.empty((3, len(theta))), np.zeros((4, 7))
        axes[0] = self._mean
        _populations.plane(self._root, theta, truth, np.empty((2, len(theta))), axes[1:])
        rest = self._covariance - axes[1:].T @ axes[1:]
        size = max(float(rest.trace()), _LEAST)
        deviation = math.sqrt(float(np.vdot(rest, rest)) / 4.5) / size  # of the cube root of the length, relative
        both = np.array([theta, truth])
        predictors = both @ axes[1:].T @ _POINTS + (both @ self._mean)[:, None]
        slopes, labels = self._model.curvature(predictors), np.array(self._model.labels(*predictors))
        _populations.clipped(axes, np.array([size, deviation]), self._clip, _PLANE, _LENGTHS, labels, slopes, sums)
        return NormalGradient(axes, rest / size, sums)


class NormalGradient:
    """The mean of a record's clipped gradient, its derivative by theta, and the mean outer square.

    Of shapes (p,), (p, p) and (p, p), computed when needed: steps in a population take the mean alone.
    """

    def __init__(self, axes: Values, rest: Values, sums: Values) -> None:
        self._axes, self._rest, self._sums = axes, rest, sums

    @cached_property
    def mean(self) -> Values:
        return np.asarray(self._sums[0, :3] @ self._axes)

    @cached_property
    def derivative(self) -> Values:
        return self._second_moments(self._sums[1])

    @cached_property
    def outer(self) -> Values:
        return self._second_moments(self._sums[2])

    @cached_property
    def by_truth(self) -> Values:
        """Minus the derivative of the mean by the theta of the labels, in a logistic model."""
        return self._second_moments(self._sums[3])

    def _second_moments(self, sums: Values) -> Values:
        """Return the mean of (z + e)(z + e)' with these sums of weights."""
        return np.asarray(self._axes.T @ sums[_SQUARES] @ self._axes + sums[6] * self._rest)


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
    """See `NormalGradient`.

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
