"""``dpf.covariance`` and ``dpf.linear_regression`` against NumPy's lines, and the noise of second moments."""

import numpy as np

from bench.asv.timed import Timed
from dpfast.laws import WishartDifference


class Wishart(Timed):
    """Differences of Wishart matrices, exact, against NumPy's normal numbers and products."""

    params = (["dpfast", "numpy"], [5, 20, 100])
    param_names = ("line", "side")

    def setup(self, line, side):
        rng = np.random.default_rng(0)
        noise = WishartDifference(side, [2.0**22] * (side * (side + 1) // 2))
        out = np.empty((10, noise.dimension), np.int64)

        def floats():
            g, h = rng.normal(size=(2, 10, side, side + 1))
            return g @ g.swapaxes(1, 2) - h @ h.swapaxes(1, 2)

        self.run = {"dpfast": lambda: noise.fill(rng.bit_generator, out), "numpy": floats}[line]
