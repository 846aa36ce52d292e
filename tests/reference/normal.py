"""A proof by computer of the error bounds of the inverse normal in src/shared/normal.h.

The claims are in docs/proofs/rounded-gaussian.md.

Taylor models in ball arithmetic bound the error of the approximations over all z of a range, and a forward analysis of
rounding bounds that of the doubles. Every ball encloses the exact values, so what comes out is a theorem about the
coefficients in the header.
"""

import re
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

from flint import arb, arb_series, ctx, fmpq

HEADER = Path(__file__).parents[2] / "src" / "shared" / "normal.h"
UNIT = arb(2) ** -53


def constants(function):
    """The hexadecimal constants in the body of a C function of the header, in order of appearance."""
    body = re.search(rf"double {function}\(.*?\n}}", HEADER.read_text(), re.DOTALL).group()
    return [float.fromhex(text.replace(" ", "")) for text in re.findall(r"-? ?0x[0-9a-f.]+p[-+]?\d+", body)]


def center_coefficients():
    """Of r**0, r**1, ... above and below, r = square - x**2, and the square, which comes first in the header."""
    square, *highest_first = constants("dpfast_normal_of_center")
    return highest_first[0::2][::-1], highest_first[1::2][::-1], square


def shoulder_coefficients():
    """Of s**0, s**1, ..., s = t - 2.5; in the header even and odd ones take turns, the highest first."""
    highest_first = constants("dpfast_normal_shoulder")
    pairs = zip(highest_first[0::2], highest_first[1::2], strict=True)
    return [c for pair in list(pairs)[::-1] for c in pair]


def tail_coefficients():
    """Of s**0, s**1, ..., s = y + shift, and the shift, which comes first in the header."""
    shift, *highest_first = constants("dpfast_normal_tail")
    return highest_first[::-1], shift


def exactly(x):
    f = Fraction(x)
    return arb(fmpq(f.numerator, f.denominator))


def top(x):
    """The upper end of |x|."""
    return abs(arb(x)).upper()


class Rounded:
    """A double: the ball of what exact arithmetic would give, and a bound on the error, both over a range of inputs."""

    def __init__(self, exact, error=0):
        self.exact, self.error = arb(exact), arb(error)

    def _rounded(self, exact, error):
        return Rounded(exact, error + UNIT * (top(exact) + error))

    def __add__(self, other):
        return self._rounded(self.exact + other.exact, self.error + other.error)

    def __sub__(self, other):
        return self._rounded(self.exact - other.exact, self.error + other.error)

    def __mul__(self, other):
        error = top(self.exact) * other.error + top(other.exact) * self.error + self.error * other.error
        return self._rounded(self.exact * other.exact, error)

    def __truediv__(self, other):
        low = abs(other.exact).lower()
        error = (self.error + top(self.exact / other.exact) * other.error) / (low - other.error)
        return self._rounded(self.exact / other.exact, error)

    def log(self):
        """Minus the logarithm by `dpfast_log`, right to 2**-50 (1 + |exact|)."""
        exact = -self.exact.log()
        before = self.error / (self.exact.lower() - self.error)
        return Rounded(exact, before + arb(2) ** -50 * (top(exact) + before + 1))

    def sqrt(self):
        return self._rounded(self.exact.sqrt(), self.error / (self.exact.lower() - self.error).sqrt())


def horner(coefficients, s):
    """The polynomial at s, as the doubles compute it; coefficients from the lowest."""
    value = Rounded(exactly(coefficients[-1]))
    for c in coefficients[-2::-1]:
        value = value * s + Rounded(exactly(c))
    return value


def polynomial(coefficients, s):
    """In exact arithmetic: a ball, or a series with balls as coefficients."""
    value = exactly(coefficients[-1])
    for c in coefficients[-2::-1]:
        value = value * s + exactly(c)
    return value


def hull(low, high):
    """The ball of a monotone function between its values at the ends of a range."""
    return low.union(high)


def taylor_bound(low, high, coefficients, function):
    """An upper bound of |function| over [low, high]: a polynomial at the middle, the last coefficient over the range.

    `coefficients(v, n)` are the first n Taylor coefficients of the inner function over the ball v, and `function` turns
    the power series v + h and that inner series into the one to be bounded.
    """
    order, middle, radius = 12, (low + high) / 2, (high - low) / 2
    ctx.cap = order + 1
    here, everywhere = (
        function(arb_series([v, 1], order + 1), arb_series(coefficients(v, order + 1), order + 1))
        for v in (middle, arb(middle.mid(), radius.upper()))
    )
    return sum((top(here[j]) * radius**j for j in range(order)), top(everywhere[order]) * radius**order)


def density(z):
    return (-z * z / 2).exp() / (2 * arb.pi()).sqrt()


def square_of(u):
    """An upper bound of z**2 with P(|Z| > z) = u."""
    z = arb(-NormalDist().inv_cdf(float(u) / 2)) + arb(2) ** -30
    assert (z / arb(2).sqrt()).erfc() < u
    return z * z


def half_widths(v, n):
    """Taylor coefficients at v of g(v) = sqrt(2 / pi) times the integral of exp(-v s**2 / 2), s from 0 to 1.

    With v = z**2, sqrt(v) g(v) = P(|Z| < z). Each derivative is monotone in v.
    """
    coefficients, factor = [], (2 / arb.pi()).sqrt()
    for k in range(n):
        a = arb(2 * k + 1) / 2
        ends = [(-end / 2).hypgeom_1f1(a, a + 1) for end in (v.lower(), v.upper())]
        coefficients.append(factor / (2 * k + 1) * hull(*ends))
        factor *= arb(-1) / (2 * (k + 1))
    return coefficients


def adaptively(low, high, parts, bound):
    """(low, high, bound) over ranges that cover [low, high]: halved until `bound` is a number below 1."""
    width = (high - low) / parts
    ranges = [(low + j * width, low + (j + 1) * width) for j in range(parts)]
    while ranges:
        a, b = ranges.pop()
        value = bound(a, b)
        if value.is_finite() and value < 1:
            yield a, b, value
        else:
            assert b - a > arb(2) ** -30, "the bound is not below 1"
            ranges += [(a, (a + b) / 2), ((a + b) / 2, b)]


def center_errors():
    """(z, bound) over ranges of z: |z - dpfast_normal_of_center| in units of 2**-53, for every U within 2**-64.

    From U = 1 down to 2**-3 - 2**-57; z is the lower end of the range.
    """
    above, below, square = center_coefficients()

    def approximation(low, high):
        def difference(v, g):
            r = arb(square) - v * g * g
            return polynomial(above, r) / polynomial(below, r) - 1 / g

        return taylor_bound(low, high, half_widths, difference) / UNIT

    for low, high, approximated in adaptively(arb(0), square_of(arb(2) ** -3 - arb(2) ** -57), 64, approximation):
        x = Rounded(1) - uniform(low, high)
        r = Rounded(square) - x * x
        # The error of r is common to both polynomials: what it does to their quotient is its size times the slope.
        given = arb(r.exact.mid(), r.exact.rad() + r.error)
        quotient = horner(above, Rounded(given)) / horner(below, Rounded(given))
        ctx.cap = 2
        slope = (polynomial(above, arb_series([given, 1], 2)) / polynomial(below, arb_series([given, 1], 2)))[1]
        doubles = (x * Rounded(quotient.exact, quotient.error + top(slope) * r.error)).error / UNIT
        yield low.sqrt(), doubles + top(x.exact) * approximated + width(high)


def uniform(low, high):
    """U as a double, z**2 in [low, high]."""
    u = hull(*((end.sqrt() / arb(2).sqrt()).erfc() for end in (low, high)))
    return Rounded(u, UNIT * top(u))


def width(square):
    """By how much z changes with U within 2**-64, in units of 2**-53, z**2 at most this."""
    return arb(1.001) * arb(2) ** -11 / (2 * density(square.sqrt()))


def shoulder_errors():
    """(z, bound) over ranges of z: |z - dpfast_normal_of_shoulder| in units of 2**-53, for every U within 2**-64.

    From U = 1 down to 2**-8 - 2**-62; z is the lower end of the range.
    """
    coefficients = shoulder_coefficients()
    last = square_of(arb(2) ** -8 - arb(2) ** -62)

    def approximation(low, high):
        def difference(v, g):
            return polynomial(coefficients, -(1 - v * g * g).log() - arb(2.5)) - 1 / g

        return taylor_bound(low, high, half_widths, difference) / UNIT

    for low, high, approximated in adaptively(arb(0), last, 64, approximation):
        u = uniform(low, high)
        x = Rounded(1) - u
        s = (u * (Rounded(1) + x)).log() - Rounded(2.5)
        square = s * s
        even, odd = horner(coefficients[0::2], square), horner(coefficients[1::2], square)
        doubles = (x * (even + s * odd)).error / UNIT
        yield low.sqrt(), doubles + top(x.exact) * approximated + width(high)


def erfc_coefficients(z, n):
    ctx.cap = n
    return (arb_series([z, 1], n) / arb(2).sqrt()).erfc().coeffs()


def tail_errors():
    """(z, bound) over ranges of z: |z - dpfast_normal_of_tail| in units of 2**-53, for U = m 2**-64 alone.

    From U = 2**-8 down to 2**-52.
    """
    coefficients, shift = tail_coefficients()

    def approximation(low, high):
        def difference(z, erfc):
            y = (-erfc.log()).rsqrt()
            return polynomial(coefficients, y + arb(shift)) - z * y

        return taylor_bound(low, high, erfc_coefficients, difference) / UNIT

    first, last = (square_of(arb(2) ** power).sqrt() for power in (-8, -52))
    for low, high, approximated in adaptively(first - arb(2) ** -20, last, 64, approximation):
        u = hull(*((end / arb(2).sqrt()).erfc() for end in (low, high)))
        e = Rounded(u).log()
        r = e.sqrt()
        y = Rounded(1) / r
        p = horner(coefficients, y + Rounded(shift))
        yield low, (r * p).error / UNIT + top(r.exact) * approximated
