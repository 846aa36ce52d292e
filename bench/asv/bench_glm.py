"""``dpfast.local.glm``: one private step per person, against the least work that the formulas need in NumPy."""

import numpy as np

from bench import data
from bench.asv.timed import Timed
from dpfast import local


class GradientDescent(Timed):
    """One run of logistic regression. The baseline: two dot products of length d per person, and d standard normals."""

    params = (["l2", "linf", "numpy"], [3, 20, 100])
    param_names = ("line", "d")

    def setup(self, line, d):
        n = 2_000_000 // d
        X, y = data.regression(n, d)
        if line == "numpy":
            rng = np.random.default_rng(1)
            self.run = lambda: data.products_and_normals_in_numpy(X, rng)
        else:
            self.run = lambda: local.glm(X, y, epsilon=data.EPSILON, norm=line)


class Repetitions:
    """Many runs over the same people."""

    params = (1, 100)
    param_names = ("runs",)

    def setup(self, runs):
        self.X, self.y = data.regression(2000, 20)

    def time_glm(self, runs):
        local.glm(self.X, self.y, epsilon=data.EPSILON, size=runs)
