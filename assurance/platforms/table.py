"""The recorded table of outcomes, and its comparison with this machine: `python -m assurance.platforms.table`.

An exact outcome is recorded as the first half of the SHA-256 digest of its bytes. Outcomes that NumPy, SciPy or BLAS
computed in doubles, which differ in the last places between machines, are recorded as numbers.
"""

import argparse
import hashlib
import json
import platform
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from assurance.platforms.outcomes import computed, outcomes, packed

TABLE = Path(__file__).with_name("table.json")
KEPT = 8  # numbers of an outcome that is not exact
# Tolerances, relative and absolute, of outcomes that are not exact, by the beginning of their names: log-probabilities,
# and estimates that NumPy, SciPy or LAPACK computes from exact releases.
NEAR = {
    "law: ": 2.0**-36,
    "function: linear_regression": 2.0**-36,
    "function: linear_regression, residuals": 2.0**-20,  # LAPACK's basis decides how gradients are rounded
    "release: Covariance replace-one 1": 2.0**-36,
    "reports in doubles: ": 2.0**-28,
    "release: SufficientStatistics": 2.0**-24,
}


def numbers(value: Any) -> list[float]:
    """The doubles of an outcome, in order."""
    if isinstance(value, (tuple, list)):
        return [number for part in value for number in numbers(part)]
    if isinstance(value, dict):
        return numbers(list(value.values()))
    if isinstance(value, (float, int, np.ndarray, np.generic)):
        return np.asarray(value, np.float64).reshape(-1).tolist()
    return numbers(list(vars(value).values())) if hasattr(value, "__dict__") else []


def recorded(name: str, value: Any) -> str | list[str]:
    """What the table holds for an outcome."""
    if name.startswith(tuple(NEAR)):
        return [number.hex() for number in numbers(value)[:KEPT]]
    return hashlib.sha256(packed(value)).hexdigest()[:32]


def close(name: str, here: Any, there: Any) -> bool:
    """Whether two entries of a name agree: equal, or numbers within the tolerance."""
    if here == there or not (isinstance(here, list) and isinstance(there, list) and len(here) == len(there)):
        return bool(here == there)
    a, b = (np.array([float.fromhex(number) for number in entry]) for entry in (here, there))
    tolerance = NEAR[max((start for start in NEAR if name.startswith(start)), key=len)]
    return bool(np.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True).all())


def run(calls: dict[str, Callable[[], Any]] | None = None) -> dict[str, str | list[str]]:
    """The entries of this machine."""
    calls = outcomes() if calls is None else calls
    return {name: recorded(name, computed(call)) for name, call in calls.items()}


def read() -> dict[str, str | list[str]]:
    """The recorded table."""
    return json.loads(TABLE.read_text(encoding="utf-8"))


def differing(here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    """The names of entries that differ or that only one of two tables has."""
    return [name for name in there | here if not close(name, here.get(name), there.get(name))]


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m assurance.platforms.table", description=__doc__.partition(":")[0])
    parser.add_argument("--write", action="store_true", help="record the outcomes of this machine")
    parser.add_argument("--save", type=Path, help="also write the outcomes of this machine to this file")
    options = parser.parse_args(arguments)
    here = run()
    text = json.dumps(here, indent=0, ensure_ascii=True)
    if options.save:
        options.save.write_text(text + "\n", encoding="utf-8")
    if options.write:
        TABLE.write_text(text + "\n", encoding="utf-8")
    there = read()
    wrong = differing(here, there)
    for name in wrong:
        print(f"differs: {name}")
    exact = sum(isinstance(entry, str) for entry in there.values())
    machine = f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}"
    print(f"{machine}: {len(there) - len(wrong)} of {len(there)} outcomes as recorded, {exact} of them exact")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
