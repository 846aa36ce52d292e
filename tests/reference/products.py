"""Slow twin of second moments: products of integers, and their change when a record is replaced."""

import itertools
import math

import numpy as np


def sums(codes, d):
    """The sums of v_i v_j over the codes v, with v_d = 1, for i <= j without the last: Python integers."""
    rows = [[*map(int, code), 1] for code in codes]
    places = list(itertools.combinations_with_replacement(range(d + 1), 2))[:-1]
    return [sum(row[i] * row[j] for row in rows) for i, j in places]


def ball(most, d):
    """All vectors of d integers with a squared norm of at most `most`."""
    reach = range(-math.isqrt(most), math.isqrt(most) + 1)
    return [v for v in itertools.product(reach, repeat=d) if sum(x * x for x in v) <= most]


def squared_norm(change, c, d):
    """The squared Frobenius norm of a change of the sums of a a', a = (v, c)."""
    places = itertools.combinations_with_replacement(range(d + 1), 2)
    return sum(x**2 * (1 if i == j else 2 * c**2 if j == d else 2) for x, (i, j) in zip(change, places, strict=False))


def nuclear_norm(change, c, d):
    """The sum of the magnitudes of the eigenvalues of a change of the sums of a a', a = (v, c)."""
    matrix = np.zeros((d + 1, d + 1))
    i, j = np.stack(np.triu_indices(d + 1))[:, :-1]
    matrix[i, j] = matrix[j, i] = np.asarray(change) * np.where(j == d, c, 1.0)
    return np.abs(np.linalg.eigvalsh(matrix)).sum()
