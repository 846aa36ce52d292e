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


def probabilities(t):
    """The softmax of the linear predictors."""
    parts = [math.exp(max(part - max(t), -700.0)) for part in t]
    return [part / math.fsum(parts) for part in parts]


def class_gradient(code, y, theta, matrix, *, clip, scale, bound=math.inf, joint=True):
    """The integers r_k z, of one class after the other, for theta with a row for each class.

    Without `joint`, a control, the gradient of each class is clipped by itself.
    """
    z = vector(code, matrix)
    if y not in range(len(theta)):
        return [0] * (len(z) * len(theta))
    chances = probabilities([math.fsum(a * b for a, b in zip(z, row, strict=True)) for row in theta])
    most = min(bound, 1.0)
    residuals = [min(max(p - (k == y), -most), most) for k, p in enumerate(chances)]
    r = [round(part * scale) for part in residuals]
    length = math.sqrt(max(sum(part**2 for part in z), 1.0))
    sizes = [math.sqrt(sum(part**2 for part in r))] * len(r) if joint else map(abs, r)
    limit = clip * (1 - 2.0**-30)
    codes = [
        math.trunc(part * (limit / (length * size))) if length * size > limit else part
        for part, size in zip(r, sizes, strict=True)
    ]
    return [part * coordinate for part in codes for coordinate in z]


def squared_norm(values):
    return sum(Fraction(value) ** 2 for value in values)
