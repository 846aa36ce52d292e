"""``dpfast.audit``: exhaustive verification and the empirical lower bound."""

import numpy as np

import dpfast as dpf


class _Audited:
    def setup(self, *_):
        grid = dpf.Grid(0, 20, step=1)
        self.mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=1.0)


class Verify(_Audited):
    """`verify` of a median on 21 points, all datasets of n records over four values."""

    params = (2, 3)
    param_names = ("n",)

    def time_verify(self, n):
        dpf.audit.verify(self.mechanism, n=n, values=4)


class Distinguish(_Audited):
    """`distinguish` of two datasets."""

    def time_distinguish(self):
        dpf.audit.distinguish(self.mechanism, [0, 0, 20], [0, 20, 20], trials=20_000, rng=np.random.default_rng(0))
