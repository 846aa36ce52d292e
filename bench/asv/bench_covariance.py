"""``dpf.covariance`` and ``dpf.linear_regression`` against NumPy's lines, and the noise of second moments."""

import numpy as np

import dpfast as dpf
from dpfast.laws import WishartDifference


class Covariance:
    """A release from normal rows; `X.T @ X` is what memory and arithmetic allow."""

    params = (["dpfast", "np.cov", "X.T @ X"], [(1_000_000, 5), (1_000_000, 20), (100_000, 100)])
    param_names = ("line", "shape")
    timeout = 300

    def setup(self, line, shape):
        x, domain = np.random.default_rng(0).normal(size=shape), dpf.domains.Ball(2 * np.sqrt(shape[1]))
        mechanism = dpf.Covariance(domain=domain, epsilon=1.0, delta=1e-6)
        self.run = {
            "dpfast": lambda: mechanism(x),
            "np.cov": lambda: np.cov(x, rowvar=False),
            "X.T @ X": lambda: x.T @ x,
        }[line]

    def time_covariance(self, line, shape):
        self.run()


class LinearRegression:
    """A fit with its errors; the product alone is what memory and arithmetic allow."""

    params = (["dpfast", "np.linalg.lstsq", "X.T @ X"], [(1_000_000, 5), (1_000_000, 20), (100_000, 100)])
    param_names = ("line", "shape")
    timeout = 300

    def setup(self, line, shape):
        x = np.random.default_rng(0).normal(size=shape)
        y = x.sum(axis=1)
        public = {"radius": 2 * np.sqrt(shape[1]), "label_bound": 3 * np.sqrt(shape[1]), "epsilon": 1.0, "delta": 1e-6}
        self.run = {
            "dpfast": lambda: dpf.linear_regression(x, y, **public),
            "np.linalg.lstsq": lambda: np.linalg.lstsq(x, y, rcond=None),
            "X.T @ X": lambda: x.T @ x,
        }[line]

    def time_linear_regression(self, line, shape):
        self.run()


class Wishart:
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

    def time_fill(self, line, side):
        self.run()
