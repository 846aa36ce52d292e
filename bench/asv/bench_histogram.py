"""``dpfast.densities``: histograms and synthetic records against NumPy's counts and uniform draws."""

from itertools import combinations

import numpy as np

import dpfast as dpf
from bench import data
from bench.asv.timed import Timed


class HistogramTypes(Timed):
    """Other dtypes, a stride, missing values."""

    params = (["dpf.histogram", "np.histogram"], list(data.TYPES))
    param_names = ("line", "type")

    def setup(self, line, type):
        x = data.TYPES[type](data.pay(1_000_000))
        self.run = {
            "dpf.histogram": lambda: dpf.histogram(x, 1000, bounds=data.BOUNDS, epsilon=data.EPSILON),
            "np.histogram": lambda: np.histogram(x, bins=1000, range=data.BOUNDS),
        }[line]


class FewBins(Timed):
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


class Smoothed(Timed):
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


class Marginals(Timed):
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
