"""``dpfast._kernels._select``: a window of order statistics against NumPy's partition and sort."""

import numpy as np

from bench import data
from dpfast._kernels import _select


class Window:
    """The middle `width` order statistics."""

    params = (["dpfast", "np.partition"], [1_000, 1_000_000], [1, 501])
    param_names = ("line", "n", "width")

    def setup(self, line, n, width):
        x, first, last = data.pay(n), n // 2 - width // 2, n // 2 + width // 2
        self.run = {
            "dpfast": lambda: _select.window(x, first, last, lower=0.0, upper=1e6, step=1.0, missing=0.0),
            "np.partition": lambda: np.sort(np.partition(x, [first - 1, last - 1])[first - 1 : last]),
        }[line]

    def time_window(self, line, n, width):
        self.run()
