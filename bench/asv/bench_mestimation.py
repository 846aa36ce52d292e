"""``dpfast.mestimation``: one release of an M-estimate against a sort of the same array."""

import numpy as np

import dpfast as dpf
from bench import data
from bench.asv.timed import Timed

PSIS = {
    "Huber": dpf.psi.Huber(20_000.0),
    "pinball": dpf.psi.Pinball(0.5),
    "table": dpf.psi.Table([-40_000, -20_000, 20_000, 40_000], [-1, -0.75, 0.75, 1]),
    "logistic": dpf.psi.Logistic(20_000.0),
    "user's": dpf.psi.Function(data.user_psi),
}


class MEstimate(Timed):
    """A built mechanism, uniform and Cauchy prior, bounded or not; a sort reads and orders the same memory."""

    params = ([*PSIS, "np.sort"], ["uniform", "Cauchy", "Cauchy, no bounds"], [1000, 10_000, 1_000_000, 10_000_000])
    param_names = ("line", "prior", "n")

    def setup(self, line, prior, n):
        x = data.pay(n)
        if line == "np.sort":
            self.run = lambda: np.sort(x)
            return
        weights = "uniform" if prior == "uniform" else dpf.prior.Cauchy(0, 1000)
        grid = weights.grid(2.0**-12) if prior == "Cauchy, no bounds" else dpf.Grid(*data.BOUNDS)
        mechanism = dpf.MEstimator(PSIS[line], grid=grid, epsilon=data.EPSILON, prior=weights)
        self.run = lambda: mechanism(x)


class SmallEpsilons(Timed):
    """A release of a logistic M-estimate where theta may be at very many bends of its sum; a sort of the records."""

    params = (["logistic", "Huber", "np.sort"], [0.05, 0.001, 0.0001], [10_000, 1_000_000])
    param_names = ("line", "epsilon", "n")

    def setup(self, line, epsilon, n):
        x = data.pay(n)
        if line == "np.sort":
            self.run = lambda: np.sort(x)
            return
        mechanism = dpf.MEstimator(PSIS[line], grid=dpf.Grid(*data.BOUNDS), epsilon=epsilon)
        self.run = lambda: mechanism(x)
