"""Selection by definition: the exponential mechanism in high precision, permute-and-flip order by order."""

import math
from fractions import Fraction
from itertools import permutations

from mpmath import mp, mpf


def exponents(scores, rate):
    """rate * (largest score - score), exactly; NaN and None count as 0."""
    numbers = [Fraction(0) if s is None or s != s else s if abs(s) == math.inf else Fraction(s) for s in scores]
    top = max(numbers)
    return [Fraction(0) if s == top else math.inf if math.inf in (top, -s) else rate * (top - s) for s in numbers]


def power(exponent):
    """exp(-exponent)."""
    return mpf(0) if exponent == math.inf else mp.exp(-mpf(exponent.numerator) / mpf(exponent.denominator))


def exponential(scores, rate):
    with mp.workdps(60):
        weights = [power(y) for y in exponents(scores, rate)]
        total = mp.fsum(weights)
        return [w / total for w in weights]


def permute_and_flip(scores, rate):
    """All orders of the candidates; the first whose coin falls heads."""
    with mp.workdps(60):
        coins = [power(y) for y in exponents(scores, rate)]
        p = [mpf(0)] * len(coins)
        for order in permutations(range(len(coins))):
            tails = mpf(1)
            for i in order:
                p[i] += tails * coins[i]
                tails *= 1 - coins[i]
        return [value / math.factorial(len(coins)) for value in p]
