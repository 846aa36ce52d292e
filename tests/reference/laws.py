"""Laws by brute force over all datasets, and by definition in high precision."""

from itertools import product

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


def geometric(k, scale):
    with mp.workdps(50):
        return -mp.expm1(-1 / mpf(scale)) * mp.exp(-k / mpf(scale)) if k >= 0 else mpf(0)
