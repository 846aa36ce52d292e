"""Conversion of exact numbers to doubles, rounded in the direction in the function's name."""

from __future__ import annotations

import math
from fractions import Fraction


def up(x: Fraction) -> float:
    """The least double that is not below x; infinity beyond the largest double."""
    try:
        y = float(x)
    except OverflowError:
        return math.inf
    return y if Fraction(y) >= x else math.nextafter(y, math.inf)


def down(x: Fraction) -> float:
    """The largest double that is not above x, and at least 0."""
    y = float(max(x, Fraction()))
    return y if Fraction(y) <= x else math.nextafter(y, 0.0)


def double_up(x: float | Fraction) -> float:
    """The least double that is not below x."""
    return x if isinstance(x, float) else up(x)
