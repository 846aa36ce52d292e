"""A window on a circle of M directions by definition: laws in rationals, the sampler as a plain loop."""

import cmath
import math
from fractions import Fraction


def law(turns, directions, width, p):
    """P(direction) of an angle, a rational number of turns: rounded down or up, then in the window or not."""
    place = turns * directions
    lower = math.floor(place)
    found = [Fraction(0)] * directions
    for rounded, weight in ((lower, 1 - (place - lower)), (lower + 1, place - lower)):
        window = {(rounded + step) % directions for step in range(-(width // 2), width // 2 + 1)}
        for i in range(directions):
            found[i] += weight * (p / width if i in window else (1 - p) / (directions - width))
    return found


def mean(pmf):
    """The mean of the directions, as a complex number."""
    return sum(float(p) * cmath.exp(2j * math.pi * i / len(pmf)) for i, p in enumerate(pmf))


def shrink(directions, width, ratio):
    """The norm of that mean for an angle that is a direction, if the coin were ideal."""
    inside = sum(math.cos(2 * math.pi * i / directions) for i in range(-(width // 2), width // 2 + 1))
    return (ratio - 1) * inside / (ratio * width + directions - width)


def directions(turns, dithers, offsets, count, width):
    """Angles in units of 2**-64, words to round them with, offsets from the start of the window."""
    step = 2**64 // count
    return [
        ((angle + dither * step // 2**64) % 2**64 // step - width // 2 + offset) % count
        for angle, dither, offset in zip(turns, dithers, offsets, strict=True)
    ]
