"""Running totals by definitions: matrices of rationals, and trees as lists of their blocks."""

from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np


def matrix(column):
    """The lower triangular Toeplitz matrix with this first column, as rows of integers."""
    return [[column[i - j] if i >= j else 0 for j in range(len(column))] for i in range(len(column))]


def times(rows, x):
    return [sum(a * b for a, b in zip(row, x, strict=True)) for row in rows]


def places_of(periods, changed, distance=1):
    """All sets of at most so many periods, at least so far from one another."""
    for size in range(1, changed + 1):
        for places in combinations(range(periods), size):
            if all(b - a >= distance for a, b in pairwise(places)):
                yield places


def greatest_square(column, changed, most=1, distance=1):
    """The greatest squared norm of C times a change of so many periods by at most `most` each."""
    rows, periods = matrix(column), len(column)
    found = 0
    for places in places_of(periods, changed, distance):
        for sizes in product([-most, most], repeat=len(places)):
            x = [0] * periods
            for place, size in zip(places, sizes, strict=True):
                x[place] = size
            found = max(found, sum(entry**2 for entry in times(rows, x)))
    return found


def estimates(column, bits):
    """The first column of A C**-1, C the integers divided by 2**bits, in rationals."""
    series = [Fraction(a, 2**bits) for a in column]
    found = []
    for k in range(len(column)):  # (C g)_k = 1
        rest = sum((series[j] * found[k - j] for j in range(1, k + 1)), Fraction())
        found.append((1 - rest) / series[0])
    return found


def blocks(period, most, levels):
    """The complete blocks of all levels among the first periods, as pairs (start, stop), by their definition."""

    def parts(level, more, start):
        stop = start if level else start + 1
        for left in range(more, -1, -1) if level else ():
            for part in parts(level - 1, left, stop):
                yield part
                stop = part[1]
        yield start, stop

    *found, _whole = parts(levels, most, 0)
    return [(start, stop) for start, stop in found if stop <= period]


def least_squares_variance(period, most, levels):
    """Variance of the best linear unbiased estimate of the total of the first periods from noisy sums of all blocks."""
    design = np.zeros((0, period))
    for start, stop in blocks(period, most, levels):
        row = np.zeros(period)
        row[start:stop] = 1
        design = np.vstack([design, row])
    ones = np.ones(period)
    return float(ones @ np.linalg.solve(design.T @ design, ones))


def equal_blocks(periods, branches, levels):
    """The greatest variance of totals from blocks of 1, b, b**2, ... periods, in units of that of the noise."""
    weights = [1.0]
    while len(weights) < levels:
        weights.append(1 / (1 + 1 / (branches * weights[-1])))
    found = 0.0
    for period in range(1, periods + 1):
        digits = []
        for _ in range(levels - 1):
            period, digit = divmod(period, branches)
            digits.append(digit)
        found = max(found, float(np.dot([*digits, period], weights)))
    return found


def neighbours(periods, values, changed=1, distance=1):
    """All pairs of sequences of integers that differ in at most so many periods, at least so far from one another."""
    for x in product(values, repeat=periods):
        for places in places_of(periods, changed, distance):
            for new in product(values, repeat=len(places)):
                y = list(x)
                for place, value in zip(places, new, strict=True):
                    y[place] = value
                if tuple(y) > x:
                    yield x, tuple(y)


def pooled(totals, running):
    """Two totals that decrease, replaced by their mean, weighted by the inverse of their variances."""
    weights = [running.standard_error(t) ** -2 for t in (1, 2)]
    mean = sum(w * total for w, total in zip(weights, totals, strict=True)) / sum(weights)
    return [mean, mean]
