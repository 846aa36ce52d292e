"""M-estimators by definition: S summed record by record, the law by enumeration of the grid in 50 digits."""

from fractions import Fraction

from mpmath import mp, mpf


def huber(k):
    return lambda d: max(-k, min(k, d))


def pinball(q):
    return lambda d: 1 - Fraction(q) if d >= 0 else -Fraction(q)


def table(knots, values):
    """Linear between knots given in steps, constant outside; exact."""
    knots, values = [Fraction(t) for t in knots], [Fraction(v) for v in values]

    def psi(d):
        if d <= knots[0]:
            return values[0]
        for i in range(1, len(knots)):
            if d <= knots[i]:
                return values[i - 1] + (values[i] - values[i - 1]) * (d - knots[i - 1]) / (knots[i] - knots[i - 1])
        return values[-1]

    return psi


def spread(psi, last):
    """The most by which one record can change psi(theta - x)."""
    return max(psi(theta) - psi(theta - last) for theta in range(last + 1))


def magnitudes(psi, data, last):
    return [abs(sum(psi(theta - x) for x in data)) for theta in range(last + 1)]


def uniform(theta):
    return Fraction(1)


def cauchy(center, width):
    return lambda theta: Fraction(1, width**2 + (theta - center) ** 2)


def law(psi, data, last, epsilon, prior=uniform, excess=None, constant=2):
    """P(theta) proportional to prior(theta) exp(-epsilon / (constant W) min(|S(theta)|, M + excess))."""
    with mp.workdps(50):
        scores = magnitudes(psi, data, last)
        scores = scores if excess is None else [min(s, min(scores) + excess) for s in scores]
        rate = Fraction(epsilon) / (constant * spread(psi, last))
        weights = []
        for theta, score in enumerate(scores):
            weight, exponent = prior(theta), rate * (score - min(scores))
            power = mp.exp(-mpf(exponent.numerator) / exponent.denominator)
            weights.append(power * weight.numerator / weight.denominator)
        total = mp.fsum(weights)
        return [weight / total for weight in weights]
