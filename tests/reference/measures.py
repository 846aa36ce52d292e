"""Base measures by their definition, one code at a time."""

from collections import Counter
from fractions import Fraction
from functools import cache
from math import ceil, frexp

import numpy as np


def weights(last, unit, offset, parts):
    """The weight of each code: `unit`, and that of each part of evenly spaced codes that it is in."""
    found = [unit] * (last + 1)
    for weight, numerator, denominator in parts:
        spacing = Fraction(denominator, numerator)
        for i in range(ceil((last + offset + 1) / spacing) + 1):
            code = ceil(i * spacing - Fraction(1, 2)) - offset
            if 0 <= code <= last:
                found[code] += weight
    return found


def round_numbers(first, last, step, spacings):
    """Whether each code 0..last is the nearest to a multiple of each spacing, in data units, the lower one of two."""
    nearest = {
        d: {ceil(Fraction(d) * i / Fraction(step) - Fraction(1, 2)) for i in range(-2 * last - 9, 2 * last + 9)}
        for d in spacings
    }
    return [[first + k in nearest[d] for d in spacings] for k in range(last + 1)]


def of_floats(grid):
    """The weight of each code of an unbounded FloatGrid: 11/16 on magnitudes, 1/16 each on zero and 1 to 4 digits."""
    magnitudes = [abs(grid.value(code)) for code in range(grid.size)]
    whole = grid.value(1 - grid.first) >= 1
    lowest = grid.resolution or 2.0**-1022

    def binade(x):
        """That of a magnitude; the evenly spaced middle is one, unless its points are whole numbers: then 0 is one."""
        return (x == 0, 0 if x == 0 else frexp(x)[1] - 1) if whole else (False, frexp(max(x, lowest / 2))[1] - 1)

    sizes = Counter(binade(x) for x in magnitudes[-grid.first :])
    parts = {(zero, e): (12 + abs(e - 3)) ** -3.0 for zero, e in sizes}
    total = sum(parts.values())
    shares = np.array([11 / 32 * parts[binade(x)] / total / sizes[binade(x)] for x in magnitudes])
    shares[-grid.first] += 1 / 16
    for share, numbers in decimals():
        np.add.at(shares, grid.encode(numbers), share)
    return shares


@cache
def decimals():
    """The share of each number of 1 to 4 significant digits, and the numbers that have this share."""
    found = []
    for digits in range(1, 5):
        decades = range(-8, 40) if digits < 4 else range(6)
        norm = sum((4 + abs(d - 1)) ** -3.0 for d in decades)
        for d in decades:
            unit = Fraction(10) ** (d - digits + 1)
            numbers = np.array([float(i * unit) for i in range(10 ** (digits - 1), 10**digits)])
            share = (4 + abs(d - 1)) ** -3.0 / norm / (9 * 10 ** (digits - 1)) / 32
            found.append((share, np.concatenate([numbers, -numbers])))
    return found
