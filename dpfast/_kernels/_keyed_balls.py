"""Decisions in ball arithmetic of the noise of `dpfast.laws.keyed`; see `_balls`."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from dpfast._kernels._balls import PartialUniform, rational, working_bits


def exp_down(x: float | Fraction, bits: int) -> int:
    """Return the integer part of exp(x) * 2**bits, or one less; x >= 0."""
    with working_bits(bits + int(1.5 * x) + 64):
        floor = (arb(rational(x)).exp() * 2**bits).lower().floor()
        return int(floor.unique_fmpz())


def share_down(epsilon: float | Fraction, k: int, delta: Fraction) -> Fraction:
    """At most delta / (1 + e + e**2 + ... + e**(k - 1)), e = exp(epsilon / k), with a relative error below 2**-64."""
    if k == 1:
        return delta
    with working_bits(128 + 2 * k.bit_length()):
        x = arb(rational(epsilon))
        # A lower bound of 1 / sum as an integer over 2**64 times a power of two.
        inverse = (x / k).expm1() / x.expm1()
        shift = max(64 + 2 * k.bit_length() + int(1.5 * float(epsilon)), 64)
    with working_bits(128 + shift + 2 * k.bit_length()):
        x = arb(rational(epsilon))
        inverse = (x / k).expm1() / x.expm1()
        return delta * Fraction(int((inverse * 2**shift).lower().floor().unique_fmpz()), 2**shift)


def part_down(k: int, delta: Fraction) -> Fraction:
    """At most 1 - (1 - delta)**(1 / k), with a relative error below 2**-64."""
    if k == 1:
        return delta
    with working_bits(256):
        mantissa, exponent = (-((-arb(rational(delta))).log1p() / k).expm1()).lower().man_exp()
        return int(mantissa) * Fraction(2) ** int(exponent)


def truncation_up(epsilon: float | Fraction, delta: Fraction) -> int:
    """Return the least k, or one more, with e**(-epsilon k) / (1 + 2 sum of e**(-epsilon x) for x = 1..k) <= delta."""
    with working_bits(2600):
        x, d = arb(rational(epsilon)), arb(rational(delta))
        ratio = (x.expm1() + 2 * d) / (d * (x.expm1() + 2))
        bound = (ratio.log() / x).upper()
        return max(int(bound.ceil().unique_fmpz()), 0)


def passes(word: int, more: Callable[[], int], threshold: int, scale: Fraction, gap_scale: Fraction) -> bool:
    """Whether a uniform number is below p / q.

    p = P(Z >= threshold) for discrete Laplace noise of the scale, and q = 1 - e**(-1 / gap_scale) >= p.
    """
    u = PartialUniform(word, 64, more)
    while True:
        with working_bits(u.bits + 192):
            rate = 1 / arb(rational(scale))
            p = (-threshold * rate).exp() / (1 + (-rate).exp())
            edge = p / -((-1 / arb(rational(gap_scale))).expm1())
            if u.upper <= edge:
                return True
            if u.lower >= edge:
                return False
        u.refine()
