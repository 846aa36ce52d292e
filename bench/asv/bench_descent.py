"""``dpfast.local``: private medians and means from one bit per person, against non-private NumPy."""

import numpy as np

from dpfast import local

BOUNDS, EPSILON = (0.0, 4.0), 1.0


class MedianDescent:
    """One run over a long array, and many over a shorter one; the baseline is a NumPy loop, vectorised over runs."""

    params = (["dpfast", "numpy"], [(1_000_000, 1), (10_000, 400)])
    param_names = ("line", "n and runs")
    timeout = 300

    def setup(self, line, size):
        n, runs = size
        if line == "numpy" and runs == 1:
            raise NotImplementedError  # a Python loop takes seconds
        x = np.random.default_rng(0).lognormal(size=n)
        if line == "numpy":
            self.run = lambda: numpy_descent(x, runs)
        else:
            self.run = lambda: local.median(x, bounds=BOUNDS, epsilon=EPSILON, size=runs)

    def time_median(self, line, size):
        self.run()


class Mean:
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

    def time_mean(self, line, n):
        self.run()


def numpy_descent(x, runs):
    """The same descent with NumPy's insecure generator and 53-bit coins: one step of all runs at a time."""
    rng, (lower, upper) = np.random.default_rng(1), BOUNDS
    keep = 1 / (1 + np.exp(-EPSILON))
    pushes = (upper - lower) * np.arange(1, len(x) + 1) ** (-2 / 3)
    theta, total = np.full(runs, (lower + upper) / 2), np.zeros(runs)
    for value, push in zip(x, pushes, strict=True):
        total += theta
        up = (theta < value) == (rng.random(runs) < keep)
        theta = np.clip(np.where(up, theta + push, theta - push), lower, upper)
    return total / len(x)
