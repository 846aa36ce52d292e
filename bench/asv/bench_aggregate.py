"""``dpfast.aggregate``: private maximum likelihood against NumPy's sums of the same records."""

import numpy as np

import dpfast as dpf
from bench.asv.timed import Timed

SUMS = {
    "rate": (lambda x: x.mean(), "exponential", {"rate": (0.2, 5)}),
    "mean and sd": (lambda x: (x.mean(), x.std()), "normal", {"mean": (-10, 10), "sd": (0.1, 5)}),
    "shape and scale": (
        lambda x: (np.log(x).mean(), x.mean()),
        "gamma",
        {"shape": (0.1, 10), "scale": (0.1, 10)},
    ),
}


class Sums(Timed):
    """One release from sums of sufficient statistics."""

    params = (["dpfast", "numpy"], list(SUMS), [10**5, 10**7])
    param_names = ("line", "released", "n")

    def setup(self, line, released, n):
        x = np.random.default_rng(0).gamma(2.0, 1.0, n)
        plain, family, bounds = SUMS[released]
        mechanism = dpf.SufficientStatistics(family, bounds=bounds, epsilon=1.0)
        self.run = {"dpfast": lambda: mechanism(x), "numpy": lambda: plain(x)}[line]
