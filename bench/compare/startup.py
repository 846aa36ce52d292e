"""The time of ``import dpfast`` after NumPy, in processes of its own."""

import subprocess
import sys
from collections.abc import Iterator

from bench.compare.clock import Row

SECONDS = 0.12
PROGRAM = """
import time
import numpy
start = time.perf_counter()
import dpfast
print(time.perf_counter() - start)
"""


def rows(size) -> Iterator[Row]:
    """The least time of several processes; `size` of 100 is one process."""
    turns = max(1, size(700) // 100)
    found = [
        float(subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True).stdout)
        for _ in range(turns)
    ]
    yield Row("import dpfast after NumPy", min(found), f"{SECONDS} s", SECONDS, 1.0, {}, turns)
