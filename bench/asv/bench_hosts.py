"""``dpfast.opendp`` and columns of other libraries, against the same release of a NumPy array."""

import importlib
from functools import partial

from bench import data
from bench.asv.timed import Timed


class Columns(Timed):
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
