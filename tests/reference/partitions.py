"""Partition selection by its definition, in rational numbers."""

from fractions import Fraction
from itertools import pairwise, product

import mpmath


def ratio_up(epsilon):
    """A rational a little above e^epsilon."""
    with mpmath.workprec(4000):
        return Fraction(*map(int, mpmath.exp(mpmath.mpf(float(epsilon))).as_integer_ratio())) * (
            1 + Fraction(1, 2**3000)
        )


def ratio_down(epsilon):
    return ratio_up(epsilon) * (1 - Fraction(1, 2**2900))


def optimal(epsilon, delta):
    """The probabilities of Desfontaines et al. for a key with 0, 1, 2, ... records, until one is 1."""
    chances, ratio = [mpmath.mpf(0)], mpmath.exp(mpmath.mpf(epsilon))
    while chances[-1] < 1:
        p = chances[-1]
        chances.append(min(ratio * p + delta, 1 - (1 - p - delta) / ratio, mpmath.mpf(1)))
    return chances


def law(table, center, other, n):
    """The exact law of the released count of a key with n records; 0 for a key that is not released."""
    whole, chance = 2**table.bits, table.chances[min(n, len(table.chances) - 1)]
    chances = {0: Fraction(whole - chance, whole)}
    for released, part in [
        *((n + center - j, weight) for j, weight in enumerate(table.weights[:n])),
        (other, chance - sum(table.weights[:n])),
    ]:
        chances[released] = chances.get(released, 0) + Fraction(part, whole)
    return chances


def together(laws):
    """The law of independent draws of several keys."""
    made = {}
    for pairs in product(*(one.items() for one in laws)):
        chance = Fraction(1)
        for _, part in pairs:
            chance *= part
        made[tuple(value for value, _ in pairs)] = chance
    return made


def excess(one, other, ratio):
    """The least delta for `ratio` = e^epsilon, in this direction."""
    return sum((max(chance - ratio * other.get(value, 0), 0) for value, chance in one.items()), Fraction())


def gaussian_law(scale, threshold, n, top):
    """Probabilities that a key with n records is not released, or with threshold, ..., top - 1, or >= top records.

    Rounded Gaussian noise; a key without records is not released.
    """
    edges = [mpmath.ncdf((mpmath.mpf(t) - n - 0.5) / scale) for t in range(threshold, top + 1)]
    cells = [edges[0], *(b - a for a, b in pairwise(edges)), 1 - edges[-1]]
    return [float(cell) for cell in (cells if n else [1, *[0] * (len(cells) - 1)])]


def gaussian_delta(epsilon, mu, hidden=1):
    """The least delta, in both directions, of a Gaussian and of keys that stay unseen with probability `hidden`."""

    def plain(x):
        return mpmath.ncdf(mu / 2 - x / mu) - mpmath.exp(x) * mpmath.ncdf(-mu / 2 - x / mu) if mu else mpmath.mpf(0)

    s = -mpmath.log(hidden)
    return max(1 - hidden + hidden * plain(epsilon + s), plain(epsilon - s))
