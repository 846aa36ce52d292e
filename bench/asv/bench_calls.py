"""Small calls, where Python's layers are the cost, against NumPy's calls of the same size."""

from itertools import count

import numpy as np
from scipy.stats import norm

import dpfast as dpf
from bench import data
from dpfast import local, noise
from dpfast.random import SecureBitGenerator
from dpfast.statistics import Count, Mean, Median, TrimmedMean, Variance

_QS = np.arange(1, 10) / 10


def _built():
    public = {"grid": dpf.Grid(*data.BOUNDS), "epsilon": data.EPSILON}
    return {
        "median": dpf.InverseSensitivity(Median(), **public),
        "trimmed": dpf.InverseSensitivity(TrimmedMean(0.1), **public),
        "smooth median": dpf.SmoothSensitivity(Median(), **public),
        "mean": dpf.GlobalSensitivity(Mean(), **public),
        "variance": dpf.GlobalSensitivity(Variance(), **public),
        "count": dpf.GlobalSensitivity(Count(), neighbors="add-remove", **public),
    }


class Built:
    """A built mechanism on 100 records."""

    params = ("median", "trimmed", "smooth median", "mean", "variance", "count", "np.median")
    param_names = ("line",)

    def setup(self, line):
        self.x, self.run = data.pay(100), {**_built(), "np.median": np.median}[line]

    def time_call(self, line):
        self.run(self.x)


class OneLine:
    """A call by bounds and epsilon on 100 records."""

    params = ("median", "trimmed", "smooth median", "mean", "std", "count", "interval of the mean", "np.median")
    param_names = ("line",)

    def setup(self, line):
        x, public = data.pay(100), {"bounds": data.BOUNDS, "epsilon": data.EPSILON}
        self.run = {
            "median": lambda: dpf.median(x, **public),
            "trimmed": lambda: dpf.trimmed_mean(x, 0.1, **public),
            "smooth median": lambda: dpf.median(x, method="smooth-sensitivity", **public),
            "mean": lambda: dpf.mean(x, **public),
            "std": lambda: dpf.std(x, **public),
            "count": lambda: dpf.count(x, epsilon=data.EPSILON),
            "interval of the mean": lambda: dpf.interval("mean", x, **public),
            "np.median": lambda: np.median(x),
        }[line]

    def time_call(self, line):
        self.run()


class Intervals:
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

    def time_call(self, line, statistic):
        self.run()


class Predictions:
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

    def time_call(self, line, what):
        self.run()


class NewParameters:
    """A trimmed mean of 10,000 records for the same epsilon each time, and for a new one each time."""

    params = ("the same epsilon", "a new epsilon")
    param_names = ("line",)

    def setup(self, line):
        x, epsilons = data.pay(10_000), count(1)
        step = 0.0 if line == "the same epsilon" else 2.0**-20
        self.run = lambda: dpf.trimmed_mean(x, 0.1, bounds=data.BOUNDS, epsilon=1.0 + step * next(epsilons))
        self.run()

    def time_call(self, line):
        self.run()


class Several:
    """Nine quantiles and a histogram of 20 bins of 100 records."""

    params = ("quantiles", "np.quantile", "histogram", "np.histogram")
    param_names = ("line",)

    def setup(self, line):
        x, quantiles = data.pay(100), data.deciles_mechanism()
        self.run = {
            "quantiles": lambda: quantiles(x),
            "np.quantile": lambda: np.quantile(x, _QS),
            "histogram": lambda: dpf.histogram(x, 20, bounds=data.BOUNDS, epsilon=data.EPSILON),
            "np.histogram": lambda: np.histogram(x, bins=20, range=data.BOUNDS),
        }[line]

    def time_call(self, line):
        self.run()


class OneReport:
    """The report of one person."""

    params = ("k-rr", "interval", "l2, d = 100", "hypercube, d = 100", "np.median of 100")
    param_names = ("line",)

    def setup(self, line):
        v, pay = np.full(100, 0.05), data.pay(100)
        people = {
            "k-rr": (local.Categorical(16, data.EPSILON, "k-rr"), 3),
            "interval": (local.Interval(data.EPSILON, bounds=data.BOUNDS), 3e4),
            "l2, d = 100": (local.L2Ball(100, data.EPSILON), v),
            "hypercube, d = 100": (local.Hypercube(100, data.EPSILON), v),
        }
        runs = {name: lambda survey=survey, x=x: survey.randomize(x) for name, (survey, x) in people.items()}
        self.run = {**runs, "np.median of 100": lambda: np.median(pay)}[line]

    def time_report(self, line):
        self.run()


class Scalars:
    """One draw of noise, and an entry of the secure generator's lock."""

    def setup(self):
        self.rng, self.lock = np.random.Generator(SecureBitGenerator()), SecureBitGenerator().lock

    def time_laplace(self):
        noise.laplace(1e3)

    def time_laplace_in_numpy(self):
        self.rng.laplace()

    def time_lock(self):
        with self.lock:
            pass
