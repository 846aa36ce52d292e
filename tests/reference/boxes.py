"""Nested boxes by plain loops: scores by counting, laws in mpmath, volumes in integers."""

import itertools

from mpmath import mp, mpf


def median_score(column, g, last, radius):
    """The least number of records to replace so that the lower median is within radius of g."""
    k = (len(column) + 1) // 2
    return min(
        max(0, sum(x < h for x in column) - k + 1, k - sum(x <= h for x in column))
        for h in range(max(g - radius, 0), min(g + radius, last) + 1)
    )


def score(rows, g, lasts, radius=0):
    """The greatest of the coordinates' scores."""
    columns = list(zip(*rows, strict=True))
    return max(median_score(c, x, last, radius) for c, x, last in zip(columns, g, lasts, strict=True))


def median_law(rows, lasts, epsilon, cap, radius=0):
    """P(g) proportional to exp(-epsilon / 2 * min(score, cap)) on all points, as a dictionary."""
    with mp.workdps(40):
        points = list(itertools.product(*(range(last + 1) for last in lasts)))
        weights = [mp.exp(-mpf(epsilon) / 2 * min(score(rows, g, lasts, radius), cap)) for g in points]
        total = mp.fsum(weights)
        return {g: w / total for g, w in zip(points, weights, strict=True)}


def tested_law(rows, *, epsilon, test_epsilon, cap, threshold, bound, radius):
    """Propose, test, release for medians: {point: probability}, None for the failure."""
    n, d = len(rows), len(rows[0])
    k = (n + 1) // 2
    columns = [sorted(c) for c in zip(*rows, strict=True)]

    def box(t):
        return [range(c[k - 1 - t] - radius, c[k - 1 + t] + radius + 1) for c in columns]

    def volume(t):
        product = 1
        for sides in box(t):
            product *= len(sides)
        return product

    gamma = -1
    while cap + 1 + gamma + 1 < min(k, n - k + 1) and volume(cap + 1 + gamma + 1) <= bound:
        gamma += 1
    with mp.workdps(40):
        q, f = mp.exp(-mpf(epsilon) / 2), mp.exp(-mpf(test_epsilon))
        margin = threshold - gamma
        passing = f**margin / (1 + f) if margin >= 1 else 1 - f ** (1 - margin) / (1 + f)
        weights = {}
        for g in itertools.product(*box(cap)):
            s = next(t for t in range(cap + 1) if all(g[j] in box(t)[j] for j in range(d)))
            weights[g] = q**s
        total = mp.fsum(weights.values())
        return {None: 1 - passing} | {g: passing * w / total for g, w in weights.items()}
