"""Slow twin of ``Grid.encode``, one record at a time, in Fractions."""

import math
from fractions import Fraction


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
