"""``dpfast.robust``: a private location in d dimensions against NumPy's medians of the columns."""

import numpy as np

import dpfast as dpf

BOUNDS = (-1000.0, 1000.0)


class RobustMean:
    """`dpf.robust_mean` of normal records, medians and trimmed means."""

    params = (["dpfast", "columns", "np.median"], [(100_000, 10), (100_000, 100), (100_000, 1000)])
    param_names = ("line", "shape")
    timeout = 300

    def setup(self, line, shape):
        x, mechanism = np.random.default_rng(0).normal(size=shape), dpf.NestedBoxes(grid=dpf.Grid(*BOUNDS), epsilon=1.0)
        columns = dpf.robust.IndependentColumns(grid=dpf.Grid(*BOUNDS), dimension=shape[1], epsilon=1.0, delta=1e-6)
        self.run = {
            "dpfast": lambda: mechanism(x),
            "columns": lambda: columns(x),
            "np.median": lambda: np.median(x, axis=0),
        }[line]

    def time_robust_mean(self, line, shape):
        self.run()


class Transform:
    """Whitening of each record, with the same bits on every machine, against BLAS."""

    params = (["dpfast", "x @ a.T"], [10, 100])
    param_names = ("line", "d")

    def setup(self, line, d):
        from dpfast.robust.columns import _transformed

        rng = np.random.default_rng(0)
        x, a = rng.normal(size=(100_000, d)), rng.normal(size=(d, d))
        self.run = {"dpfast": lambda: _transformed(x, a, 1), "x @ a.T": lambda: x @ a.T}[line]

    def time_transform(self, line, d):
        self.run()


class Reduce:
    """The choice among candidates whose scores are given."""

    params = (1_000, 100_000)
    param_names = ("candidates",)

    def setup(self, candidates):
        self.scores = np.random.default_rng(0).integers(0, 1000, candidates).tolist()

    def time_reduce(self, candidates):
        dpf.robust.reduce(self.scores.__getitem__, range(candidates), epsilon=1.0)
