"""The command that makes a payroll file and releases its quartiles."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from dpfast.cli.output import warn
from dpfast.cli.records import rng_of
from dpfast.core import checks
from dpfast.core.grid import Grid
from dpfast.core.traps import warn_of
from dpfast.mechanisms import Quantiles
from dpfast.tables import read_column

# The payroll of the demo: lognormal yearly pay in whole cents, from public parameters.
_MEDIAN_PAY, _SPREAD, _MOST_PAY = 48_000.0, 0.55, 1_000_000.0
_QUARTILES = (0.25, 0.5, 0.75)


def demonstrate(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write a payroll file, release its quartiles and compare them with NumPy's."""
    rows = checks.whole("rows", arguments.rows, least=1)
    grid = Grid(0.0, _MOST_PAY)
    mechanism = Quantiles(_QUARTILES, grid=grid, epsilon=arguments.epsilon)
    warn_of(mechanism)
    with tempfile.TemporaryDirectory(prefix="dpfast-demo-") as folder:
        path = Path(folder) / "payroll.csv"
        warn(f"writing {rows:,} made-up salaries to {path} ...")
        pay = np.random.default_rng(arguments.seed).lognormal(np.log(_MEDIAN_PAY), _SPREAD, rows)
        with path.open("w", encoding="ascii", newline="\n") as file:
            file.write("employee,pay\n")
            file.writelines(f"{i},{amount:.2f}\n" for i, amount in enumerate(pay.tolist(), 1))
        x = read_column(str(path), "pay", progress=True)
    rng = rng_of(arguments)
    mechanism(x[:1000], rng=rng)  # the first call creates the generator of its thread
    start = time.perf_counter()
    values = mechanism(x, rng=rng).tolist()
    middle = time.perf_counter()
    exact = np.quantile(x, _QUARTILES)
    end = time.perf_counter()
    privacy = mechanism.privacy
    header = f"{'quartile':<10}{'private (dpfast)':>18}{'not private (numpy)':>22}"
    lines = [f"{q:<10g}{value:>18,.2f}{true:>22,.2f}" for q, value, true in zip(_QUARTILES, values, exact, strict=True)]
    times = f"{'time':<10}{1e3 * (middle - start):>15.1f} ms{1e3 * (end - middle):>19.1f} ms"
    guarantee = f"guarantee: {privacy}"
    return {
        "q": _QUARTILES,
        "values": values,
        "numpy": exact.tolist(),
        "milliseconds": 1e3 * (middle - start),
        "numpy_milliseconds": 1e3 * (end - middle),
        "n": rows,
        "epsilon": privacy.epsilon,
        "private": arguments.seed is None,
        "text": "\n".join([header, *lines, times, guarantee]),
    }
