"""``dpfast.local``: exact, secure randomisers, against NumPy code that is neither."""

from functools import partial

import numpy as np

from bench import data
from bench.asv.timed import Timed
from dpfast import local


class Others(Timed):
    """Reports without a NumPy counterpart."""

    params = ("subset", "olh", "hadamard", "codebook", "piecewise", "hybrid", "laplace")
    param_names = ("method",)

    def setup(self, method):
        n = 100_000
        if method in ("subset", "olh", "hadamard"):
            survey, x = local.Categorical(data.CATEGORIES, data.EPSILON, method), data.categories(n)
        else:
            survey, x = local.Interval(data.EPSILON, bounds=data.BOUNDS, method=method), data.pay(n)
        self.run = partial(survey.randomize, x)


class Keys:
    """Reports of keys from a large domain, their counts, and 1000 estimates from the counts."""

    params = ((1.0, 3.0), (2**16, 2**30, 2**64))
    param_names = ("epsilon", "k")

    def setup(self, epsilon, k):
        self.survey, self.x = local.HashedCategorical(k, epsilon), data.categories(100_000)
        self.reports = self.survey.randomize(self.x)
        self.total = self.survey.aggregate(self.reports)

    def time_randomize(self, epsilon, k):
        self.survey.randomize(self.x)

    def time_aggregate(self, epsilon, k):
        self.survey.aggregate(self.reports)

    def time_estimate(self, epsilon, k):
        self.survey.estimate(self.total, range(1000))


class Aggregate:
    """The sums of the other reports."""

    params = ("k-rr", "subset", "oue", "hadamard")
    param_names = ("method",)

    def setup(self, method):
        self.survey = local.Categorical(data.CATEGORIES, data.EPSILON, method)
        self.reports = self.survey.randomize(data.categories(100_000))

    def time_aggregate(self, method):
        return self.survey.aggregate(self.reports).sums


class Sets(Timed):
    """Reports that are sets, and as many random words as one of them takes."""

    params = (["subset", "random words"], [64, 1024])
    param_names = ("line", "k")

    def setup(self, line, k):
        x, words = np.random.default_rng(0).integers(0, k, 10_000), np.random.default_rng(1)
        survey = local.Categorical(k, data.EPSILON, "subset")
        drawn = partial(words.integers, 0, 2**64, (x.size, k // 8), np.uint64)
        self.run = {"subset": partial(survey.randomize, x), "random words": drawn}[line]


class HashedKeys(Timed):
    """The server of many keys: a count of reports for each cell of each hash function, an estimate, one report."""

    params = (["aggregate", "sort of the reports", "estimate", "one report"], [1, 1000, 1_000_000], [1.0, 3.0, 5.0])
    param_names = ("line", "n", "epsilon")

    def setup(self, line, n, epsilon):
        survey = local.HashedCategorical(2**30, epsilon)
        reports = survey.randomize(np.random.default_rng(0).integers(0, 2**30, n))
        total = survey.aggregate(reports)
        self.run = {
            "aggregate": partial(survey.aggregate, reports),
            "sort of the reports": partial(np.sort, reports),
            "estimate": partial(survey.estimate, total, [5]),
            "one report": partial(survey.randomize, 5),
        }[line]


class FrequentKeys(Timed):
    """The server's count of the reports of prefixes, next to a sort of them."""

    params = (["aggregate", "sort of the reports"], [10, 100_000])
    param_names = ("line", "n")

    def setup(self, line, n):
        survey = local.HeavyHitters(data.EPSILON, 30)
        reports = survey.randomize(np.random.default_rng(0).integers(0, 2**30, n))
        self.run = {"aggregate": partial(survey.aggregate, reports), "sort of the reports": partial(np.sort, reports)}[
            line
        ]
