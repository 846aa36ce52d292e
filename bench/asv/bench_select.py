"""Selection: windows of order statistics, and medians and deciles of long arrays, against NumPy and a plain read."""

import numpy as np

from bench import data
from bench.asv.timed import Timed
from dpfast._kernels import _select, _windows


class Window(Timed):
    """The middle `width` order statistics."""

    params = (["dpfast", "np.partition"], [1_000, 1_000_000], [1, 501])
    param_names = ("line", "n", "width")

    def setup(self, line, n, width):
        x, first, last = data.pay(n), n // 2 - width // 2, n // 2 + width // 2
        self.run = {
            "dpfast": lambda: _select.window(x, first, last, lower=0.0, upper=1e6, step=1.0, missing=0.0),
            "np.partition": lambda: np.sort(np.partition(x, [first - 1, last - 1])[first - 1 : last]),
        }[line]


class LongArrays(Timed):
    """A median and nine quantiles of n records, against the sum of the array; `two values` has ties alone."""

    params = (["median", "9 quantiles", "two values", "workers=2", "x.sum()"], [10**4, 10**5, 10**6, 10**7])
    param_names = ("line", "n")
    warmup_time = 0.5

    def setup(self, line, n):
        x, median, deciles = data.pay(n), data.median_mechanism(), data.deciles_mechanism()
        two = data.ORDERS["two values"](x)
        self.run = {
            "median": lambda: median(x),
            "9 quantiles": lambda: deciles(x),
            "two values": lambda: median(two),
            "workers=2": lambda: median(x, workers=2),
            "x.sum()": x.sum,
        }[line]


class ManyWindows(Timed):
    """The windows around nine deciles, against a sort of all records."""

    params = (["dpfast", "np.sort"], [10**5, 10**6])
    param_names = ("line", "n")

    def setup(self, line, n):
        x = data.pay(n)
        ranks = np.arange(1, 10) * n // 10
        grid = {"lower": 0.0, "upper": 1e6, "step": 2.0**-12, "missing": 0.0}
        self.run = {
            "dpfast": lambda: _windows.windows(x, ranks - 460, ranks + 460, **grid),
            "np.sort": lambda: np.sort(x),
        }[line]
