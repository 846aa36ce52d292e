"""Shuffled reports, whose bounds are sums of O(sqrt(n)) terms, and reports for secure aggregation."""

import numpy as np

from dpfast.core import shuffling
from dpfast.domains import Ball
from dpfast.local import SecureSum, Shuffled


class Amplification:
    """The epsilon of n shuffled reports, k = 2 for any reports; without the cache of bounds."""

    params = ([10**4, 10**6, 10**9], [2, 16])
    param_names = ("n", "k")

    def setup(self, n, k):
        self.batch = shuffling.Batch(2.0, n, k)

    def time_epsilon_up(self, n, k):
        shuffling.delta_up.cache_clear()
        shuffling.epsilon_up(self.batch, 1e-6)


class Shuffle:
    """The order of a million reports, against a permutation by NumPy that is not exactly uniform."""

    params = ("dpfast", "numpy")
    param_names = ("line",)

    def setup(self, line):
        self.reports = np.zeros(10**6, np.uint8)
        self.batch = Shuffled(1.0, n=10**6, delta=1e-6)
        self.rng = np.random.default_rng(0)

    def time_shuffle(self, line):
        if line == "dpfast":
            self.batch.shuffle(self.reports)
        else:
            self.rng.permutation(self.reports)


class Reports:
    """A thousand reports of 100 numbers each, against codes and normal noise by NumPy in doubles."""

    params = ("gaussian", "laplace", "numpy")
    param_names = ("line",)

    def setup(self, line):
        self.rng = np.random.default_rng(0)
        options = {"n": 10_000, "epsilon": 1.0, "dropouts": 100}
        if line == "laplace":
            self.sums, self.X = SecureSum(100, **options), self.rng.integers(0, 100, 1000)
        else:
            self.sums = SecureSum(Ball(1.0), delta=1e-6, dimension=100, **options)
            self.X = self.rng.normal(size=(1000, 100)) / 20

    def time_report(self, line):
        if line != "numpy":
            self.sums.report(self.X)
        else:
            norms = np.maximum(np.linalg.norm(self.X, axis=1, keepdims=True), 1.0)
            np.rint(self.X / norms * 2**26 + self.rng.normal(0, 1e6, self.X.shape)).astype(np.int64) & (2**40 - 1)
