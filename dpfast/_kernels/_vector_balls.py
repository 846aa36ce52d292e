"""Decisions in ball arithmetic on noise of several coordinates, from the words of the compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from math import prod

from flint import arb, fmpq, fmpz

from dpfast._kernels._balls import LARGEST, PartialUniform, rational, working_bits


class _StandardNormal:
    """A standard normal number: its magnitude is exceeded with the probability of a uniform number, its sign a bit."""

    def __init__(self, word: int, more: Callable[[], int]) -> None:
        self._u, self._sign = PartialUniform(word >> 1, 63, more), 1 - 2 * (word & 1)
        self._bits, self._ball = 0, arb(0)

    def known_to(self, bits: int) -> arb:
        """Return a ball of the number, from at least `bits` bits of the uniform number and the working precision."""
        while self._u.bits < bits or not self._u.first:
            self._u.refine()
        if self._bits < self._u.bits:
            self._bits, self._ball = self._u.bits, self._sign * arb(2).sqrt() * self._u.ball.erfcinv()
        return self._ball


def round_wishart(
    words: Sequence[Sequence[Sequence[int]]],
    more: Callable[[], int],
    wanted: Iterable[tuple[int, int, float | Fraction]],
) -> list[int]:
    """Return the integers nearest to scale (G G' - H H')[i, j], for each (i, j, scale) of `wanted`.

    The two matrices of words are those of the standard normal numbers G and H: 63 bits of a uniform number and a sign.
    Saturates at +-(2**63 - 1).
    """

    @cache
    def row(matrix: int, i: int) -> list[_StandardNormal]:
        return [_StandardNormal(word, more) for word in words[matrix][i]]

    def entry(i: int, j: int, scale: fmpq) -> int:
        bits = 63
        while True:
            with working_bits(bits + 192):
                total = sum(
                    (
                        sign * a.known_to(bits) * b.known_to(bits)
                        for sign, matrix in ((1, 0), (-1, 1))
                        for a, b in zip(row(matrix, i), row(matrix, j), strict=True)
                    ),
                    start=arb(0),
                )
                nearest = (total * scale + fmpq(1, 2)).floor().unique_fmpz()
            if nearest is not None:
                return max(-LARGEST, min(int(nearest), LARGEST))
            bits += 64

    return [entry(i, j, rational(scale)) for i, j, scale in wanted]


class _Numbers:
    """Uniform numbers that are refined together: the i-th lies in [firsts[i], firsts[i] + 1) * 2**-bits."""

    def __init__(self, firsts: Sequence[int], bits: int, more: Callable[[], int]) -> None:
        self.firsts, self.bits, self._more = firsts, bits, more

    def refine(self) -> None:
        self.firsts = [(first << 64) | self._more() for first in self.firsts]
        self.bits += 64

    def neg_log_product(self) -> arb:
        product = arb(1)
        for start in range(0, len(self.firsts), 32):  # products of integers are faster, if these are short
            part = self.firsts[start : start + 32]
            exponent = fmpz(-self.bits * len(part))
            low, high = prod(part), prod(first + 1 for first in part)
            product *= arb((fmpz(low), exponent)).union(arb((fmpz(high), exponent)))
        return -product.log()

    def normals(self) -> list[arb]:
        """Return the z >= 0 with P(|Z| > z) = U for these numbers U, Z standard normal."""
        root, unit = arb(2).sqrt(), arb((fmpz(1), fmpz(-self.bits - 1)))
        return [root * (arb(2 * first + 1, 1) * unit).erfcinv() for first in self.firsts]


def _nearest(y: arb) -> int | None:
    """Return the integer nearest to y >= 0, at most 2**63 - 1, or None if the ball leaves it open."""
    if y.lower() > LARGEST:
        return LARGEST
    nearest = (y + fmpq(1, 2)).floor().unique_fmpz()
    return None if nearest is None else min(int(nearest), LARGEST)


def round_box(
    words: Sequence[int], radii: Sequence[int], more: Callable[[], int], scales: Sequence[float], wanted: Sequence[int]
) -> list[int]:
    """Return the integers nearest to +-r scales_i U_i for the wanted i, r = -log of the product of the numbers of
    `radii`.

    U_i is the uniform number whose first 63 bits are those of words[i], its last bit the sign.
    """
    factors = _Numbers(radii, 64, more)
    length = lru_cache(maxsize=1)(lambda bits: factors.neg_log_product())

    def magnitude(i: int) -> int:
        u, scale = PartialUniform(words[i] >> 1, 63, more), rational(scales[i])
        while True:
            with working_bits(factors.bits + 64):
                nearest = _nearest(length(factors.bits) * scale * u.ball)
            if nearest is not None:
                return nearest
            (u if u.bits < factors.bits else factors).refine()

    return [-magnitude(i) if words[i] & 1 else magnitude(i) for i in wanted]


def round_ball(
    words: Sequence[int], radii: Sequence[int], more: Callable[[], int], scales: Sequence[float], wanted: Sequence[int]
) -> list[int]:
    """Return the integers nearest to +-r scales_i z_i / ||z|| for the wanted i, z the normal magnitudes of the first d
    words.

    r is half the sum of the squares of the magnitudes of all words, plus -log of the product of the numbers of `radii`.
    A word's last bit is the sign.
    """
    magnitudes, factors = _Numbers([word >> 1 for word in words], 63, more), _Numbers(radii, 64, more)

    @lru_cache(maxsize=1)
    def parts(bits: int) -> tuple[list[arb], arb]:
        normals = magnitudes.normals()
        squares = [z * z for z in normals]
        length = sum(squares, arb(0)) / 2 + factors.neg_log_product()
        return normals, length / sum(squares[: len(scales)], arb(0)).sqrt()

    def magnitude(i: int) -> int:
        while True:
            with working_bits(magnitudes.bits + 64):
                normals, unit = parts(magnitudes.bits)
                nearest = _nearest(unit * normals[i] * rational(scales[i]))
            if nearest is not None:
                return nearest
            magnitudes.refine()
            factors.refine()

    return [-magnitude(i) if words[i] & 1 else magnitude(i) for i in wanted]
