"""``dpfast.groups``: the medians of many groups, against a NumPy loop and pandas' groupby."""

import numpy as np

import dpfast as dpf
from bench import data, peers


class GroupMedians:
    """`dpf.by_group` with groups in order, in random order, and with a private number of records."""

    params = (["offsets", "labels", "n private", "np.median of each", "pandas"], [(10_000, 100), (100_000, 10)])
    param_names = ("line", "groups, size")

    def setup(self, line, shape):
        groups, size = shape
        x, labels = data.pay(groups * size), data.labels(groups, size)
        offsets = np.arange(0, x.size + 1, size)
        rows = np.split(x, offsets[1:-1])
        public, private = data.median_mechanism(), data.median_mechanism(neighbors="add-remove")
        self.run = {
            "offsets": lambda: dpf.by_group(public, x, offsets=offsets),
            "labels": lambda: dpf.by_group(public, x, labels=labels, num_groups=groups),
            "n private": lambda: dpf.by_group(private, x, labels=labels, num_groups=groups),
            "np.median of each": lambda: [np.median(row) for row in rows],
            "pandas": peers.group_medians(x, labels).get("pandas groupby.median"),
        }[line]
        if self.run is None:
            raise NotImplementedError  # not installed

    def time_medians(self, line, shape):
        self.run()
