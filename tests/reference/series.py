"""Slow twins of orthogonal series densities: tables in mpmath, sums record by record, suprema over all pairs."""

import math
from fractions import Fraction

from mpmath import mp, mpf


def basis_function(j, basis, u):
    """phi_j(u), j from 1; sqrt(2) times it is orthonormal."""
    if basis == "cosine":
        return mp.cospi(j * u)
    frequency = 2 * ((j + 1) // 2)
    return mp.cospi(frequency * u) if j % 2 else mp.sinpi(frequency * u)


def rounded(j, basis, node, nodes, bits):
    """The integer nearest to 2**bits phi_j at the middle of a cell."""
    with mp.workdps(40):
        return int(mp.nint(mp.ldexp(basis_function(j, basis, mpf(2 * node + 1) / (2 * nodes)), bits)))


def node(code, nodes, size):
    return code * ((nodes << 63) // size) >> 63


def sums(codes, terms, basis, nodes, size, bits):
    """One record at a time."""
    at = [node(code, nodes, size) for code in codes]
    return [sum(rounded(j, basis, i, nodes, bits) for i in at) for j in range(1, terms + 1)]


def sensitivity(terms, basis, nodes, bits):
    """The largest l1 distance of the vectors of two nodes."""
    rows = [[rounded(j, basis, i, nodes, bits) for j in range(1, terms + 1)] for i in range(nodes)]
    return max(sum(abs(a - b) for a, b in zip(one, other, strict=True)) for one in rows for other in rows)


def series(coefficients, basis, u):
    """1 + sum_j b_j psi_j(u)."""
    total = mp.fsum(mpf(b) * basis_function(j, basis, mpf(u)) for j, b in enumerate(coefficients, 1))
    return 1 + mp.sqrt(2) * total


def positive_part(coefficients, basis, points):
    """(u, cdf) at the middles of `points` cells, by the midpoint rule."""
    heights = [max(series(coefficients, basis, Fraction(2 * i + 1, 2 * points)), 0) for i in range(points)]
    total, running, cdf = math.fsum(heights), 0.0, []
    for height in heights:
        cdf.append((running + float(height) / 2) / total)
        running += float(height)
    return [(2 * i + 1) / (2 * points) for i in range(points)], cdf


def log_ratio(center, other, scale, k):
    """log P(k | center) - log P(k | other) of independent discrete Laplace noise, exact."""
    return sum(abs(Fraction(x) - b) - abs(Fraction(x) - a) for a, b, x in zip(center, other, k, strict=True)) / scale
