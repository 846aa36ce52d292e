"""The command line on a Parquet file, in processes of its own, against the same work in polars."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench import data
from bench.compare.clock import Row, power
from bench.peers import installed

PUBLIC = "--epsilon", "1", "--bounds", "0", "1e6"
MEDIAN = "import polars; print(polars.read_parquet({path!r}, columns=['pay'])['pay'].median())"
GROUPED = "import polars as p; print(p.read_parquet({path!r}).group_by('region').agg(p.col('pay').median()))"


def rows(size) -> Iterator[Row]:
    """A median of a column, and medians of 20 groups of text keys, of 1e6 records."""
    polars = installed.polars
    if polars is None:
        return
    n, turns = size(10**6), max(1, size(500) // 100)
    regions = np.array([f"region {i:02d}" for i in range(20)])
    with tempfile.TemporaryDirectory() as folder:
        path, keys = str(Path(folder) / "pay.parquet"), Path(folder) / "keys.csv"
        frame = polars.DataFrame({"region": np.resize(regions, n), "pay": data.pay(n)})
        frame.write_parquet(path)
        keys.write_text("\n".join(["region", *regions]))
        command = [sys.executable, "-m", "dpfast", "median", path, "--column", "pay", *PUBLIC]
        grouped = [*command, "--group-by", "region", "--keys", str(keys)]
        programs = {"median of a Parquet file": (command, MEDIAN), "its medians by group": (grouped, GROUPED)}
        for name, (ours, program) in programs.items():
            theirs = [sys.executable, "-c", program.format(path=path)]
            pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(turns)]
            mine, floor = map(min, zip(*pairs, strict=True))
            yield Row(f"dpfast {name}, n = {power(n)}", mine, "a process of polars", floor, 1.1, {}, turns)


def _seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start
