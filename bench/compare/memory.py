"""Extra memory of one call in its own process: ``python -m bench.compare.memory mechanism 10000000`` prints bytes.

Linux only. The peak of resident memory is reset after the data are made and after a warm-up call on a few records.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import dpfast as dpf
from bench import data
from bench.compare.clock import Row, power


def extra(line, n):
    """The peak of resident memory, in bytes, that one call adds to its data; None if the system does not report it."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    call = [sys.executable, "-m", "bench.compare.memory", line, str(n)]
    return int(subprocess.run(call, check=True, capture_output=True, text=True).stdout)


def rows(size) -> Iterator[Row]:
    """Resident memory that the median adds to its data, each size in its own process."""
    for n in (size(10**7), size(10**8)):
        ours, theirs = extra("mechanism", n), extra("np.median", n)
        if ours is not None:
            yield Row(
                f"extra memory of the median, n = {power(n)}", ours, "x", 8.0 * n, 0.05, {"np.median": theirs}, 1, "B"
            )
    yield from quantile_rows(size)


def quantile_rows(size) -> Iterator[Row]:
    """Resident memory of joint quantiles: linear in their number, with a window of records for each."""
    n, used = size(10**6), {m: extra(f"joint {m}", size(10**6)) for m in (99, 999)}
    if used[99] is not None:
        job = f"extra memory of joint quantiles, m = 999, n = {power(n)}"
        yield Row(job, max(used[999], 1), "m = 99", max(used[99], 1), 1.1 * 999 / 99, {}, 1, "B")


def _peak():
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def _joint(m):
    return dpf.Quantiles(np.arange(1, m + 1) / (m + 1), grid=dpf.Grid(*data.BOUNDS), epsilon=data.EPSILON)


def _measure(line, n):
    run = _joint(int(line.split()[1])) if line.startswith("joint") else data.median_mechanism()
    run = np.median if line == "np.median" else run
    run(data.pay(10_000))
    x = data.pay(n)
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak()
    run(x)
    return _peak() - before


if __name__ == "__main__":
    print(_measure(sys.argv[1], int(sys.argv[2])))
