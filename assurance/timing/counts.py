"""The instructions of whole calls of the built kernels and of mechanisms, counted by callgrind.

The counts are independent of the load of the machine, but allocations of the interpreter take a few more instructions
in some calls than in others. So each class is called several times, and classes must have a common count, except in
`DIFFERENT`; those of the control must have none.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from assurance.timing.taint import ROOT

FOLDER = ROOT / "build" / "timing" / "counts"
CONTROL = "control: trials until success"

_CACHED = "a noise of -5..256 is an int that Python keeps, another one is made"
_INTEGERS = "Python's ints of sums have different sizes"

# Cases whose counts differ, and why.
DIFFERENT = {
    "a release by RoundedLaplace": _CACHED,
    "a release by DiscreteLaplace": _CACHED,
    "a release by RoundedGaussian": _CACHED,
    "a release by RoundedStudent3": _CACHED,
    "a release by Staircase": _CACHED,
    "noise.laplace, one draw": _CACHED,
    "mean, draws": _CACHED,
    "mean, records": _INTEGERS,
    "k-rr, records": "a list of Python's ints is converted",
}


def counted() -> dict[str, dict[str, list[int]]]:
    """The numbers of instructions of each case and class."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    probe, order = FOLDER / "probe.so", FOLDER / "order.json"
    source = str(Path(__file__).with_name("probe.c"))
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", source, "-o", str(probe)], check=True)
    worker = [sys.executable, "-m", "assurance.timing.worker", str(probe), str(order)]
    callgrind = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={FOLDER / 'dump'}"]
    environment = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([*callgrind, *worker], check=True, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, (case, name) in enumerate(json.loads(order.read_text()), 1):
        text = (FOLDER / f"dump.{number}").read_text()
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
        assert total is not None
        found[case][name].append(int(total[1]))
    return {case: dict(classes) for case, classes in found.items()}


def check() -> list[str]:
    """Print the counts; the failures."""
    failures = []
    print("counts: instructions of a call, by callgrind")
    for case, classes in counted().items():
        common = set.intersection(*map(set, classes.values()))
        each = ", ".join(f"{name}: {min(counts)}" for name, counts in sorted(classes.items()))
        shown = str(min(common)) if common else each
        print(f"  {case:32} {shown}{'; ' + DIFFERENT[case] if case in DIFFERENT else ''}")
        if case == CONTROL:
            if common:
                failures.append(f"counts: {case}: equal counts")
        elif not common and case not in DIFFERENT:
            failures.append(f"counts: {case}: {each}")
    return failures
