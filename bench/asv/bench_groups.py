"""``dpfast.groups``: releases of many groups, against a NumPy loop and pandas' groupby."""

import numpy as np

import dpfast as dpf
from bench import data
from bench.peers import installed
from dpfast.groups.sorting import sorted_by_label


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
            "pandas": installed.group_medians(x, labels).get("pandas groupby.median"),
        }[line]
        if self.run is None:
            raise NotImplementedError  # not installed

    def time_medians(self, line, shape):
        self.run()


SUMS = {
    "mean": (dpf.statistics.Mean(), {}),
    "sum": (dpf.statistics.Sum(), {}),
    "var": (dpf.statistics.Variance(), {}),
    "count": (dpf.statistics.Count(), {"neighbors": "add-remove"}),
}


class GroupSums:
    """Means, sums, variances and counts of 100,000 groups of ten records with random labels, and those of pandas."""

    params = (list(SUMS), ["by_group", "pandas"])
    param_names = ("statistic", "line")

    def setup(self, method, line):
        groups = 100_000
        x, labels = data.pay(10 * groups), data.labels(groups, 10)
        statistic, options = SUMS[method]
        mechanism = dpf.GlobalSensitivity(statistic, grid=dpf.Grid(*data.BOUNDS), epsilon=data.EPSILON, **options)
        self.run = {
            "by_group": lambda: dpf.by_group(mechanism, x, labels=labels, num_groups=groups),
            "pandas": installed.grouped(x, labels, method).get(f"pandas groupby.{method}"),
        }[line]
        if self.run is None:
            raise NotImplementedError  # not installed

    def time_sums(self, method, line):
        self.run()


RANKS = {
    "interquartile range": (dpf.InverseSensitivity, dpf.statistics.InterquartileRange()),
    "trimmed mean": (dpf.InverseSensitivity, dpf.statistics.TrimmedMean(0.1)),
    "Huber": (dpf.InverseSensitivity, dpf.statistics.Huber(2e4)),
    "smooth noise": (dpf.SmoothSensitivity, dpf.statistics.Median()),
    "three quantiles": (dpf.Quantiles, (0.25, 0.5, 0.75)),
}


class GroupRanks:
    """Statistics of ranks of 10,000 groups of a hundred records with random labels, against quantiles of pandas."""

    params = ([*RANKS, "pandas, medians", "pandas, three quantiles"],)
    param_names = ("line",)

    def setup(self, line):
        groups = 10_000
        x, labels = data.pay(100 * groups), data.labels(groups, 100)
        if line in RANKS:
            made, statistic = RANKS[line]
            mechanism = made(statistic, grid=dpf.Grid(*data.BOUNDS), epsilon=data.EPSILON)
            self.run = lambda: dpf.by_group(mechanism, x, labels=labels, num_groups=groups)
            return
        method, options = ("median", ()) if "medians" in line else ("quantile", ([0.25, 0.5, 0.75],))
        found = installed.grouped(x, labels, method, *options)
        if not found:
            raise NotImplementedError  # not installed
        [self.run] = found.values()

    def time_ranks(self, line):
        self.run()


class ManyGroups:
    """A million groups of ten records with random labels, in one thread and in two; the sort alone; pandas."""

    params = (["by_group", "the sort", "pandas"], [1, 2])
    param_names = ("line", "threads")

    def setup(self, line, threads):
        groups = 1_000_000
        x, labels, mechanism = data.pay(10 * groups), data.labels(groups, 10), data.median_mechanism()
        self.run = {
            "by_group": lambda: dpf.by_group(mechanism, x, labels=labels, num_groups=groups, workers=threads),
            "the sort": lambda: sorted_by_label(labels, x, 0.0, groups, threads),
            "pandas": installed.group_medians(x, labels).get("pandas groupby.median") if threads == 1 else None,
        }[line]
        if self.run is None:
            raise NotImplementedError  # not installed, or the same for any number of threads

    def time_medians(self, line, threads):
        self.run()


class KeyedMedians:
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

    def time_medians(self, kind, line, shape):
        self.run()
