"""Means of records in rows against NumPy's means of the columns."""

import numpy as np

import dpfast as dpf

LINES = {
    "box": lambda x: dpf.mean(x, bounds=(-5.0, 5.0), epsilon=1.0),
    "ball": lambda x: dpf.mean(x, radius=5.0, epsilon=1.0, delta=1e-6),
    "np.mean": lambda x: x.mean(axis=0),
}


class Rows:
    """`dpf.mean` of rows in a box, with noise by a norm, and in a ball, with Gaussian noise."""

    params = (list(LINES), [(1_000_000, 20), (1_000_000, 3), (10_000, 1000)], ["C float64", "F float64", "C float32"])
    param_names = ("line", "shape", "layout")
    timeout = 300

    def setup(self, line, shape, layout):
        order, dtype = layout.split()
        self.x = np.asarray(np.random.default_rng(0).normal(size=shape), dtype=dtype, order=order)

    def time_mean(self, line, shape, layout):
        LINES[line](self.x)
