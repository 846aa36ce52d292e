"""``dpfast.local`` on vectors: randomise one million coordinates and sum reports, against NumPy."""

import numpy as np

from bench import data
from dpfast import local


class Randomize:
    """A thousand people, d = 1000: signs against `rng.random(d) < p`, half spaces against as many normals."""

    params = ("majority", "subset", "numpy bits", "halfspace", "sign", "privunit", "directions", "numpy normals")
    param_names = ("line",)

    def setup(self, line):
        self.run = data.local_randomizers(1000, 1000)[line]

    def time_randomize(self, line):
        self.run()


class Aggregate:
    """Sums of 1e5 reports of d = 1000 in packed bits."""

    params = ("dpfast", "numpy")
    param_names = ("line",)

    def setup(self, line):
        mechanism = local.Hypercube(1000, data.EPSILON, method="majority")
        reports = mechanism.randomize(np.zeros((100_000, 1000), np.float32))
        self.run = {
            "dpfast": lambda: mechanism.aggregate(reports),
            "numpy": lambda: data.unpacked_sums(reports),
        }[line]

    def time_aggregate(self, line):
        self.run()
