"""Slow twins of the choice among random directions: Box and Muller by libm, scores by definition."""

import math
from fractions import Fraction

import numpy as np

from tests.reference.hypercube import mixed


def direction(seed, d):
    """The unit vector of a seed."""
    words, pairs = mixed(seed), []
    for _ in range(-(-d // 2)):
        w = next(words)
        radius = math.sqrt(-2 * math.log(((w >> 32) + 0.5) * 2.0**-32))
        angle = math.pi / 2 * ((w & 0x3FFFFFFF) + 0.5 - 2**29) * 2.0**-30
        pair = radius * math.cos(angle) * (-1) ** (w >> 30 & 1), radius * math.sin(angle)
        pairs.append(pair[::-1] if w >> 31 & 1 else pair)
    g = np.array([first for first, _ in pairs] + [second for _, second in pairs])[:d]
    return g / np.linalg.norm(g)


def scores(row, seed, rounding, count):
    """<u, r> of each direction, r the row in the unit ball or its opposite."""
    first = seed >> (count - 1).bit_length() << (count - 1).bit_length()
    own = (rounding >> 1) < (1 + Fraction(min(1.0, float(np.linalg.norm(row))))) * 2**62
    return [float(direction(first + j, len(row)) @ row) * (1 if own else -1) for j in range(count)]


def surplus(count, m, ratio):
    """P(a given one of the m best) - P(a given other one), times m."""
    p = ratio * m / (ratio * m + count - m)
    return p - (1 - p) * Fraction(m, count - m)
