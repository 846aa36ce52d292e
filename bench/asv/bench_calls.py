"""The calls of `bench.calls`: small ones, where Python's layers are the cost, and kernels."""

from itertools import count

from scipy.stats import norm

import dpfast as dpf
from bench import calls, data
from bench.asv.timed import Timed


class Small(Timed):
    """A call on 100 records, or what it replaces, if that is a call."""

    params = (list(calls.small()), ["dpfast", "floor"])
    param_names = ("call", "line")

    def setup(self, call, line):
        one = calls.small()[call]
        self.run = one.run if line == "dpfast" else one.floor
        if not callable(self.run):
            raise NotImplementedError


class Kernels(Timed):
    """A call on 1,000 to 100,000 records."""

    params = tuple(calls.kernels())
    param_names = ("call",)

    def setup(self, call):
        self.run = calls.kernels()[call]


class Intervals(Timed):
    """Estimates with intervals of 100 records, and the release of the estimate alone."""

    params = (["interval", "release"], ["mean", "median", "variance", "sum"])
    param_names = ("line", "statistic")

    def setup(self, line, statistic):
        x, public = data.pay(100), {"bounds": data.BOUNDS, "epsilon": data.EPSILON}
        release = getattr(dpf, statistic)
        self.run = {
            "interval": lambda: dpf.interval(statistic, x, **public),
            "release": lambda: release(x, **public),
        }[line]


class Predictions(Timed):
    """Errors to expect and choices among mechanisms: the first call for public numbers, and one more."""

    params = (["first", "again"], ["error of the median", "explain the median", "explain the mean"])
    param_names = ("line", "what")

    def setup(self, line, what):
        grid, typical, epsilons = dpf.Grid(*data.BOUNDS), (20_000.0, 80_000.0), count(1)
        assumed = norm(40_000, 10_000)

        def run():
            epsilon = 1.0 if line == "again" else 1 + next(epsilons) / 2**20
            if what == "error of the median":
                median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=epsilon)
                return median.error(1000, distribution=assumed)
            return dpf.explain(what.split()[-1], n=1000, grid=grid, epsilon=epsilon, distribution=typical)

        self.run = run
        run()


class NewParameters(Timed):
    """A trimmed mean of 10,000 records for the same epsilon each time, and for a new one each time."""

    params = ("the same epsilon", "a new epsilon")
    param_names = ("line",)

    def setup(self, line):
        x, epsilons = data.pay(10_000), count(1)
        step = 0.0 if line == "the same epsilon" else 2.0**-20
        self.run = lambda: dpf.trimmed_mean(x, 0.1, bounds=data.BOUNDS, epsilon=1.0 + step * next(epsilons))
        self.run()
