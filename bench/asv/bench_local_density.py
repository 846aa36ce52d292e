"""``dpfast.local.series``, ``square`` and ``sparse``: reports of a million people and their sums, against NumPy."""

import numpy as np

import dpfast as dpf
from bench import data
from bench.asv.timed import Timed
from dpfast import local

_GRID = dpf.Grid(0, 1)


class SeriesReports(Timed):
    """A million reports of 6 and 50 terms, and their sums; NumPy computes the non-private mean of the same waves."""

    params = (["one-frequency", "halfspace", "majority", "subset", "np.cos"], [6, 50])
    param_names = ("line", "terms")

    def setup(self, line, terms):
        x = data.beta(1_000_000)
        if line == "np.cos":
            self.run = self.add = lambda: data.cosine_means_in_numpy(x, terms)
            return
        survey = local.SeriesReports(terms, data.EPSILON, grid=_GRID, method=line, basis="trigonometric")
        reports = survey.randomize(x)
        self.run, self.add = lambda: survey.randomize(x), lambda: survey.aggregate(reports)

    def time_aggregate(self, line, terms):
        self.add()


class SquareWave:
    """A million reports of the square wave, and the density of their counts, against counts of exact numbers."""

    params = ("dpfast", "np.histogram")
    param_names = ("line",)

    def setup(self, line):
        x, survey = data.beta(1_000_000), local.SquareWave((0, 1), data.EPSILON)
        total = survey.aggregate(survey.randomize(x))
        self.report = {"dpfast": lambda: survey.randomize(x), "np.histogram": lambda: np.histogram(x, 1024)}[line]
        self.count = {"dpfast": lambda: survey.density(total), "np.histogram": lambda: np.histogram(x, 1024)}[line]

    def time_randomize(self, line):
        self.report()

    def time_density(self, line):
        self.count()


class SparseMean(Timed):
    """1e5 people with 100 numbers each, and the mean of as many normals."""

    params = ("dpfast", "numpy")
    param_names = ("line",)

    def setup(self, line):
        x, rng = np.zeros((100_000, 100), np.float32), np.random.default_rng(1)
        self.run = {
            "dpfast": lambda: local.sparse_mean(x, epsilon=data.EPSILON),
            "numpy": lambda: (x + rng.laplace(size=x.shape)).mean(axis=0),
        }[line]
