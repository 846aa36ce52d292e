"""Slow twins of smooth sensitivity: over all data sets by definition, and over all pairs of a window."""

import math
from collections import Counter
from itertools import combinations_with_replacement


def stretch(lower, upper, weights):
    """The largest discounted gap, all pairs."""
    pairs = ((u, v) for u in range(len(upper)) for v in range(len(lower)) if max(u, v) < len(weights))
    return max((weights[v] * (weights[u] * (upper[u] - lower[v])) for u, v in pairs), default=0.0)


def datasets(n, last):
    """Every multiset of n codes in 0..last, as a sorted tuple."""
    return list(combinations_with_replacement(range(last + 1), n))


def neighbors(data, last):
    """Every multiset with one record replaced."""
    return {tuple(sorted((*data[:i], code, *data[i + 1 :]))) for i in range(len(data)) for code in range(last + 1)}


def distance(data, other):
    """Records to replace."""
    return len(data) - sum((Counter(data) & Counter(other)).values())


def local_sensitivity(statistic, data, last):
    return max(abs(statistic(data) - statistic(other)) for other in neighbors(data, last))


def smooth_sensitivity(statistic, n, last, beta):
    """max over y of exp(-beta d(x, y)) LS(y), for every x: a dictionary."""
    every = datasets(n, last)
    local = {data: local_sensitivity(statistic, data, last) for data in every}
    discount = [math.exp(-beta * d) for d in range(n + 1)]
    return {data: max(discount[distance(data, other)] * local[other] for other in every) for data in every}


def sensitivity_at(statistic, data, k, last):
    """The largest change by one record of all data in which at most k records differ."""
    near = [other for other in datasets(len(data), last) if distance(data, other) <= k]
    return max(local_sensitivity(statistic, other, last) for other in near)
