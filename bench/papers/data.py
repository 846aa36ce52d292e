"""The data files of the benchmarks: where they are, what they should be, and a command that fetches them."""

import os
from pathlib import Path

VARIABLE = "DPFAST_DATA"


def find(name: str) -> Path | None:
    """The file of this name in the folder `VARIABLE`, or None."""
    folder = Path(os.environ.get(VARIABLE, Path(__file__).resolve().parents[3] / "shared" / "data"))
    path = folder / name
    return path if path.exists() else None
