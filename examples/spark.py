"""Private releases of a Spark frame by `dpfast.spark`: quartiles, means by region, and the regions to name.

    pip install '.[spark]'                                      # in a clone of the sources; and Java 17
    python examples/spark.py --rows 100000000                   # made-up pay, on two threads of this machine
    python examples/spark.py --master 'local-cluster[2,1,2048]' # on two processes

Spark's own engine does all the counting here: its workers need no Python.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

import dpfast as dpf
import dpfast.spark

REGIONS = ["east", "north", "south", "west"]


def timed(what: str, compute: Callable[[], Any]) -> Any:
    """Compute, and print the time."""
    start = time.perf_counter()
    result = compute()
    print(f"{what}: {time.perf_counter() - start:.1f} s")
    return result


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args(arguments)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # workers import installed packages, not their working directory
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master(options.master).config(map=settings).getOrCreate()
    try:
        regions = ", ".join(map(repr, REGIONS))
        frame = spark.range(options.rows, numPartitions=16).selectExpr(
            f"exp(randn(1) * 0.55D + {float(np.log(48_000.0))}D) AS pay",
            f"element_at(array({regions}), CAST(id % 4 AS INT) + 1) AS region",
        )
        grid = dpf.Grid(0, 1_000_000)
        timed("Spark's own sum", lambda: frame.selectExpr("sum(pay)").collect())
        with dpf.Ledger(3 * options.epsilon, delta=1e-6) as ledger:
            quartiles = dpf.Quantiles([0.25, 0.5, 0.75], grid=grid, epsilon=options.epsilon)
            released = timed("quartiles", lambda: dpfast.spark.release(quartiles, frame, "pay"))
            print(f"{options.rows:,} rows, quartiles:", ", ".join(f"{value:,.2f}" for value in released))
            mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=grid, epsilon=options.epsilon)
            by_region = {"labels": "region", "keys": REGIONS}
            means = timed("means", lambda: dpfast.spark.by_group(mean, frame, "pay", **by_region))
            print(means.to_pandas().round(2).to_string(index=False))
            select = {"epsilon": options.epsilon, "delta": 1e-6, "neighbors": "replace-one"}
            found = timed("partitions", lambda: dpfast.spark.partitions(frame, "region", **select))
            print("regions found:", dict(zip(found.keys.tolist(), found.counts.tolist(), strict=True)))
        print(f"spent: {ledger.spent}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
