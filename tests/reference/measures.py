"""Base measures by their definition, one code at a time."""

from fractions import Fraction
from math import ceil


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
