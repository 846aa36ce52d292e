"""``dpfast.densities``: histograms and synthetic records against NumPy's counts and uniform draws."""

from itertools import combinations

import numpy as np
from numpy.random import PCG64

import dpfast as dpf
from bench import data


class Histogram:
    """One release in 1000 bins against `np.histogram`."""

    params = (["dpf.histogram", "np.histogram"], [10_000, 10_000_000])
    param_names = ("line", "n")

    def setup(self, line, n):
        x = data.pay(n)
        self.run = {
            "dpf.histogram": lambda: dpf.histogram(x, 1000, bounds=data.BOUNDS, epsilon=data.EPSILON),
            "np.histogram": lambda: np.histogram(x, bins=1000, range=data.BOUNDS),
        }[line]

    def time_histogram(self, line, n):
        self.run()


class HistogramTypes:
    """Other dtypes, a stride, missing values."""

    params = (["dpf.histogram", "np.histogram"], list(data.TYPES))
    param_names = ("line", "type")

    def setup(self, line, type):
        x = data.TYPES[type](data.pay(1_000_000))
        self.run = {
            "dpf.histogram": lambda: dpf.histogram(x, 1000, bounds=data.BOUNDS, epsilon=data.EPSILON),
            "np.histogram": lambda: np.histogram(x, bins=1000, range=data.BOUNDS),
        }[line]

    def time_histogram(self, line, type):
        self.run()


class ManyBins:
    """Few records in as many bins as are supported: almost all of the time is that of the noise."""

    params = (["replace-one", "add-remove", "Generator.laplace"], [2**20, 2**24])
    param_names = ("line", "bins")

    def setup(self, line, bins):
        x, rng = data.pay(100), np.random.Generator(PCG64(1))
        public = {"grid": dpf.Grid(*data.BOUNDS, step=2.0**-8), "epsilon": data.EPSILON}
        mechanisms = {
            neighbors: dpf.densities.PerturbedHistogram(bins, neighbors=neighbors, **public)
            for neighbors in ("replace-one", "add-remove")
        }
        self.run = {name: lambda mechanism=mechanism: mechanism(x) for name, mechanism in mechanisms.items()} | {
            "Generator.laplace": lambda: rng.laplace(size=bins)
        }

    def time_histogram(self, line, bins):
        self.run[line]()


class FewBins:
    """Bins whose noise sums to 0, up to 64, against as many with independent noise and `np.histogram`."""

    params = (["dpf.histogram", "add-remove", "np.histogram"], [4, 64])
    param_names = ("line", "bins")

    def setup(self, line, bins):
        x, public = data.pay(10_000), {"bounds": data.BOUNDS, "epsilon": data.EPSILON}
        self.run = {
            "dpf.histogram": lambda: dpf.histogram(x, bins, **public),
            "add-remove": lambda: dpf.histogram(x, bins, neighbors="add-remove", **public),
            "np.histogram": lambda: np.histogram(x, bins=bins, range=data.BOUNDS),
        }[line]

    def time_histogram(self, line, bins):
        self.run()


class Histogram2d:
    """100 x 100 bins against `np.histogram2d`."""

    params = ("dpf.histogram", "np.histogram2d")
    param_names = ("line",)

    def setup(self, line):
        X = np.random.default_rng(0).random((1_000_000, 2))
        self.run = {
            "dpf.histogram": lambda: dpf.histogram(X, 100, bounds=(0, 1), epsilon=data.EPSILON),
            "np.histogram2d": lambda: np.histogram2d(*X.T, bins=100, range=[(0, 1), (0, 1)]),
        }[line]

    def time_histogram(self, line):
        self.run()


class Sample:
    """Synthetic records from a released histogram, from the secure generator and from PCG64."""

    params = ("secure", "PCG64", "Generator.random")
    param_names = ("line",)

    def setup(self, line):
        k, uniform = 1_000_000, np.random.default_rng(1)
        released = dpf.histogram(data.pay(100_000), 1000, bounds=data.BOUNDS, epsilon=data.EPSILON)
        self.run = {
            "secure": lambda: released.sample(k),
            "PCG64": lambda: released.sample(k, PCG64(1)),
            "Generator.random": lambda: uniform.random(k),
        }[line]

    def time_sample(self, line):
        self.run()


class Smoothed:
    """A few records of a smoothed histogram need no pass over the data; a random choice of records reads as much."""

    params = ("dpf.synthesize", "Generator.choice")
    param_names = ("line",)

    def setup(self, line):
        x, rng = data.pay(10_000_000), np.random.default_rng(1)
        options = {"bounds": data.BOUNDS, "epsilon": data.EPSILON, "method": "smoothed", "bins": 20}
        self.run = {
            "dpf.synthesize": lambda: dpf.synthesize(x, 1000, **options),
            "Generator.choice": lambda: rng.choice(x, 1000),
        }[line]

    def time_synthesize(self, line):
        self.run()


class Marginals:
    """All pairs of ten columns of 16 bins, against `np.bincount` for each pair of the same codes."""

    params = (["dpf.marginals", "np.bincount"], [10_000, 1_000_000])
    param_names = ("line", "n")

    def setup(self, line, n):
        X = np.random.default_rng(1).integers(0, 16, (10, n))
        table = {str(j): x.astype(float) for j, x in enumerate(X)}
        columns = dict.fromkeys(table, dpf.Bins(16, bounds=(0, 16)))
        pairs = list(combinations(range(10), 2))
        self.run = {
            "dpf.marginals": lambda: dpf.marginals(table, columns, "all", epsilon=data.EPSILON),
            "np.bincount": lambda: [np.bincount(X[a] * 16 + X[b], minlength=256) for a, b in pairs],
        }[line]

    def time_marginals(self, line, n):
        self.run()
