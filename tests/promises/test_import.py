"""What the import of the library costs."""

import subprocess
import sys

SLOW = {"scipy.stats", "scipy.optimize", "dask", "distributed", "opendp", "pandas", "polars", "pyarrow", "sklearn"}


def test_what_is_slow_to_import_waits_until_it_is_needed():
    program = "import sys, dpfast; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "dpfast" in loaded
    assert not SLOW.intersection(loaded)
