"""``dpfast.local``: exact, secure randomisers, against NumPy code that is neither."""

from functools import partial

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
