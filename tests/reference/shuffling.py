"""Slow twins of dpfast/core/shuffling.py: reports in random order, by enumeration and by sums over all outcomes."""

from fractions import Fraction
from itertools import combinations_with_replacement, permutations
from math import comb

import numpy as np
from mpmath import mp, mpf
from scipy.stats import binom


def k_ary_response(k, growth):
    """The matrix of report probabilities of k-ary randomised response; growth is exp(epsilon0)."""
    return [[Fraction(growth if x == y else 1) / (growth + k - 1) for y in range(k)] for x in range(k)]


def counts_law(matrix, records):
    """The exact law of the number of reports of each kind."""
    law = {(0,) * len(matrix[0]): Fraction(1)}
    for record in records:
        after = {}
        for counts, mass in law.items():
            for report, chance in enumerate(matrix[record]):
                more = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
                after[more] = after.get(more, 0) + mass * chance
        law = after
    return law


def hockey_stick(p, q, threshold):
    return sum((max(mass - threshold * q.get(counts, 0), 0) for counts, mass in p.items()), Fraction(0))


def worst_delta(matrix, n, threshold):
    """The largest hockey-stick divergence over all neighbouring data sets of n records."""
    worst = Fraction(0)
    for others in combinations_with_replacement(range(len(matrix)), n - 1):
        laws = [counts_law(matrix, (*others, record)) for record in range(len(matrix))]
        worst = max(worst, *(hockey_stick(p, q, threshold) for p, q in permutations(laws, 2)))
    return worst


def worst_composed(matrix, n, threshold):
    """The largest divergence of two independent batches on the same data sets."""
    worst = Fraction(0)
    for others in combinations_with_replacement(range(len(matrix)), n - 1):
        laws = [counts_law(matrix, (*others, record)) for record in range(len(matrix))]
        for p, q in permutations(laws, 2):
            pairs = [(p[a] * p[b], q.get(a, 0) * q.get(b, 0)) for a in p for b in p]
            worst = max(worst, sum((max(x - threshold * y, 0) for x, y in pairs), Fraction(0)))
    return worst


def by_categories(n, epsilon, target, k):
    """``E[(H_1 + ... + H_n)_+] / n`` in doubles, by a sum over the third reports and the telling ones."""
    E, e = np.exp(epsilon), np.exp(target)
    p, total = 1 / (E + k - 1), 0.0
    for third in range(n + 1):
        weight = binom.pmf(third, n, (k - 2) * p)
        if not weight:
            continue
        telling = np.arange(n - third + 1)
        edge = ((E * e - 1) * telling + (e - 1) * third) / ((E - 1) * (1 + e))
        least = np.floor(edge).astype(int) + 1
        tail = binom.sf(least - 1, telling, 0.5)
        mean = telling / 2 * binom.sf(least - 2, np.maximum(telling - 1, 0), 0.5) - least * tail
        value = np.where(least <= telling, (least - edge) * tail + mean, 0.0)
        total += weight * np.sum(binom.pmf(telling, n - third, 2 * p / (1 - (k - 2) * p)) * value)
    return total * (E - 1) * (1 + e) / n


def renyi(n, epsilon, order):
    """The Renyi divergence of the dominating pair of any reports, in mpmath: a double sum."""
    E, a = mp.exp(mpf(epsilon)), mpf(order)
    p, moment = 1 / (E + 1), mpf(0)
    for first in range(n + 1):
        for second in range(n + 1 - first):
            if first + second:
                mass = comb(n, first) * comb(n - first, second) * p ** (first + second)
                mass *= (1 - 2 * p) ** (n - first - second) / n
                moment += mass * (E * first + second) ** a * (first + E * second) ** (1 - a)
    return mp.log(moment) / (a - 1)
