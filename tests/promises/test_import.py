"""The modules that an import of the library loads."""

import subprocess
import sys

SLOW = {
    "scipy.stats",
    "scipy.optimize",
    "dask",
    "distributed",
    "opendp",
    "pandas",
    "pipeline_dp",
    "polars",
    "pyarrow",
    "pyspark",
    "sklearn",
}


def test_slow_imports_are_deferred():
    program = "import sys, dpfast; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "dpfast" in loaded
    assert not SLOW.intersection(loaded)
