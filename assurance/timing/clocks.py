"""Cycles of single calls: fixed against random secrets, by Welch's t with dudect's cropping. x86-64 only."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from assurance.timing.taint import ROOT, compiled

MEASUREMENTS = 1_000_000
FOUND = 10.0  # dudect's threshold of |t| for a leak


def check() -> list[str]:
    """Print the greatest |t| of each sampler; a failure if the control is not found."""
    if platform.machine() != "x86_64":
        print("SKIPPED: clocks: the cycle counter is that of x86-64")
        return []
    program = compiled(Path(__file__).with_name("dudect.c"), ROOT / "build" / "timing" / "dudect")
    lines = subprocess.run([program, str(MEASUREMENTS)], check=True, capture_output=True, text=True).stdout
    print(f"clocks: cycles, {MEASUREMENTS} measurements of each, fixed against random secrets")
    found = {}
    for line in lines.splitlines():
        name, cycles, t, difference = line.split("\t")
        found[name] = abs(float(t)) > FOUND
        verdict = "differs" if found[name] else "no difference found"
        print(
            f"  {name:32} median {cycles:>6}, |t| {abs(float(t)):7.1f}, difference {float(difference):7.2f}: {verdict}"
        )
    return [] if found["control: trials until success"] else ["clocks: the control was not found"]
