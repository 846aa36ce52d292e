"""``dpfast.location`` and the mechanism behind it: one release of a median against NumPy's median."""

import dataclasses

import numpy as np

import dpfast as dpf
from bench import data
from bench.asv.timed import Timed


class Median(Timed):
    """`dpf.median` and a built mechanism, from one small call to a long array; `x.sum()` reads the same memory."""

    params = (
        ["mechanism", "uniform measure", "permute-and-flip", "interpolated", "dpf.median", "np.median", "x.sum"],
        [100, 10_000, 10_000_000],
    )
    param_names = ("line", "n")

    def setup(self, line, n):
        x, mechanism = data.pay(n), data.median_mechanism()
        uniform = dataclasses.replace(mechanism, measure="uniform")
        flips = dataclasses.replace(uniform, selection="permute-and-flip")
        interpolated = dataclasses.replace(uniform, selection="exponential", interpolate=True)
        self.run = {
            "mechanism": lambda: mechanism(x),
            "uniform measure": lambda: uniform(x),
            "permute-and-flip": lambda: flips(x),
            "interpolated": lambda: interpolated(x),
            "dpf.median": lambda: dpf.median(x, bounds=data.BOUNDS, epsilon=data.EPSILON),
            "np.median": lambda: np.median(x),
            "x.sum": x.sum,
        }[line]


class Huber:
    """Huber's estimate, next to the M-estimate by the exponential mechanism and a sort."""

    params = (["huber", "m_estimate", "np.sort"], [10_000, 1_000_000, 10_000_000])
    param_names = ("line", "n")

    def setup(self, line, n):
        x, public = data.pay(n), {"bounds": data.BOUNDS, "epsilon": data.EPSILON}
        self.run = {
            "huber": lambda: dpf.huber(x, 20_000.0, **public),
            "m_estimate": lambda: dpf.m_estimate(x, dpf.psi.Huber(20_000.0), **public),
            "np.sort": lambda: np.sort(x),
        }[line]

    def time_huber(self, line, n):
        self.run()


class SmallEpsilon:
    """Releases from as many levels as there are records, at an epsilon far below 1 / n, against NumPy's quantiles."""

    params = (["add-remove", "replace-one", "interquartile range", "np.quantile", "x.sum"], [100_000, 10_000_000])
    param_names = ("line", "n")

    def setup(self, line, n):
        x, grid = data.pay(n), dpf.Grid(*data.BOUNDS, step=2.0**-8)
        median, spread = dpf.statistics.Median(), dpf.statistics.InterquartileRange()
        mechanisms = {
            name: dpf.InverseSensitivity(median, grid=grid, epsilon=1e-6, neighbors=name)
            for name in ("add-remove", "replace-one")
        }
        mechanisms["interquartile range"] = dpf.InverseSensitivity(spread, grid=grid, epsilon=1e-5)
        self.run = {name: lambda mechanism=mechanism: mechanism(x) for name, mechanism in mechanisms.items()} | {
            "np.quantile": lambda: np.quantile(x, [0.25, 0.5, 0.75]),
            "x.sum": x.sum,
        }

    def time_release(self, line, n):
        self.run[line]()


class SmoothMedian(Timed):
    """The median by smooth sensitivity, against that by inverse sensitivity and NumPy's."""

    params = (["Laplace", "Student-t", "inverse sensitivity", "np.median"], [0.01, 1.0], [100, 10_000, 10_000_000])
    param_names = ("line", "epsilon", "n")

    def setup(self, line, epsilon, n):
        x, public = data.pay(n), {"grid": dpf.Grid(*data.BOUNDS, step=1.0), "epsilon": epsilon}
        median = dpf.statistics.Median()
        laplace = dpf.SmoothSensitivity(median, **public, delta=1e-6)
        student, inverse = dpf.SmoothSensitivity(median, **public), dpf.InverseSensitivity(median, **public)
        self.run = {
            "Laplace": lambda: laplace(x),
            "Student-t": lambda: student(x),
            "inverse sensitivity": lambda: inverse(x),
            "np.median": lambda: np.median(x),
        }[line]


class Missing(Timed):
    """Policies for missing values, 24 % of them, against np.nanmean and np.nanmedian."""

    params = (["mean", "median"], ["numpy", "lower", "half", "drop"])
    param_names = ("statistic", "policy")

    def setup(self, statistic, policy):
        x = data.with_missing(data.pay(1_000_000), 0.24)
        numpy, private = getattr(np, f"nan{statistic}"), getattr(dpf, statistic)
        neighbors = "add-remove" if policy == "drop" else "replace-one"
        options = {"bounds": (0, 1_000_000), "epsilon": 1.0, "missing": policy, "neighbors": neighbors}
        self.run = (lambda: numpy(x)) if policy == "numpy" else (lambda: private(x, **options))


class Quantile(Timed):
    """`dpf.quantile` against np.quantile."""

    params = (["dpf.quantile", "np.quantile"], [0.01, 0.9])
    param_names = ("line", "q")

    def setup(self, line, q):
        x = data.pay(1_000_000)
        self.run = {
            "dpf.quantile": lambda: dpf.quantile(x, q, bounds=data.BOUNDS, epsilon=data.EPSILON),
            "np.quantile": lambda: np.quantile(x, q),
        }[line]
