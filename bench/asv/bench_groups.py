"""``dpfast.groups``: releases of many groups, against a NumPy loop and pandas' groupby."""

import numpy as np

import dpfast as dpf
from bench import data
from bench.asv.timed import Timed


class KeyedMedians(Timed):
    """`dpf.by_group` with public keys of text, against the medians of a groupby of the same frame."""

    params = (
        ["objects", "Arrow", "category", "polars"],
        ["by_group", "groupby.median"],
        [(10_000_000, 1_000), (1_000_000, 10_000)],
    )
    param_names = ("labels", "line", "n, groups")

    def setup(self, kind, line, shape):
        try:
            import pandas
            import polars
            import pyarrow
        except ImportError:
            raise NotImplementedError from None  # not installed
        n, groups = shape
        keys = [f"group {i:05d}" for i in range(groups)]
        codes, x = data.labels(groups, n // groups), data.pay(n)
        text = pyarrow.array(keys).take(pyarrow.array(codes))
        made = {
            "objects": lambda: pandas.Series(np.array(keys, object)[codes], dtype=object),
            "Arrow": lambda: pandas.Series(text, dtype=pandas.ArrowDtype(pyarrow.string())),
            "category": lambda: pandas.Series(pandas.Categorical.from_codes(codes, keys)),
            "polars": lambda: polars.Series(text),
        }
        labels, mechanism = made[kind](), data.median_mechanism()
        frame = (polars if kind == "polars" else pandas).DataFrame({"key": labels, "x": x})
        if line == "by_group":
            self.run = lambda: dpf.by_group(mechanism, frame["x"], labels=frame["key"], keys=keys)
        elif kind == "polars":
            self.run = lambda: frame.group_by("key").agg(polars.col("x").median())
        else:
            self.run = lambda: frame.groupby("key", observed=True)["x"].median()
