"""What the time of a release depends on: tables, and a nonzero status if a check fails or a control is not found.

python -m assurance.timing              # all parts, several minutes
python -m assurance.timing --quick      # what is exact: taint and counts, below a minute; CI runs it
python -m assurance.timing --only PART
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys

EXACT = ("taint", "counts")
MEASURED = ("clocks", "selection", "padding")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m assurance.timing", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the exact parts only")
    parser.add_argument("--only", choices=EXACT + MEASURED)
    options = parser.parse_args()
    parts = [options.only] if options.only else EXACT if options.quick else EXACT + MEASURED
    if set(parts) & set(EXACT) and not (shutil.which("valgrind") and shutil.which("gcc")):
        print("SKIPPED: the exact checks of time need valgrind (Debian: apt-get install valgrind) and gcc")
        parts = [part for part in parts if part not in EXACT]
    failures = [failure for part in parts for failure in importlib.import_module(f"assurance.timing.{part}").check()]
    for failure in failures:
        print(f"FAILED: {failure}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
