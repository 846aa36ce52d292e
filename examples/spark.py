"""Private quantiles of a column in Spark with `mapInArrow`: only the states of the mechanism are moved.

    pip install 'dpfast[spark]'                 # and Java 17
    python examples/spark.py --rows 10000000    # made-up pay, on two threads of this machine

To use it elsewhere, copy `release` and `_states`: executors need only dpfast.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import dpfast as dpf
from dpfast.random import bit_generator
from dpfast.spending import spending
from dpfast.streaming import State

MERGERS = 8  # tasks that merge states; the driver receives one state from each


def release(mechanism: dpf.Mechanism, frame: DataFrame, column: str | list[str], rng: Any = None) -> Any:
    """Release a mechanism on a column of numbers, as for the same records in one array.

    For a mechanism of several columns pass a list of their names. Nulls are missing values, like NaN. The frame is
    computed once per pass of the mechanism and must have the same records each time: persist it if it is expensive or
    random. An active `dpfast.Ledger` is charged before anything is computed; the release is drawn here, on the driver.
    """
    bit_generator(rng)  # reject a bad rng before charging
    state, names = mechanism.start(), [column] if isinstance(column, str) else column
    with spending(mechanism.privacy_profile, label=repr(mechanism), of=mechanism):
        while True:
            for part in _states(mechanism, state.to_bytes(), frame.select(*names), several=names is column):
                state.merge(State.from_bytes(part, mechanism))
            if state.number == state.passes:
                return state.release(rng=rng)
            state.next_pass()


def _states(mechanism: dpf.Mechanism, blank: bytes, rows: DataFrame, several: bool) -> list[bytes]:
    """The states of `MERGERS` tasks, which together have read all rows."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine = State.from_bytes(blank, mechanism)
        for batch in batches:
            mine.update(batch if several else batch.column(0))
        yield pa.record_batch({"state": [mine.to_bytes()]})

    def merge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine = State.from_bytes(blank, mechanism)
        for batch in batches:
            for state in batch.column(0):
                mine.merge(State.from_bytes(state.as_py(), mechanism))
        yield pa.record_batch({"state": [mine.to_bytes()]})

    states = rows.mapInArrow(read, "state binary").repartition(MERGERS).mapInArrow(merge, "state binary")
    return [row.state for row in states.collect()]


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args(arguments)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # workers import installed packages, not their working directory
    spark = SparkSession.builder.master(options.master).config("spark.ui.enabled", "false").getOrCreate()
    try:
        pay = sql.exp(sql.randn(seed=1) * 0.55 + np.log(48_000.0)).alias("pay")
        frame = spark.range(options.rows, numPartitions=16).select(pay)
        mechanism = dpf.Quantiles([0.25, 0.5, 0.75], grid=dpf.Grid(0, 1_000_000), epsilon=options.epsilon)
        start = time.perf_counter()
        quartiles = release(mechanism, frame, "pay")
        seconds = time.perf_counter() - start
    finally:
        spark.stop()
    print("quartiles:", ", ".join(f"{value:,.2f}" for value in quartiles))
    print(f"{options.rows:,} rows in {seconds:.1f} s; {mechanism.privacy}")


if __name__ == "__main__":
    main()
