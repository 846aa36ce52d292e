"""``dpfast.local``: exact, secure randomisers, against NumPy code that is neither."""

from functools import partial, reduce
from operator import add

import numpy as np

from bench import data
from dpfast import local


class Randomize:
    """Reports of many people; the NumPy code rounds the probabilities to doubles."""

    params = (["dpfast", "numpy"], ["k-rr", "oue"])
    param_names = ("line", "method")

    def setup(self, line, method):
        n = 1_000_000 if method == "k-rr" else 100_000
        x = data.categories(n)
        numpy = {"k-rr": data.respond_in_numpy, "oue": data.encode_unary_in_numpy}[method]
        survey = local.Categorical(data.CATEGORIES, data.EPSILON, method)
        self.run = {"dpfast": partial(survey.randomize, x), "numpy": partial(numpy, x)}[line]

    def time_randomize(self, line, method):
        self.run()


class Others:
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

    def time_randomize(self, method):
        self.run()


class Sets:
    """Reports that are sets, and as many random words as one of them takes."""

    params = (["subset", "random words"], [64, 1024])
    param_names = ("line", "k")

    def setup(self, line, k):
        x, words = np.random.default_rng(0).integers(0, k, 10_000), np.random.default_rng(1)
        survey = local.Categorical(k, data.EPSILON, "subset")
        drawn = partial(words.integers, 0, 2**64, (x.size, k // 8), np.uint64)
        self.run = {"subset": partial(survey.randomize, x), "random words": drawn}[line]

    def time_randomize(self, line, k):
        self.run()


class ManyCategories:
    """Reports of a million categories counted, at once and in ten parts, and a plain read of the same reports."""

    params = (
        ["aggregate", "ten parts", "plain read"],
        [("oue", 1000), ("subset", 1000), ("hadamard", 10_000_000), ("olh", 200)],
    )
    param_names = ("line", "method, n")

    def setup(self, line, survey):
        method, n = survey
        mechanism = local.Categorical(1_000_000, data.EPSILON, method)
        reports = mechanism.randomize(np.random.default_rng(0).integers(0, 1_000_000, n))
        words = reports.view(np.uint8).reshape(-1).view(np.int64)
        self.run = {
            "aggregate": lambda: mechanism.aggregate(reports).sums,
            "ten parts": lambda: reduce(add, map(mechanism.aggregate, np.array_split(reports, 10))).sums,
            "plain read": words.max,
        }[line]

    def time_aggregate(self, line, survey):
        self.run()


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


class HashedKeys:
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

    def time_hashed(self, line, n, epsilon):
        self.run()


class FrequentKeys:
    """The server's count of the reports of prefixes, next to a sort of them."""

    params = (["aggregate", "sort of the reports"], [10, 100_000])
    param_names = ("line", "n")

    def setup(self, line, n):
        survey = local.HeavyHitters(data.EPSILON, 30)
        reports = survey.randomize(np.random.default_rng(0).integers(0, 2**30, n))
        self.run = {"aggregate": partial(survey.aggregate, reports), "sort of the reports": partial(np.sort, reports)}[
            line
        ]

    def time_count(self, line, n):
        self.run()


class CountLines:
    """The server's count of hashed reports, against a NumPy loop over categories."""

    params = ("dpfast", "numpy")
    param_names = ("line",)

    def setup(self, line):
        survey = local.Categorical(data.CATEGORIES, data.EPSILON, "olh")
        reports = survey.randomize(data.categories(100_000))
        self.run = {
            "dpfast": partial(survey.aggregate, reports),
            "numpy": partial(data.count_hashes_in_numpy, reports),
        }[line]

    def time_count(self, line):
        self.run()


class Aggregate:
    """The sums of the other reports."""

    params = ("k-rr", "subset", "oue", "hadamard")
    param_names = ("method",)

    def setup(self, method):
        self.survey = local.Categorical(data.CATEGORIES, data.EPSILON, method)
        self.reports = self.survey.randomize(data.categories(100_000))

    def time_aggregate(self, method):
        return self.survey.aggregate(self.reports).sums
