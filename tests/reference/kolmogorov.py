"""Slow twins of the exponential mechanism under the Kolmogorov-Smirnov distance."""

from fractions import Fraction
from itertools import pairwise, product
from math import factorial

from mpmath import mp, mpf


def share(data, code):
    return Fraction(sum(x <= code for x in data), len(data))


def distance(data, z, size):
    """The largest difference of the distribution functions at any code."""
    return max(abs(share(data, code) - share(z, code)) for code in range(size))


def vectors(size, k):
    return list(product(range(size), repeat=k))


def volume(data, k, size, rho):
    """The share of vectors at distance at most rho."""
    return Fraction(sum(distance(data, z, size) <= rho for z in vectors(size, k)), size**k)


def law(data, k, size, epsilon):
    """P(z) proportional to exp(-epsilon n rho(x, z) / 2)."""
    with mp.workdps(40):
        weights = {}
        for z in vectors(size, k):
            exponent = -Fraction(epsilon) * len(data) * distance(data, z, size) / 2
            weights[z] = mp.exp(mpf(exponent.numerator) / exponent.denominator)
        total = mp.fsum(weights.values())
        return {z: weight / total for z, weight in weights.items()}


def path_weight(edges, path, rate):
    """The product of c**j / j! over the cells, c = rate * width, in rationals."""
    weight = Fraction(1)
    for i in range(1, len(edges)):
        jump = int(path[i] - path[i - 1])
        weight *= (Fraction(rate) * int(edges[i] - edges[i - 1])) ** jump / factorial(jump)
    return weight


def counts_law(data, k, size, epsilon):
    """The law of the numbers of synthetic records below, at, between and above the distinct records, by enumeration."""
    edges = [0]
    for code in sorted(set(data)):
        edges += [code, code + 1]
    edges = sorted({*edges, size})
    cells = len(edges) - 1
    weights = {}
    with mp.workdps(40):
        for counts in compositions(k, cells):
            below, ways, largest = 0, Fraction(factorial(k)), Fraction(0)
            for i, count in enumerate(counts):
                ways *= Fraction(edges[i + 1] - edges[i]) ** count / factorial(count)
                below += count  # the cells between records start where the cell before ended
                largest = max(largest, abs(share(data, edges[i]) - Fraction(below, k)))
            exponent = -Fraction(epsilon) * len(data) * largest / 2
            weights[counts] = (
                mpf(ways.numerator) / ways.denominator * mp.exp(mpf(exponent.numerator) / exponent.denominator)
            )
        total = mp.fsum(weights.values())
        return edges, {counts: weight / total for counts, weight in weights.items()}, total / mpf(size) ** k


def compositions(k, cells):
    """All vectors of `cells` counts that sum to k."""
    if cells == 1:
        yield (k,)
        return
    for first in range(k + 1):
        for rest in compositions(k - first, cells - 1):
            yield (first, *rest)


def has_preimage(value, data):
    """Whether a float can be left + u * (right - left), u a multiple of 2**-53: a uniform point of a cell of floats."""
    ends = [0.0, *sorted(data), 1.0]
    for left, right in pairwise(ends):
        if left <= value < right:
            near = round((value - left) / (right - left) * 2**53)
            return any(left + (w * 2.0**-53) * (right - left) == value for w in range(max(near - 4, 0), near + 5))
    return False


def small_ball(k, radius):
    """P(|F - G| <= radius everywhere) for G of k draws from F: Steck's determinant, in rationals."""
    low = [max(Fraction(i + 1, k) - radius, Fraction(0)) for i in range(k)]  # of the order statistics of uniform draws
    high = [min(Fraction(i, k) + radius, Fraction(1)) for i in range(k)]
    if any(a > b for a, b in zip(low, high, strict=True)):
        return Fraction(0)

    def entry(i, j):
        power = j - i + 1
        return max(high[i] - low[j], 0) ** power / factorial(power) if power > 0 else Fraction(power == 0)

    matrix = [[entry(i, j) for j in range(k)] for i in range(k)]
    result = Fraction(factorial(k))
    for c in range(k):
        pivot = next((r for r in range(c, k) if matrix[r][c]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != c:
            matrix[c], matrix[pivot], result = matrix[pivot], matrix[c], -result
        result *= matrix[c][c]
        for r in range(c + 1, k):
            factor = matrix[r][c] / matrix[c][c]
            matrix[r] = [x - factor * y for x, y in zip(matrix[r], matrix[c], strict=True)]
    return result
