"""``dpfast.robust``: a private location in d dimensions against NumPy's medians of the columns."""

import numpy as np

import dpfast as dpf
from bench.asv.timed import Timed

BOUNDS = (-1000.0, 1000.0)


class Depth(Timed):
    """A release by Tukey depth, with some tens of depths, against one depth by sorted angles in NumPy."""

    params = (["dpfast", "np.sort of angles"], [(1_000, 2), (100_000, 2), (1_000, 3)])
    param_names = ("line", "shape")
    timeout = 300

    def setup(self, line, shape):
        n, d = shape
        x = np.random.default_rng(0).normal(size=shape)
        mechanism = dpf.robust.TukeyDepth(grid=dpf.Grid(-8, 8), dimension=d, epsilon=1.0)
        # In three columns: along each record, the angles of the others.
        repeats = n if d == 3 else 1
        self.run = {
            "dpfast": lambda: mechanism(x),
            "np.sort of angles": lambda: [np.sort(np.arctan2(x[:, 1], x[:, 0])) for _ in range(repeats)],
        }[line]


class Transform(Timed):
    """Whitening of each record, with the same bits on every machine, against BLAS."""

    params = (["dpfast", "x @ a.T"], [10, 100])
    param_names = ("line", "d")

    def setup(self, line, d):
        from dpfast.robust.columns import _transformed

        rng = np.random.default_rng(0)
        x, a = rng.normal(size=(100_000, d)), rng.normal(size=(d, d))
        self.run = {"dpfast": lambda: _transformed(x, a, 1), "x @ a.T": lambda: x @ a.T}[line]


class Reduce:
    """The choice among candidates whose scores are given."""

    params = (1_000, 100_000)
    param_names = ("candidates",)

    def setup(self, candidates):
        self.scores = np.random.default_rng(0).integers(0, 1000, candidates).tolist()

    def time_reduce(self, candidates):
        dpf.robust.reduce(self.scores.__getitem__, range(candidates), epsilon=1.0)
