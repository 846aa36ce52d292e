"""Slow twins of ``dpfast.statistics``: T by definition, attack ranges over all datasets, values in Fractions."""

import math
from fractions import Fraction
from itertools import combinations, product


def order_statistic(q):
    return lambda x: sorted(x)[max(1, math.ceil(q * len(x))) - 1]


def median(x):
    return sorted(x)[(len(x) + 1) // 2 - 1]


def trimmed_sum(trim):
    def statistic(x):
        m = math.floor(trim * len(x))
        return sum(sorted(x)[m : len(x) - m])

    return statistic


def winsorized_sum(trim):
    def statistic(x):
        m, y = math.floor(trim * len(x)), sorted(x)
        return sum(min(max(value, y[m]), y[len(x) - m - 1]) for value in x)

    return statistic


def interquartile_range(x):
    return order_statistic(0.75)(x) - order_statistic(0.25)(x)


def huber(k):
    """Codes theta are tried one by one."""

    def statistic(x):
        theta = 0
        while sum(min(max(theta - value, -k), k) for value in x) < 0:
            theta += 1
        return theta

    return statistic


def variance(x):
    """n**2 times the population variance."""
    mean = Fraction(sum(x), len(x))
    return int(len(x) * sum((value - mean) ** 2 for value in x))


def attack_range(statistic, x, t, last):
    """Least and greatest value of the statistic over all ways to replace t records by any code."""
    values = set()
    for places in combinations(range(len(x)), t):
        for codes in product(range(last + 1), repeat=t):
            other = list(x)
            for place, code in zip(places, codes, strict=True):
                other[place] = code
            values.add(statistic(other))
    return min(values), max(values)


def mean_value(grid, code, records):
    """``lower + code step / records`` with one rounding."""
    return float(Fraction(grid.lower) + Fraction(code, records) * Fraction(grid.step))
