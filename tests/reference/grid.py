"""Slow twin of ``Grid.encode``, one record at a time, in Fractions."""

import math
from fractions import Fraction
from functools import lru_cache


@lru_cache(2**16)  # tests have few different records; 0.0 and -0.0, 1 and 1.0 have one code
def code(record, *, lower, upper, step, missing):
    """Clamp, round x / step half to even, count from lower / step; None is NaN."""
    if record is None or (isinstance(record, float) and math.isnan(record)):
        record = missing
    if isinstance(record, float) and math.isinf(record):
        value = Fraction(upper if record > 0 else lower)
    else:
        value = min(max(Fraction(record), Fraction(lower)), Fraction(upper))
    return round(value / Fraction(step)) - int(Fraction(lower) / Fraction(step))


def encode(records, grid):
    return [
        code(record, lower=grid.lower, upper=grid.upper, step=grid.step, missing=grid.missing) for record in records
    ]


def float_point(index, *, digits, resolution):
    """The point of an index, counted from 0: as many multiples of a step in each octave as below `resolution`."""
    octave, half = 0, 2 ** (digits - 1)
    magnitude = abs(index)
    while magnitude >= 2 * half:
        magnitude, octave = magnitude - half, octave + 1
    unit = Fraction(max(resolution, 2.0**-1022)) / half
    return magnitude * unit * 2**octave * (1 if index >= 0 else -1)


def float_code(record, grid):
    """The nearest point between the ends, the even index of two at equal distance, found by bisection."""

    def point(index):
        return float_point(index, digits=grid.digits, resolution=grid.resolution)

    if record is None or (isinstance(record, float) and math.isnan(record)):
        record = grid.missing
    if isinstance(record, float) and math.isinf(record):
        return grid.size - 1 if record > 0 else 0
    value = min(max(Fraction(record), Fraction(grid.lower)), Fraction(grid.upper))
    low, high = grid.first, grid.first + grid.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if point(middle) <= value else (low, middle)
    below, above = value - point(low), point(high) - value
    nearest = low if below < above or (below == above and low % 2 == 0) else high
    return nearest - grid.first
