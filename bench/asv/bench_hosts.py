"""``dpfast.opendp`` and columns of other libraries, against the same release of a NumPy array."""

import importlib
from functools import partial

from bench import data


def opendp_median(n):
    """The adapter's measurement of a median of n records."""
    adapter, dp = importlib.import_module("dpfast.opendp"), importlib.import_module("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    space = adapter.array_domain(n), dp.change_one_distance()
    return adapter.make_measurement(*space, data.median_mechanism())


class OpenDP:
    """A median as a measurement of OpenDP."""

    params = (["opendp", "direct"], [100, 1_000_000])
    param_names = ("line", "n")

    def setup(self, line, n):
        try:
            release = opendp_median(n) if line == "opendp" else data.median_mechanism()
        except ImportError:
            raise NotImplementedError from None
        self.run = partial(release, data.pay(n))

    def time_median(self, line, n):
        self.run()


class Columns:
    """The median of a column, by the library of the column."""

    params = (["numpy", "pandas", "pyarrow", "polars"], [100, 1_000_000])
    param_names = ("library", "n")

    def setup(self, library, n):
        makers = {"numpy": "asarray", "pandas": "Series", "pyarrow": "array", "polars": "Series"}
        try:
            make = getattr(importlib.import_module(library), makers[library])
        except ImportError:
            raise NotImplementedError from None
        self.run = partial(data.median_mechanism(), make(data.pay(n)))

    def time_median(self, library, n):
        self.run()
