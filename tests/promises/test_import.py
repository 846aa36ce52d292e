"""The modules that an import of the library loads, and an import from sources that are not compiled."""

import shutil
import subprocess
import sys
from pathlib import Path

import dpfast

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


def test_sources_that_are_not_compiled(tmp_path):
    """Python in a clone finds the sources before an installed dpfast: the error says what to do."""
    sources = Path(dpfast.__file__).parent
    shutil.copytree(sources, tmp_path / "dpfast", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    command = [sys.executable, "-c", "import dpfast"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 1
    assert "ImportError: dpfast is imported from its sources" in found.stderr
