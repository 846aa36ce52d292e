"""Every statistic of the library with its slow twin, which is T by definition; attack ranges over all datasets.

Other tests take their lists of statistics, functions of `dpfast.location` and parameters from here.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from typing import NamedTuple

import numpy as np

from dpfast.statistics import (
    Count,
    Huber,
    InterquartileRange,
    LinearQuantile,
    Mean,
    Median,
    MomentStatistic,
    Quantile,
    RankStatistic,
    Statistic,
    Sum,
    TrimmedMean,
    UserStatistic,
    Variance,
    WinsorizedMean,
)


def order_statistic(q):
    return lambda x: sorted(x)[max(1, math.ceil(q * len(x))) - 1]


def median(x):
    return sorted(x)[(len(x) + 1) // 2 - 1]


def linear_quantile(q):
    """In release codes: the point of ``numpy.quantile`` times the denominator of its place."""

    def statistic(x):
        place = Fraction(str(q)) * (len(x) - 1)
        k, share = int(place), place - int(place)
        point = sorted(x)[k] + (share * (sorted(x)[k + 1] - sorted(x)[k]) if share else 0)
        return int(point * place.denominator)

    return statistic


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


def quartiles(codes):
    return [len(codes) // 4, len(codes) // 2, 3 * len(codes) // 4]


def trimean(codes):
    """Tukey's trimean in quarters of a step: a statistic of a user."""
    return int(np.dot([1, 2, 1], codes[quartiles(codes)]))


def change_of_trimean(codes, k, last):
    """A bound on the change of the trimean by one record after k: for each rank the longest stretch of k + 1 gaps."""
    padded = np.pad(codes, k + 1, constant_values=(0, last))
    stretches = padded[k + 1 :] - padded[: -k - 1]
    return sum(w * int(stretches[q : q + k + 2].max()) for w, q in zip([1, 2, 1], quartiles(codes), strict=True))


def failing(codes):
    """It fails for some data only: the promise of a user who breaks it."""
    if codes[0] == 0 and codes[-1] < 3:
        raise OverflowError
    return trimean(codes)


def sorted_trimean(x):
    y = sorted(x)
    return y[len(y) // 4] + 2 * y[len(y) // 2] + y[3 * len(y) // 4]


TRIMEAN = UserStatistic(trimean, change_of_trimean, divisions=4, name="trimean")


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


def is_constant(statistic, n, last):
    """Whether it is the same for all n codes in 0..last, as the interquartile range of one record."""
    return len({statistic(x) for x in combinations_with_replacement(range(last + 1), n)}) == 1


def mean_value(grid, code, records):
    """``lower + code step / records`` with one rounding."""
    return float(Fraction(grid.lower) + Fraction(code, records) * Fraction(grid.step))


class Case(NamedTuple):
    """A statistic and its slow twin, a function of a list of codes.

    The twin of a monotone statistic does not fall when a code grows. A quick one takes 20,000 records.
    """

    statistic: Statistic
    twin: Callable
    monotone: bool = True
    quick: bool = True


# The first case of each class stands for the class where a test takes one of each.
CASES = {
    "median": Case(Median(), median),
    "0.7-quantile": Case(Quantile(0.7), order_statistic(0.7)),
    "0-quantile": Case(Quantile(0.0), order_statistic(0.0)),
    "linear 0.5": Case(LinearQuantile(0.5), linear_quantile(0.5)),
    "linear 0.9": Case(LinearQuantile(0.9), linear_quantile(0.9)),
    "linear 0": Case(LinearQuantile(0.0), linear_quantile(0.0)),
    "mean": Case(Mean(), sum),
    "trimmed 0.2": Case(TrimmedMean(0.2), trimmed_sum(0.2)),
    "trimmed 0": Case(TrimmedMean(0), sum),
    "trimmed 0.45": Case(TrimmedMean(0.45), trimmed_sum(0.45)),
    "winsorized 0.2": Case(WinsorizedMean(0.2), winsorized_sum(0.2)),
    "winsorized 0": Case(WinsorizedMean(0), sum),
    "winsorized 0.34": Case(WinsorizedMean(0.34), winsorized_sum(0.34)),
    "winsorized 0.45": Case(WinsorizedMean(0.45), winsorized_sum(0.45)),
    "iqr": Case(InterquartileRange(), interquartile_range, monotone=False),
    "huber 2": Case(Huber(2), huber(2), quick=False),
    "huber 1": Case(Huber(1), huber(1), quick=False),
    "huber 9": Case(Huber(9), huber(9), quick=False),
    "sum": Case(Sum(), sum),
    "variance": Case(Variance(), variance, monotone=False),
    "count": Case(Count(), len),
    "trimean": Case(TRIMEAN, sorted_trimean),
}
RANK_CASES = {name: case for name, case in CASES.items() if isinstance(case.statistic, RankStatistic)}
MOMENT_CASES = {name: case for name, case in CASES.items() if isinstance(case.statistic, MomentStatistic)}

# The functions of `dpfast.location`: arguments between x and the keywords, and the statistic that they release.
FUNCTIONS = {
    "median": ((), Median()),
    "quantile": ((0.3,), Quantile(0.3)),
    "trimmed_mean": ((0.1,), TrimmedMean(0.1)),
    "winsorized_mean": ((0.1,), WinsorizedMean(0.1)),
    "iqr": ((), InterquartileRange()),
    "huber": ((2.0,), Huber(2.0)),
    "mean": ((), Mean()),
    "sum": ((), Sum()),
    "count": ((), Count()),
    "variance": ((), Variance()),
    "std": ((), Variance()),
}

# Values of the parameters of statistics, some of them extreme: tests/outcomes.py draws from them.
PARAMETERS = {
    "q": [0.0, 5e-324, 1e-9, 0.1, 0.5, 0.75, 1 - 2.0**-53, 1.0],
    "trim": [0.0, 0.1, 0.25, 0.4, 0.4, 0.49999999],
    "k": [5e-324, 1e-300, 0.5, 2.0, 1e15, 1e300, 1.7e308],
    "function": [trimean, trimean, failing],
    "sensitivity_at": [change_of_trimean, change_of_trimean, lambda codes, k, last: 1 / (codes[0] - 3)],
    "divisions": [4, 4, 2**20],
    "spread": [False, True],
    "name": ["trimean"],
    "within": [None, (20.0, 35.0), (-math.inf, 0.0), (0.0, 0.0)],
}
# Classes whose attack ranges take the square of the number of levels: tests/outcomes.py gives them fewer records.
QUADRATIC = (InterquartileRange,)


def one_of_each(cases=None):
    """The first statistic of each class."""
    first = {}
    for case in (cases or CASES).values():
        first.setdefault(type(case.statistic), case.statistic)
    return list(first.values())


def has_gaps(statistic):
    """Whether a rank statistic has a gap form, which smooth sensitivity takes."""
    try:
        statistic.gaps(3)
    except TypeError as error:
        if "has no gap form" not in str(error):
            raise
        return False
    return True
