"""Expected clipped gradients of generalised linear models in normal populations, by quadrature or a public sample."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

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
        weights, *nodes = self._nodes(theta[None], truth)
        return NormalGradient(self._model, theta, truth, (weights, *(part[0] for part in nodes)))

    def expected(self, thetas: Values, truth: Values) -> tuple[Values, Values]:
        """Return the mean gradients at several theta in a logistic model, and minus their derivatives by `truth`.

        Of shapes (k, p) and (k, p, p). One after the other they took twice the time, nearly all of it in Python.
        """
        weights, z, rest, limits, squares = self._nodes(thetas, truth)
        predictors, true = (z @ thetas[:, :, None])[..., 0], z @ truth
        (chance, positive), (_, other) = self._model.labels(predictors, true)
        positive, other = (np.clip(residuals[..., None], -limits, limits) for residuals in (positive, other))
        first = (other + np.asarray(chance)[..., None] * (positive - other)) @ _LENGTH_WEIGHTS
        slope = self._model.curvature(true)[..., None] * (other - positive) * _LENGTH_WEIGHTS
        along_rest = np.einsum("kl,kl->k", weights @ slope, squares) / _sizes(rest)
        means = ((weights * first)[:, None] @ z)[:, 0]
        along = (z.transpose(0, 2, 1) * (weights * slope.sum(axis=2))[:, None]) @ z
        return means, along + along_rest[:, None, None] * rest

    def _nodes(self, thetas: Values, truth: Values) -> tuple[Values, Values, Values, Values, Values]:
        """Return weights of nodes; then for each theta the nodes of z, the covariance of e, limits of residuals, for
        each square length of e, and these lengths.
        """
        both = np.stack([thetas, np.broadcast_to(truth, thetas.shape)], axis=2)
        basis, _ = np.linalg.qr(self._root @ both)
        along = (self._root @ basis).transpose(0, 2, 1)
        rest = self._covariance - along.transpose(0, 2, 1) @ along
        plane, weights = (_PLANE, _PLANE_WEIGHTS) if basis.shape[2] > 1 else (_NODES[:, None], _WEIGHTS)
        z = self._mean + plane @ along
        size = _sizes(rest)[:, None]
        spread = np.sum(rest * rest, axis=(1, 2))[:, None] / (size * size) / 4.5  # of the cube root, its variance
        squares = size * np.maximum(1 - spread + np.sqrt(spread) * _LENGTHS, 0.0) ** 3
        limits = self._clip / np.sqrt(np.sum(z * z, axis=2)[:, :, None] + squares[:, None] + _LEAST)
        return weights, z, rest, limits, squares


class NormalGradient:
    """The mean of a record's clipped gradient, its derivative by theta, and the mean outer square.

    Of shapes (p,), (p, p) and (p, p), computed when needed: steps in a population take the mean alone.
    """

    def __init__(self, model: OnePredictor, theta: Values, truth: Values, nodes: tuple[Values, ...]) -> None:
        self._weights, self._z, self._rest, self._limits, self._squares = nodes
        self._model, self._predictor = model, self._z @ theta
        self._labels = [
            (chances, residuals[:, None], np.clip(residuals[:, None], -self._limits, self._limits))
            for chances, residuals in model.labels(self._predictor, self._z @ truth)
        ]

    @cached_property
    def mean(self) -> Values:
        first = sum(chances * (clipped @ _LENGTH_WEIGHTS) for chances, _, clipped in self._labels)
        return np.asarray((self._weights * first) @ self._z)

    @cached_property
    def derivative(self) -> Values:
        inside = sum(
            np.reshape(chances, (-1, 1)) * (np.abs(residuals) < self._limits) for chances, residuals, _ in self._labels
        )
        return self._second_moments(self._model.curvature(self._predictor)[:, None] * inside)

    @cached_property
    def outer(self) -> Values:
        return self._second_moments(
            sum(np.reshape(chances, (-1, 1)) * clipped**2 for chances, _, clipped in self._labels)
        )

    def _second_moments(self, parts: Any) -> Values:
        """Return the mean of these numbers, for each node and square length, times (z + e)(z + e)'."""
        along_rest = self._weights @ (parts @ (_LENGTH_WEIGHTS * self._squares))
        size = max(float(np.trace(self._rest)), _LEAST)
        along = (self._z.T * (self._weights * (parts @ _LENGTH_WEIGHTS))) @ self._z
        return np.asarray(along + along_rest / size * self._rest)


def _sizes(matrices: Values) -> Values:
    """Return the traces of matrices, positive."""
    return np.asarray(np.maximum(np.trace(matrices, axis1=1, axis2=2), _LEAST))


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
