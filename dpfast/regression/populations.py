"""Expected clipped gradients of generalised linear models in normal populations, by quadrature."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpfast.regression.models import Model

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

    def __init__(self, model: Model, second: Values, mean: Values, clip: float) -> None:
        values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
        roots = np.sqrt(np.maximum(values, 0.0))
        self._root = (vectors * roots) @ vectors.T
        self._covariance = self._root @ self._root
        self._model, self._mean, self._clip = model, mean, clip

    def gradient(self, theta: Values, truth: Values) -> tuple[Values, Values, Values]:
        """The mean of a record's clipped gradient at theta, its derivative by theta, and its mean outer square.

        Shapes (p,), (p, p) and (p, p); `truth` is the theta of the labels.
        """
        basis, _ = np.linalg.qr(self._root @ np.stack([theta, truth], axis=1))
        along = self._root @ basis
        rest = self._covariance - along @ along.T
        plane, weights = (_PLANE, _PLANE_WEIGHTS) if basis.shape[1] > 1 else (_NODES[:, None], _WEIGHTS)
        z = self._mean + plane @ along.T
        predictor, true = (self._mean @ part + plane @ (along.T @ part) for part in (theta, truth))
        size = max(float(np.trace(rest)), _LEAST)
        spread = float(np.sum(rest * rest)) / (size * size) / 4.5  # of the cube root, its variance
        squares = size * np.maximum(1 - spread + math.sqrt(spread) * _LENGTHS, 0.0) ** 3
        limits = self._clip / np.sqrt(np.sum(z * z, axis=1)[:, None] + squares + _LEAST)
        first, slope, second, along_rest, along_second = (np.zeros(len(z)) for _ in range(5))
        curvature = self._model.curvature(predictor)
        for chances, residuals in self._model.labels(predictor, true):
            clipped = np.clip(residuals[:, None], -limits, limits)
            inside = np.abs(residuals)[:, None] < limits
            first += chances * (clipped @ _LENGTH_WEIGHTS)
            second += chances * (clipped**2 @ _LENGTH_WEIGHTS)
            along_second += chances * (clipped**2 @ (_LENGTH_WEIGHTS * squares)) / size
            slope += chances * curvature * (inside @ _LENGTH_WEIGHTS)
            along_rest += chances * curvature * (inside @ (_LENGTH_WEIGHTS * squares)) / size
        derivative = (z.T * (weights * slope)) @ z + (weights @ along_rest) * rest
        outer = (z.T * (weights * second)) @ z + (weights @ along_second) * rest
        return (weights * first) @ z, derivative, outer
