"""``dpfast.local``: private medians and means from one bit per person, against non-private NumPy."""

import numpy as np

from bench.asv.timed import Timed
from dpfast import local

BOUNDS, EPSILON = (0.0, 4.0), 1.0


class Mean(Timed):
    """`local.mean` against `np.mean` of the clipped values with NumPy's Laplace noise, which is not exact."""

    params = (["two-point", "laplace", "numpy"], [1_000_000])
    param_names = ("line", "n")

    def setup(self, line, n):
        rng = np.random.default_rng(0)
        x = rng.lognormal(size=n)
        if line == "numpy":
            self.run = lambda: np.mean(np.clip(x, *BOUNDS) + rng.laplace(0.0, 4.0 / EPSILON, n))
        else:
            self.run = lambda: local.mean(x, bounds=BOUNDS, epsilon=EPSILON, method=line)
