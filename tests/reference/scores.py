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
    rate = Fraction(epsilon) / (constant * spread(psi, last))
    return law_of(magnitudes(psi, data, last), rate, prior, excess)


def law_of(scores, rate, prior=uniform, excess=None):
    """The law of the magnitudes at all theta."""
    with mp.workdps(50):
        scores = scores if excess is None else [min(s, min(scores) + excess) for s in scores]
        weights = []
        for theta, score in enumerate(scores):
            weight, exponent = prior(theta), rate * (score - min(scores))
            power = mp.exp(-mpf(exponent.numerator) / exponent.denominator)
            weights.append(power * weight.numerator / weight.denominator)
        total = mp.fsum(weights)
        return [weight / total for weight in weights]


def bilinear(table):
    """A psi of two codes, linear between the points of a `RecordTable` in each, times the steps between these."""

    def psi(x, theta):
        rows, columns = divmod(x, table.record_gap), divmod(theta, table.parameter_gap)
        return sum(
            int(table.values[row, column]) * by * times
            for row, by in ((rows[0], table.record_gap - rows[1]), (rows[0] + 1, rows[1]))
            for column, times in ((columns[0], table.parameter_gap - columns[1]), (columns[0] + 1, columns[1]))
            if by and times
        )

    return psi


def spread_of_two(psi, records, parameters):
    """The most by which one record can change psi(x, theta), by trying all."""
    values = [[psi(x, theta) for x in range(records)] for theta in range(parameters)]
    return max(max(row) - min(row) for row in values)
