"""``dpfast.selection``: one exact selection against the maximum of NumPy's Gumbel noise, which is not exact."""

from functools import partial

import numpy as np

import dpfast as dpf
from bench import data
from bench.asv.timed import Timed


class SelectOften(Timed):
    """Many independent selections from the same candidates."""

    params = (["exponential", "permute-and-flip", "numpy"], [10, 10_000])
    param_names = ("line", "n")

    def setup(self, line, n):
        rng, size = np.random.default_rng(1), 1000
        scores = rng.normal(0.0, 10.0, n)
        if line == "numpy":
            weights = np.exp(data.EPSILON / 2 * (scores - scores.max()))
            self.run = lambda: rng.choice(n, size, p=weights / weights.sum())
        else:
            self.run = partial(dpf.select, scores, epsilon=data.EPSILON, selection=line, size=size)
