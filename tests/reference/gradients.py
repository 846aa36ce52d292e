"""Slow twin of the sums of clipped gradients: integers of one record at a time."""

import math
from fractions import Fraction

import numpy as np


def residual(model, t, y, bound=math.inf):
    """The residual of a label at the linear predictor t."""
    if model == "logistic":
        value = (1 / (1 + math.exp(-t)) if t > -700 else 0.0) - (y > 0)
    elif model == "poisson":
        value = math.exp(max(min(t, 700.0), -700.0)) - max(y, 0.0)
    else:
        value = t - y
    return min(max(value, -bound), bound)


def vector(code, matrix):
    """(v, 1) times a matrix of single precision, rounded: sums run by row of the matrix."""
    total = np.zeros(matrix.shape[1], np.float32)
    for value, row in zip([*code, 1], matrix, strict=True):
        total = total + np.float32(value) * row
    return [round(float(part)) for part in total]


def gradient(code, y, theta, matrix, *, model, clip, scale, bound=math.inf):
    """The integers r z of a record with this code."""
    z = vector(code, matrix)
    if math.isnan(y):
        return [0] * len(z)
    r = round(residual(model, math.fsum(a * b for a, b in zip(z, theta, strict=True)), y, bound) * scale)
    limit = math.trunc(clip * (1 - 2.0**-30) / max(math.sqrt(sum(part**2 for part in z)), 1.0))
    return [min(max(r, -limit), limit) * part for part in z]


def squared_norm(values):
    return sum(Fraction(value) ** 2 for value in values)
