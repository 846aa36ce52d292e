"""Slow twin of ``dpfast._kernels._select``: keys one by one in exact arithmetic, then a full sort."""

import math
from fractions import Fraction
from functools import lru_cache

from tests.reference import grid as grid_reference


def key(record, *, lower, upper, step, missing):
    """The key of one NumPy scalar."""
    if record.dtype.kind == "f":
        return missing if math.isnan(record) else float(record)
    value = int(record)
    return float(value) if record.dtype.itemsize < 8 else rounded(value, lower, upper, step)


@lru_cache(2**16)
def rounded(value, lower, upper, step):
    """The key of an integer of 64 bits."""
    if step > 1:
        value = round(Fraction(value, int(step))) * int(step)  # half to even
    return float(min(max(value, Fraction(lower)), Fraction(upper)))


def window(values, first, last, *, lower, upper, step, missing):
    """Sorted keys of ranks first..last, a list; infinities stand for the ranks outside 1..n."""
    keys = sorted(key(record, lower=lower, upper=upper, step=step, missing=missing) for record in values)
    return [
        -math.inf if rank < 1 else math.inf if rank > len(keys) else keys[rank - 1] for rank in range(first, last + 1)
    ]


def between(values, last, next, grid):
    """The sum of the codes of the ranks strictly between."""
    codes = sorted(grid_reference.encode(values.tolist(), grid))
    return sum(codes[max(last, 0) : max(next - 1, 0)])
