"""Conversion of exact numbers to doubles, rounded in the direction in the function's name."""

from __future__ import annotations

import math
from fractions import Fraction


def up(x: Fraction) -> float:
    """Return the least double that is not below x; infinity beyond the largest double."""
    try:
        y = float(x)
    except OverflowError:
        return math.inf
    return y if Fraction(y) >= x else math.nextafter(y, math.inf)


def down(x: Fraction) -> float:
    """Return the largest double that is not above x, and at least 0."""
    y = float(max(x, Fraction()))
    return y if Fraction(y) <= x else math.nextafter(y, 0.0)


def outward(low: Fraction, high: Fraction) -> tuple[float, float]:
    """Return the largest double that is not above `low`, which may be negative, and the least that
    is not below `high`.
    """
    return 0.0 - up(-low), up(high)


def double_up(x: float | Fraction) -> float:
    """Return the least double that is not below x."""
    return x if isinstance(x, float) else up(x)


def root_up(x: Fraction) -> float:
    """Return a square root as a double, not below it; the root itself where that is a double."""
    root, shift = _root(x)
    return up(Fraction(root if root**2 == x * shift**2 else root + 1, shift))


def root_down(x: Fraction) -> float:
    """Return a square root as a double, not above it, and at least 0; the root itself where that is a double."""
    root, shift = _root(max(x, Fraction()))
    return down(Fraction(root, shift))


def _root(x: Fraction) -> tuple[int, int]:
    """Return the integer part of shift * sqrt(x), of at least 64 bits, and the shift, a power of two."""
    shift = 1 << max(0, 64 + (x.denominator.bit_length() - x.numerator.bit_length()) // 2 + 1)
    return math.isqrt(x.numerator * shift**2 // x.denominator), shift
