"""Releases from counts of values against counting them, in NumPy, DuckDB and polars."""

import importlib

import numpy as np

import dpfast as dpf
from bench import data
from bench.asv.timed import Timed


def mechanisms():
    grid, epsilon = dpf.Grid(*data.BOUNDS, step=1), data.EPSILON
    return {
        "median": dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=epsilon),
        "mean": dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=grid, epsilon=epsilon),
        "variance": dpf.GlobalSensitivity(dpf.statistics.Variance(), grid=grid, epsilon=epsilon),
        "histogram": dpf.PerturbedHistogram(1000, grid=grid, epsilon=epsilon),
    }


class Counted(Timed):
    """Releases from the counts of n records in whole units; np.unique makes the counts."""

    params = (["np.unique", *mechanisms()], [1_000_000, 10_000_000])
    param_names = ("line", "n")

    def setup(self, line, n):
        codes = data.pay(n).round().astype(np.int64)
        if line == "np.unique":
            self.run = lambda: np.unique(codes, return_counts=True)
        else:
            mechanism, counted = mechanisms()[line], np.unique(codes, return_counts=True)
            self.run = lambda: mechanism.release_counts(*counted)


class Engines(Timed):
    """A median of a column of an engine: its own, the counts by grid code, and the release from counts."""

    params = (["duckdb", "polars"], ["median", "counts", "release"], [10_000_000])
    param_names = ("engine", "line", "n")

    def setup(self, engine, line, n):
        try:
            library = importlib.import_module(engine)
            importlib.import_module("pyarrow" if engine == "duckdb" else "dpfast.polars")
        except ImportError:
            raise NotImplementedError from None
        mechanism = mechanisms()["median"]
        if engine == "polars":
            pay = library.DataFrame({"pay": data.pay(n)}).lazy()
            whole, column = library.col("pay").round(), library.col("pay")
            self.run = {
                "median": lambda: pay.select(column.median()).collect(engine="streaming"),
                "counts": lambda: pay.group_by(whole).len().collect(engine="streaming"),
                "release": lambda: pay.select(column.dpfast.release(mechanism)).collect(engine="streaming"),
            }[line]
            return
        engine = library.connect()
        engine.register("arrow", importlib.import_module("pyarrow").table({"pay": data.pay(n)}))
        engine.execute("CREATE TABLE t AS SELECT pay FROM arrow")
        counts = f"SELECT {mechanism.grid.sql('pay')} AS code, count(*) AS n FROM t GROUP BY code"

        def release():
            found = engine.execute(counts).fetchnumpy()
            return mechanism.release_counts(found["code"], found["n"])

        self.run = {
            "median": lambda: engine.execute("SELECT median(pay) FROM t").fetchall(),
            "counts": lambda: engine.execute(counts).fetchnumpy(),
            "release": release,
        }[line]
