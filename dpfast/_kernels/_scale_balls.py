"""Decisions in ball arithmetic of draws of large scales, which one more word refines.

https://dpfast.readthedocs.io/en/latest/proofs/large-scales.html
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from flint import arb, fmpq, fmpz

from dpfast._kernels._balls import LARGEST, PartialUniform, below, rational, working_bits


def refined_geometric(draw: int, word: int, more: Callable[[], int], scale: float | Fraction, halvings: int) -> int:
    """Return a geometric draw of scale * 2**halvings, from one of `scale` and a word.

    It is floor(2**halvings (draw + V)), V of density proportional to exp(-V / scale) on [0, 1):
    https://dpfast.readthedocs.io/en/latest/proofs/large-scales.html.
    """
    rate = 1 / rational(scale)
    place = _place(word, more, lambda v: v * rate)
    return min((draw << halvings) + (place << halvings >> 32), LARGEST)


def refined_laplace(draw: int, word: int, more: Callable[[], int], scale: float | Fraction, halvings: int) -> int:
    """Return a rounded Laplace draw of scale * 2**halvings, from one of `scale` and a word."""
    rate = 1 / rational(scale)
    return _refined(draw, _place(word, more, lambda v: (v if draw else abs(v - fmpq(1, 2))) * rate), halvings)


def refined_gaussian(draw: int, word: int, more: Callable[[], int], sigma: float | Fraction, halvings: int) -> int:
    """Return a rounded Gaussian draw of sigma * 2**halvings, from one of `sigma` and a word."""
    rate, width = 1 / (2 * rational(sigma) ** 2), 2 * abs(draw) - 1

    def exponent(v: arb) -> arb:
        return (v * (width + v) if draw else (v - fmpq(1, 2)) ** 2) * rate

    return _refined(draw, _place(word, more, exponent), halvings)


def _refined(draw: int, place: int, halvings: int) -> int:
    """2**halvings (|draw| - 1/2 + V), rounded, with the sign of the draw; `place` has the first 32 bits of V."""
    lower = ((2 * abs(draw) - 1) << halvings) >> 1
    magnitude = min(lower + (((place << halvings) + (1 << 31)) >> 32), LARGEST)
    return -magnitude if draw < 0 else magnitude


def _place(word: int, more: Callable[[], int], exponent: Callable[[arb], arb]) -> int:
    """Return the first 32 bits of a V in [0, 1) of density proportional to exp(-exponent(V)), exponent >= 0.

    V starts with the first half of a word, and is kept if a number A that starts with the other half is below
    exp(-exponent(V)); else another word follows.
    """
    while True:
        first = word >> 32
        v, a = PartialUniform(first, 32, more), PartialUniform(word & 0xFFFFFFFF, 32, more)
        while True:
            with working_bits(v.bits + 192):
                edge = (-exponent(v.ball)).exp()
                if a.upper <= edge:
                    return first
                if a.lower >= edge:
                    break
            v.refine()
            a.refine()
        word = more()


def _further_level(rate: Fraction, s: int, r: int) -> arb:
    """P(level = G + 1), G = floor(rate E): ``(1 - share) q / (share + (1 - share) q)``, q = exp(-1 / rate)."""
    share = fmpq(2 * r - 1, 2 * s)
    rest = (1 - share) * arb(-1 / rational(rate)).exp()
    return rest / (share + rest)


@lru_cache(maxsize=256)
def staircase_threshold(rate: Fraction, s: int, r: int) -> int:
    """Return the first 64 bits of the probability that the level of staircase noise is one more
    than floor(rate * E).
    """
    precision = 192
    while True:  # the probability is irrational
        with working_bits(precision):
            digits = (_further_level(rate, s, r) * fmpz(2) ** 64).floor().unique_fmpz()
        if digits is not None:
            return int(digits)
        precision *= 2


def staircase_further(word: int, more: Callable[[], int], rate: Fraction, s: int, r: int) -> bool:
    """Whether the uniform number that starts with this word is below the probability of `staircase_threshold`."""
    return below(word, more, lambda: _further_level(rate, s, r))
