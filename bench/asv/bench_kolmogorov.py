"""``dpfast.densities.KolmogorovSmirnov``: planning, a first draw and further draws, against sorting the records."""

import numpy as np

import dpfast as dpf
from dpfast.densities import KolmogorovSmirnov


class _Records:
    params = (["beta", "uniform", "tied"], [(1_000, 50), (1_000, 1_000), (100_000, 500), (1_000_000, None)])
    param_names = ("data", "n, k")

    def setup(self, data, sizes):
        n, k = sizes
        rng = np.random.default_rng(0)
        self.x = {
            "beta": lambda: rng.beta(10, 10, n),
            "uniform": lambda: rng.random(n),
            "tied": lambda: np.where(rng.random(n) < 0.4, 0.25, rng.random(n)),
        }[data]()
        self.mechanism = KolmogorovSmirnov(k, grid=dpf.Grid(0, 1), epsilon=1.0)


class Release(_Records):
    """One release, from the records to the values."""

    def time_release(self, data, sizes):
        self.mechanism(self.x)

    def time_numpy_sort(self, data, sizes):
        np.sort(self.x)


class Draws(_Records):
    """Ten more draws from a law that is already planned."""

    def setup(self, data, sizes):
        super().setup(data, sizes)
        self.law = self.mechanism.law(self.x)
        self.law.sample(10)

    def time_draws(self, data, sizes):
        self.law.sample(10)
