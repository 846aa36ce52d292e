"""Extra memory of one call in its own process: ``python -m bench.compare.memory mechanism 10000000`` prints bytes.

Linux only. The peak of resident memory is reset after the data are made and after a warm-up call on a few records.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench import data
from bench.compare.clock import Row
from bench.compare.jobs import power


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


def _peak():
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def _measure(line, n):
    run = {"mechanism": data.median_mechanism(), "np.median": np.median}[line]
    run(data.pay(10_000))
    x = data.pay(n)
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak()
    run(x)
    return _peak() - before


if __name__ == "__main__":
    print(_measure(sys.argv[1], int(sys.argv[2])))
