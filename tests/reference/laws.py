"""Laws by brute force over all datasets, and by definition in high precision."""

import math
from fractions import Fraction
from itertools import pairwise, product

from mpmath import mp, mpf


def order_statistic(data, k):
    return sorted(data)[k - 1]


def score(statistic, data, target, codes):
    """Least number of records to replace by any of `codes` so that statistic(data) == target."""
    return min(
        sum(a != b for a, b in zip(data, other, strict=True))
        for other in product(codes, repeat=len(data))
        if statistic(other) == target
    )


def depth(statistic, data, codes):
    """The greatest number of records whose replacement by any of `codes` leaves statistic(data) as it is."""
    others = [other for other in product(codes, repeat=len(data)) if statistic(other) != statistic(data)]
    return min((sum(a != b for a, b in zip(data, other, strict=True)) for other in others), default=len(data) + 1) - 1


def interpolated_scores(data, k, last):
    """The distance of k from the ranks of each code 0..last: an interval for a record, linear between two records.

    Below the least record the ranks start from 0 at code 0, which has all ranks below, too; similarly above.
    """
    records = [0, *sorted(data), last]

    def ranks(code):
        equal = [rank for rank, record in enumerate(records) if record == code]
        if not equal:
            below = max(rank for rank, record in enumerate(records) if record < code)
            place = below + Fraction(code - records[below], records[below + 1] - records[below])
            equal = [place]
        return -math.inf if code == 0 else min(equal), math.inf if code == last else max(equal)

    return [max(0, low - k, k - high) for low, high in map(ranks, range(last + 1))]


def inverse_sensitivity(scores, epsilon, cap):
    """P(g) proportional to exp(-epsilon/2 min(score(g), cap)), 50 digits."""
    with mp.workdps(50):
        weights = [mp.exp(-mpf(epsilon) / 2 * min(s, cap)) for s in scores]
        total = mp.fsum(weights)
        return [w / total for w in weights]


def rounded_laplace(z, scale):
    with mp.workdps(50):
        s = mpf(scale.numerator) / scale.denominator if hasattr(scale, "numerator") else mpf(scale)
        if z == 0:
            return -mp.expm1(-1 / (2 * s))
        return mp.exp(-abs(z) / s) * mp.sinh(1 / (2 * s))


def discrete_laplace(z, scale):
    with mp.workdps(50):
        return mp.tanh(1 / (2 * mpf(scale))) * mp.exp(-abs(z) / mpf(scale))


def staircase(z, scale, s, r):
    """By levels: 2 r - 1 integers on level 0, 2 s on each other."""
    with mp.workdps(50):
        epsilon = s / (mpf(scale.numerator) / scale.denominator if hasattr(scale, "numerator") else mpf(scale))
        level = 0 if abs(z) < r else 1 + (abs(z) - r) // s
        total = 2 * r - 1 + 2 * s * mp.exp(-epsilon) / (1 - mp.exp(-epsilon))
        return mp.exp(-epsilon * level) / total


def least_staircase(scale, s):
    """The r with the least mean magnitude, by enumeration of r and z."""

    def mean(r):
        reach = int(40 * max(scale, s / 4)) + 2 * s
        masses = [staircase(z, scale, s, r) for z in range(reach)]
        return mp.fsum(z * p for z, p in enumerate(masses))

    return min(range(1, s + 1), key=mean)


def geometric(k, scale):
    with mp.workdps(50):
        return -mp.expm1(-1 / mpf(scale)) * mp.exp(-k / mpf(scale)) if k >= 0 else mpf(0)


def student3_tail(t):
    """P(|T| > t), T Student's t with 3 degrees of freedom."""
    with mp.workdps(80):
        c = mpf(t) / mp.sqrt(3)
        return 1 - 2 / mp.pi * (mp.atan(c) + c / (1 + c * c))


def rounded_student3(z, scale):
    with mp.workdps(80):
        s = mpf(scale.numerator) / scale.denominator if hasattr(scale, "numerator") else mpf(scale)
        if z == 0:
            return 1 - student3_tail(1 / (2 * s))
        return (student3_tail((abs(z) - mpf("0.5")) / s) - student3_tail((abs(z) + mpf("0.5")) / s)) / 2


def gaussian_tail(z):
    """P(Z > z), Z standard normal, z >= 0."""
    with mp.workdps(60):
        return mp.erfc(mpf(z) / mp.sqrt(2)) / 2


def rounded_gaussian(z, sigma):
    with mp.workdps(60):
        s = mpf(sigma.numerator) / sigma.denominator if hasattr(sigma, "numerator") else mpf(sigma)
        if z == 0:
            return 1 - 2 * gaussian_tail(1 / (2 * s))
        return gaussian_tail((abs(z) - mpf("0.5")) / s) - gaussian_tail((abs(z) + mpf("0.5")) / s)


def laplace_divergence(epsilon, ratio, shift):
    """sup over events of P - e^epsilon Q: P Laplace of scale 1 at 0, Q of scale `ratio` at `shift`; exact by pieces.

    The log-ratio is linear between 0 and `shift` and on both sides: the event is an interval of each piece.
    """

    def excess(z):
        return -abs(z) + abs(z - shift) / ratio + mp.log(ratio) - epsilon

    def mass(low, high, scale, center):
        a, b = (low - center) / scale, (high - center) / scale
        if a >= 0:
            return (mp.exp(-a) - mp.exp(-b)) / 2
        return (mp.exp(b) - mp.exp(a)) / 2 if b <= 0 else 1 - (mp.exp(a) + mp.exp(-b)) / 2

    with mp.workdps(30):
        epsilon, ratio, shift, total = mpf(epsilon), mpf(ratio), mpf(shift), mpf(0)
        ends = [-mp.inf, mpf(0), shift, mp.inf] if shift else [-mp.inf, mpf(0), mp.inf]
        for low, high in pairwise(ends):
            a = low if mp.isfinite(low) else high - 1
            b = high if mp.isfinite(high) else low + 1
            slope = (excess(b) - excess(a)) / (b - a)
            if slope == 0:
                if excess(a) <= 0:
                    continue
            elif slope > 0:
                low = max(low, a - excess(a) / slope)
            else:
                high = min(high, a - excess(a) / slope)
            if low < high:
                total += mass(low, high, 1, 0) - mp.exp(epsilon) * mass(low, high, ratio, shift)
        return total


def permute_and_flip(exponents, weights, epsilon):
    """P of each point, of which there are weights[i] copies, by the expansion of the product in powers of u."""
    with mp.workdps(80):
        coins = [mp.exp(-mpf(epsilon) / 2 * y) for y in exponents]
        copies = [(i, p) for i, (p, w) in enumerate(zip(coins, weights, strict=True)) for _ in range(w)]
        found = []
        for i, p in enumerate(coins):
            others = [q for j, q in copies if j != i] + [p] * (weights[i] - 1)
            polynomial = [mpf(1)]
            for q in others:
                polynomial = [a - q * b for a, b in zip([*polynomial, 0], [0, *polynomial], strict=True)]
            found.append(weights[i] * p * mp.fsum(c / (k + 1) for k, c in enumerate(polynomial)))
        return found
