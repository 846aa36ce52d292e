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
