"""``dpfast.noise``: exact, secure integer noise, against NumPy's noise, which is neither."""

from functools import partial

import numpy as np

import dpfast as dpf
from bench import data
from bench.asv.timed import Timed


class Norm(Timed):
    """Noise by a norm on vectors of d integers, 1e5 coordinates, against `Generator.standard_normal`."""

    params = (["box", "ball", "numpy"], [1.0, 2.0**20, 2.0**30], [2, 20, 100, 1000])
    param_names = ("line", "scale", "d")

    def setup(self, line, scale, d):
        m, scales = 100_000 // d, np.full(d, scale)
        self.run = {
            "box": partial(dpf.noise.box, scales, m),
            "ball": partial(dpf.noise.ball, scales, m),
            "numpy": partial(np.random.default_rng(1).standard_normal, (m, d)),
        }[line]


class Staircase(Timed):
    """The staircase law for a sensitivity of 10, against the discrete Laplace law of the same scale."""

    params = (["staircase", "discrete Laplace"], [1.25, 10.0, 1e12, 1e15], [1, 1_000_000])
    param_names = ("line", "scale", "n")

    def setup(self, line, scale, n):
        self.run = {
            "staircase": partial(dpf.noise.staircase, scale, 10, n),
            "discrete Laplace": partial(dpf.noise.discrete_laplace, scale, n),
        }[line]


class AddGaussian(Timed):
    """Noise on floats of a grid, against adding `Generator.normal`."""

    params = ("dpfast", "numpy")
    param_names = ("line",)

    def setup(self, line):
        x, grid, rng = data.pay(1_000_000), dpf.Grid(*data.BOUNDS), np.random.default_rng(1)
        self.run = {
            "dpfast": lambda: dpf.noise.add_gaussian(x, sigma=10.0, grid=grid),
            "numpy": lambda: x + rng.normal(0.0, 10.0, x.size),
        }[line]


class AddLaplace(Timed):
    """Noise on floats of a grid, against adding `Generator.laplace`."""

    params = ("dpfast", "numpy")
    param_names = ("line",)

    def setup(self, line):
        x, grid, rng = data.pay(1_000_000), dpf.Grid(*data.BOUNDS), np.random.default_rng(1)
        self.run = {
            "dpfast": lambda: dpf.noise.add_laplace(x, scale=10.0, grid=grid),
            "numpy": lambda: x + rng.laplace(0.0, 10.0, x.size),
        }[line]
