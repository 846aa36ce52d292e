"""Partition selection and the reading of keys, against ``np.unique`` and ``pyarrow.compute.value_counts``."""

import numpy as np

import dpfast as dpf
from bench.asv.timed import Timed
from dpfast import keys

N = 10**6


def drawn(distinct):
    rng = np.random.default_rng(1)
    return np.minimum(rng.zipf(1.3, N), 2**40) if distinct == "Zipf" else rng.integers(0, distinct, N)


class Partitions(Timed):
    """A million keys."""

    params = (["partitions", "codes", "baseline"], ["int64", "text"], [10, 1000, 10**5, 10**6, "Zipf"])
    param_names = ("line", "keys", "distinct")

    def setup(self, line, kind, distinct):
        x = drawn(distinct)
        if kind == "text":
            try:
                import pyarrow
                from pyarrow import compute
            except ImportError:
                raise NotImplementedError from None
            x = pyarrow.array(x).cast("string")
        mechanism = dpf.PartitionSelection(1.0, 1e-6)
        self.run = {
            "partitions": lambda: mechanism(x),
            "codes": lambda: keys.read(x),
            "baseline": lambda: compute.value_counts(x) if kind == "text" else np.unique(x, return_counts=True),
        }[line]
