"""Run by `counts.py` under callgrind as a script: dump the instructions of each call, in the order of `cases`.

It imports nothing of this folder, so that it can count the calls of another tree of the sources, by public names only.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import itertools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

WARM, ROUNDS = 6, 10
SMALL, KERNEL = "small call", "kernel"
EMPTY = "nothing"
CONTROLS = {  # a slower version, and the case that it must not pass for
    "control: a median, and the sum of 50 numbers": "median, built",
    "control: codes of 6 % more records": "codes of records, n = 1e5",
}

_requests = itertools.count()


def bytes_in_order(size: int) -> bytes:
    """Instead of the randomness of the operating system: other bytes at each request, the same in each run."""
    return hashlib.shake_128(str(next(_requests)).encode()).digest(size)


def cases() -> dict[str, tuple[str, Callable[[], Any]]]:
    """For each case its kind and the call."""
    import numpy as np

    import dpfast as dpf
    from dpfast import local
    from dpfast.random import SecureBitGenerator

    rng = np.random.default_rng(0)
    bounds = (0.0, 1e6)
    few, many = (rng.lognormal(10.5, 0.6, n) for n in (100, 10**5))
    longer = np.resize(many, 106_000)
    grid, statistics = dpf.Grid(*bounds), dpf.statistics
    public = {"grid": grid, "epsilon": 1.0}
    median = dpf.InverseSensitivity(statistics.Median(), **public)
    trimmed = dpf.InverseSensitivity(statistics.TrimmedMean(0.1), **public)
    smooth = dpf.SmoothSensitivity(statistics.Median(), **public)
    mean, variance = (dpf.GlobalSensitivity(s(), **public) for s in (statistics.Mean, statistics.Variance))
    count = dpf.GlobalSensitivity(statistics.Count(), neighbors="add-remove", **public)
    deciles = dpf.Quantiles(np.arange(1, 10) / 10, **public)
    survey = local.Categorical(100, epsilon=1.0, method="k-rr")
    ball, cube = local.L2Ball(100, 1.0), local.Hypercube(100, 1.0)
    unit = np.full((1, 100), 0.05)

    answers = rng.integers(0, 100, 10**4)
    unary, subset, hashed = (local.Categorical(100, epsilon=1.0, method=m) for m in ("oue", "subset", "olh"))
    sets, lines = subset.randomize(answers), hashed.randomize(answers[:1000])
    labels = rng.permutation(np.repeat(np.arange(2_000), 10))
    rows = rng.normal(size=(5_000, 20))
    box = {"bounds": (-5.0, 5.0), "epsilon": 1.0}
    gamma = dpf.SampleAndAggregate("gamma", bounds={"shape": (0.1, 10)}, epsilon=1.0)
    words = SecureBitGenerator()

    calls = {
        "median, built": lambda: median(few),
        "trimmed mean, built": lambda: trimmed(few),
        "smooth median, built": lambda: smooth(few),
        "mean, built": lambda: mean(few),
        "variance, built": lambda: variance(few),
        "count, built": lambda: count(few),
        "9 quantiles, built": lambda: deciles(few),
        "dpf.median": lambda: dpf.median(few, bounds=bounds, epsilon=1.0),
        "dpf.mean": lambda: dpf.mean(few, bounds=bounds, epsilon=1.0),
        "dpf.histogram of 20 bins": lambda: dpf.histogram(few, 20, bounds=bounds, epsilon=1.0),
        "noise.laplace, one draw": lambda: dpf.noise.laplace(100.0),
        "a report, k-RR": lambda: survey.randomize([7]),
        "a report, l2 ball, d = 100": lambda: ball.randomize(unit),
        "a report, hypercube, d = 100": lambda: cube.randomize(unit),
    }
    kernels = {
        "secure words, 1e5": lambda: words.random_raw(10**5),
        "Laplace noise, 1e4 draws": lambda: dpf.noise.laplace(100.0, 10**4),
        "Gaussian noise, 1e4 draws": lambda: dpf.noise.gaussian(100.0, 10**4),
        "codes of records, n = 1e5": lambda: grid.encode(many),
        "median, n = 1e5": lambda: median(many),
        "9 quantiles, n = 1e5": lambda: deciles(many),
        "mean, n = 1e5": lambda: mean(many),
        "histogram of 1000 bins, n = 1e5": lambda: dpf.histogram(many, 1000, bounds=bounds, epsilon=1.0),
        "mean of 5,000 rows, d = 20": lambda: dpf.mean(rows, **box),
        "medians of 2,000 groups of 10": lambda: dpf.by_group(median, many[:20_000], labels=labels, num_groups=2_000),
        "gamma shape, n = 1e5": lambda: gamma(many),
        "k-RR, 1e4 reports": lambda: survey.randomize(answers),
        "OUE, 1e3 reports of 100 bits": lambda: unary.randomize(answers[:1000]),
        "sums of 1e4 subsets of 100": lambda: subset.aggregate(sets),
        "counts of 1e3 lines, k = 100": lambda: hashed.aggregate(lines),
    }
    controls = (
        lambda: (sum(range(50)), median(few)),
        lambda: grid.encode(longer),
    )
    return {
        EMPTY: (SMALL, lambda: None),
        **{name: (SMALL, call) for name, call in calls.items()},
        **{name: (KERNEL, call) for name, call in kernels.items()},
        **dict(zip(CONTROLS, zip((SMALL, KERNEL), controls, strict=True), strict=True)),
    }


def main() -> None:
    os.urandom = bytes_in_order  # type: ignore[assignment]  # before the first import of dpfast: keys and seeds of tables
    probe = ctypes.CDLL(sys.argv[1])
    zero, dump = probe.probe_zero, probe.probe_dump
    made = cases()
    gc.collect()
    gc.freeze()
    gc.disable()
    order: list[list[str]] = []
    probe.probe_start()
    for name, (kind, call) in made.items():
        for _ in range(WARM):
            call()
        for _ in range(ROUNDS):
            zero()
            call()
            dump()
            order.append([name, kind])
    Path(sys.argv[2]).write_text(json.dumps(order))


if __name__ == "__main__":
    main()
