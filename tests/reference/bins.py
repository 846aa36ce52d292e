"""Slow twins of histograms: one record at a time in Fractions, laws by enumeration."""

import itertools
from collections import Counter
from fractions import Fraction
from math import floor, prod

from tests.reference.grid import code


def edges(grid, bins):
    """The first code of each bin, and the last one: round(i * steps / bins), halves up; of whole numbers the points."""
    whole = grid.step == 1 and max(-grid.lower, grid.upper) < 2**52
    divided = grid.size if whole else grid.size - 1
    return [floor(Fraction(i * divided, bins) + Fraction(1, 2)) for i in range(bins)] + [grid.size - 1]


def bin_of(position, cuts):
    """The bin of a code: up to the next edge, the last bin with its upper one."""
    return max(i for i in range(len(cuts) - 1) if cuts[i] <= position)


def cell(row, grids, bins):
    """The tuple of bins of one record."""
    place = []
    for value, grid, count in zip(row, grids, bins, strict=True):
        options = {"lower": grid.lower, "upper": grid.upper, "step": grid.step, "missing": grid.missing}
        place.append(bin_of(code(value, **options), edges(grid, count)))
    return tuple(place)


def counts(rows, grids, bins):
    """The number of records of every cell, in the order of the last axis varying fastest."""
    found = Counter(cell(row, grids, bins) for row in rows)
    return [found[place] for place in itertools.product(*map(range, bins))]


def nearest_with_sum(noisy, n):
    """The least squared distance of integers >= 0 with this sum, by adding one unit at a time where it costs least."""
    nearest = [0] * len(noisy)
    for _ in range(n):
        best = min(range(len(noisy)), key=lambda j: (nearest[j] + 1 - noisy[j]) ** 2 - (nearest[j] - noisy[j]) ** 2)
        nearest[best] += 1
    return sum((a - b) ** 2 for a, b in zip(nearest, noisy, strict=True))


def smoothed(records, cuts, k, delta):
    """Probabilities of all k-tuples of codes: each from a uniform bin or the bin of a record, then uniform inside."""
    bins, last = len(cuts) - 1, cuts[-1]
    held = Counter(bin_of(record, cuts) for record in records)
    sizes = [cuts[i + 1] - cuts[i] + (i == bins - 1) for i in range(bins)]

    def one(position):
        place = bin_of(position, cuts)
        share = (1 - delta) * Fraction(held[place], len(records)) + delta / bins
        return share / sizes[place]

    point = [one(position) for position in range(last + 1)]
    return {draws: prod(point[c] for c in draws) for draws in itertools.product(range(last + 1), repeat=k)}
