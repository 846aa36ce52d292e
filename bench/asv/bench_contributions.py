"""``dpfast.groups.contributions``: at most three records of each unit, against a sort of the units."""

import numpy as np

import dpfast as dpf
from bench.asv.timed import Timed

RECORDS = 1_000_000


class BoundedUnits(Timed):
    """`dpf.bound_contributions` of units by number (from 0, spread, of 64 bits), by text, and in chunks."""

    params = (["dense", "sparse", "wide", "text", "chunks", "np.sort"], [10_000, 100_000, 1_000_000])
    param_names = ("line", "units")

    def setup(self, line, units):
        drawn = np.random.default_rng(1)
        dense, x = drawn.integers(0, units, RECORDS), drawn.normal(size=RECORDS)
        sparse, text = dense * 1_000_003, dense.astype("S8")
        wide = dense * (2**62 // units)

        def chunks():
            bounded = dpf.BoundedContributions(per_unit=3)
            for start in range(0, RECORDS, 100_000):
                bounded.update(sparse[start : start + 100_000], x[start : start + 100_000])
            return bounded.kept()

        self.run = {
            "dense": lambda: dpf.bound_contributions(dense, x, per_unit=3),
            "sparse": lambda: dpf.bound_contributions(sparse, x, per_unit=3),
            "wide": lambda: dpf.bound_contributions(wide, x, per_unit=3),
            "text": lambda: dpf.bound_contributions(text, x, per_unit=3),
            "chunks": chunks,
            "np.sort": lambda: np.sort(dense),
        }[line]
