"""``dpfast.densities.series``: coefficients against the same sums in NumPy, draws against uniform numbers."""

import numpy as np

import dpfast as dpf
from bench import data


class SeriesCoefficients:
    """Noisy coefficients of 5 and 50 terms, and the same means in NumPy."""

    params = (["mechanism", "np.cos"], [5, 50], [10_000, 1_000_000])
    param_names = ("line", "terms", "n")

    def setup(self, line, terms, n):
        x = data.beta(n)
        mechanism = dpf.SeriesCoefficients(terms, grid=dpf.Grid(0, 1), epsilon=data.EPSILON)
        self.run = {"mechanism": lambda: mechanism(x), "np.cos": lambda: data.cosine_means_in_numpy(x, terms)}[line]
        self.run()

    def time_coefficients(self, line, terms, n):
        self.run()


class SeriesDraws:
    """Synthetic records, and as many uniform numbers."""

    params = ("SeriesDensity.sample", "Generator.random")
    param_names = ("line",)

    def setup(self, line):
        density = dpf.density(data.beta(100_000), bounds=(0, 1), epsilon=data.EPSILON)
        rng = np.random.default_rng(1)
        self.run = {
            "SeriesDensity.sample": lambda: density.sample(1_000_000, rng),
            "Generator.random": lambda: rng.random(1_000_000),
        }[line]
        self.run()

    def time_draws(self, line):
        self.run()
