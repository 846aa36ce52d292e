"""Noise by a norm, from its words in high precision, and its law by integration."""

from fractions import Fraction
from itertools import pairwise

from mpmath import mp, mpf


def exactly(x):
    """A float or fraction in the working precision."""
    fraction = Fraction(x)
    return mpf(fraction.numerator) / fraction.denominator


def gamma_between(words):
    """The ends of -log(product of U), U in [word, word + 1] 2**-64."""
    return [-mp.fsum(mp.log(mpf(word + more) / 2**64) for word in words) for more in (1, 0)]


def box_between(words, radii, scales):
    """For each coordinate the least and the greatest integer that more words can lead to."""
    low, high = gamma_between(radii)
    for word, scale in zip(words, scales, strict=True):
        ends = [r * exactly(scale) * mpf((word >> 1) + more) / 2**63 for r, more in ((low, 0), (high, 1))]
        magnitudes = [int(mp.floor(end + mpf("0.5"))) for end in ends]
        yield sorted(-m for m in magnitudes) if word & 1 else magnitudes


def box_probability(z, scales):
    """The integral of exp(-r) times the volume of (cell of z) in r times the box, over d! times the box's volume."""
    s, d = [exactly(scale) for scale in scales], len(scales)
    half = mpf("0.5")

    def volume(r):
        sides = [max(min(k + half, r * c) - max(k - half, -r * c), 0) for k, c in zip(z, s, strict=True)]
        return mp.fprod(sides)

    ends = sorted({mpf(0), *(max((abs(k) + e) / c, 0) for k, c in zip(z, s, strict=True) for e in (-half, half))})
    total = mp.exp(-ends[-1])
    for low, high in pairwise(ends):
        pieces = mp.linspace(low, high, 2 + int((high - low) / 8))
        total += mp.quad(lambda r: mp.exp(-r) * volume(r), pieces)
    return total / (mp.factorial(d) * mp.fprod(2 * c for c in s))


def ball_unit(words, radii, d):
    """r / ||g|| of a row of d coordinates, from the middles of the intervals of its numbers."""
    normals = [normal(word) for word in words]
    length = mp.fsum(z * z for z in normals) / 2 + mp.fsum(gamma_between(radii)) / 2
    return length / mp.sqrt(mp.fsum(z * z for z in normals[:d]))


def normal(word):
    """The z with P(|Z| > z) = U in the middle of the interval of the word's first 63 bits."""
    return mp.sqrt(2) * mp.erfinv(1 - (mpf(int(word) >> 1) + mpf("0.5")) / 2**63)


def ball_point(words, radii, scales):
    """The real magnitudes before rounding, from the middles of the intervals of all numbers."""
    unit = ball_unit(words, radii, len(scales))
    return [unit * exactly(scale) * normal(word) for scale, word in zip(scales, words, strict=False)]


def ball_probability(z, scales):
    """The integral of exp(-||x||) over the cell of z in units of the scales, d <= 3, as a flux through its sides.

    exp(-||x||) is the divergence of -x Gamma(d, ||x||) / ||x||^d, or for the cell of 0 of x gamma(d, ||x||) / ||x||^d.
    """
    d, s, half = len(scales), [exactly(scale) for scale in scales], mpf("0.5")
    low, high = ([(k + e) / c for k, c in zip(z, s, strict=True)] for e in (-half, half))

    def flux(*x):
        norm = mp.sqrt(mp.fsum(part * part for part in x))
        return (mp.gammainc(d, 0, norm) if not any(z) else -mp.gammainc(d, norm)) / norm**d

    total = mpf(0)
    for i in range(d):
        others = [[low[j], high[j]] for j in range(d) if j != i]
        for side, sign in ((low[i], -1), (high[i], 1)):

            def on_side(*x, i=i, side=side):
                return flux(*x[:i], side, *x[i:])

            total += sign * side * (mp.quad(on_side, *others) if others else on_side())
    volume = mp.pi ** (mpf(d) / 2) / mp.gamma(mpf(d) / 2 + 1)
    return total / (mp.factorial(d) * volume)
