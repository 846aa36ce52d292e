"""Small calls and kernels, each listed once: `bench.compare`, asv and the count of instructions read this table.

It uses public names and no other module of `bench`, so that `assurance.speed` can count those of another tree.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import dpfast as dpf
from dpfast import local
from dpfast.random import SecureBitGenerator

BOUNDS = (0.0, 1e6)
PUBLIC = {"bounds": BOUNDS, "epsilon": 1.0}


@dataclass(frozen=True)
class Call:
    """A call, what it is compared with, and the greatest ratio of their times (None: for information)."""

    run: Callable[[], Any]
    floor: Callable[[], Any] | float
    floor_name: str
    limit: float | None = None


def _pay(n: int) -> np.ndarray:
    return np.random.default_rng(0).lognormal(10.5, 0.6, n)


def _mechanisms() -> dict[str, Any]:
    statistics, public = dpf.statistics, {"grid": dpf.Grid(*BOUNDS), "epsilon": 1.0}
    return {
        "median": dpf.InverseSensitivity(statistics.Median(), **public),
        "trimmed mean": dpf.InverseSensitivity(statistics.TrimmedMean(0.1), **public),
        "smooth median": dpf.SmoothSensitivity(statistics.Median(), **public),
        "mean": dpf.GlobalSensitivity(statistics.Mean(), **public),
        "variance": dpf.GlobalSensitivity(statistics.Variance(), **public),
        "count": dpf.GlobalSensitivity(statistics.Count(), neighbors="add-remove", **public),
        "9 quantiles": dpf.Quantiles(np.arange(1, 10) / 10, **public),
    }


def lines(x: np.ndarray) -> dict[str, Callable[[], Any]]:
    """The calls that build a mechanism for one release."""
    return {
        "median": partial(dpf.median, x, **PUBLIC),
        "trimmed mean": partial(dpf.trimmed_mean, x, 0.1, method="inverse-sensitivity", **PUBLIC),
        "smooth median": partial(dpf.median, x, method="smooth-sensitivity", **PUBLIC),
        "mean": partial(dpf.mean, x, **PUBLIC),
        "std": partial(dpf.std, x, **PUBLIC),
        "count": partial(dpf.count, x, epsilon=1.0),
        "interval of the mean": partial(dpf.interval, "mean", x, **PUBLIC),
    }


def small() -> dict[str, Call]:
    """Releases of 100 records, reports of one person, a draw, and the lock of the secure generator."""
    x, rng, deciles = _pay(100), np.random.default_rng(1), np.arange(1, 10) / 10
    median, unit, lock = partial(np.median, x), np.full((1, 100), 0.05), SecureBitGenerator().lock
    limits = {"median": 0.4, "trimmed mean": 0.9, "smooth median": 1.3, "mean": 0.9, "variance": 1.0, "count": 0.6}
    people = {
        "k-RR": (local.Categorical(100, 1.0, "k-rr"), np.array([7]), 0.4),
        "interval": (local.Interval(1.0, bounds=(0, 1)), np.array([0.3]), 0.4),
        "l2 ball, d = 100": (local.L2Ball(100, 1.0), unit, 0.6),
        "hypercube, d = 100": (local.Hypercube(100, 1.0), unit, 0.7),
    }

    def thousand() -> None:
        for _ in range(1000):
            with lock:
                pass

    mechanisms = _mechanisms()
    return {
        **{f"{name}, built": Call(partial(mechanisms[name], x), median, "np.median", limits[name]) for name in limits},
        "9 quantiles, built": Call(
            partial(mechanisms["9 quantiles"], x), partial(np.quantile, x, deciles), "np.quantile", 4.0
        ),
        **{f"{name} in one line": Call(run, median, "np.median") for name, run in lines(x).items()},
        "histogram of 20 bins": Call(
            partial(dpf.histogram, x, 20, **PUBLIC),
            partial(np.histogram, x, 20, range=BOUNDS),
            "np.histogram",
            1.8,
        ),
        **{
            f"one local report, {name}": Call(partial(survey.randomize, record), median, "np.median of 100", limit)
            for name, (survey, record, limit) in people.items()
        },
        "noise.laplace(1e3), one draw": Call(
            lambda: dpf.noise.laplace(1e3), lambda: rng.laplace(0.0, 1e3), "Generator.laplace(0.0, 1e3)", 1.0
        ),
        "1000 entries of the lock of SecureBitGenerator": Call(thousand, 60e-6, "60 us", 1.0),
    }


def kernels() -> dict[str, Callable[[], Any]]:
    """Calls on 1,000 to 100,000 records, whose instructions are counted."""
    rng, many, mechanisms = np.random.default_rng(0), _pay(10**5), _mechanisms()
    grid, secure = dpf.Grid(*BOUNDS), SecureBitGenerator()
    answers = rng.integers(0, 100, 10**4)
    surveys = {method: local.Categorical(100, 1.0, method) for method in ("k-rr", "oue", "subset", "olh")}
    sets, hashed = surveys["subset"].randomize(answers), surveys["olh"].randomize(answers[:1000])
    labels, rows = rng.permutation(np.repeat(np.arange(2_000), 10)), rng.normal(size=(5_000, 20))
    gamma = dpf.SampleAndAggregate("gamma", bounds={"shape": (0.1, 10)}, epsilon=1.0)
    median = mechanisms["median"]
    return {
        "secure words, 1e5": lambda: secure.random_raw(10**5),
        "Laplace noise, 1e4 draws": lambda: dpf.noise.laplace(100.0, 10**4),
        "Gaussian noise, 1e4 draws": lambda: dpf.noise.gaussian(100.0, 10**4),
        "codes of records, n = 1e5": lambda: grid.encode(many),
        "median, n = 1e5": lambda: median(many),
        "9 quantiles, n = 1e5": lambda: mechanisms["9 quantiles"](many),
        "mean, n = 1e5": lambda: mechanisms["mean"](many),
        "histogram of 1000 bins, n = 1e5": lambda: dpf.histogram(many, 1000, **PUBLIC),
        "mean of 5,000 rows, d = 20": lambda: dpf.mean(rows, bounds=(-5.0, 5.0), epsilon=1.0),
        "medians of 2,000 groups of 10": lambda: dpf.by_group(median, many[:20_000], labels=labels, num_groups=2_000),
        "gamma shape, n = 1e5": lambda: gamma(many),
        "k-RR, 1e4 reports": lambda: surveys["k-rr"].randomize(answers),
        "OUE, 1e3 reports of 100 bits": lambda: surveys["oue"].randomize(answers[:1000]),
        "sums of 1e4 subsets of 100": lambda: surveys["subset"].aggregate(sets),
        "counts of 1e3 lines, k = 100": lambda: surveys["olh"].aggregate(hashed),
    }


def controls() -> dict[str, Callable[[], Any]]:
    """Slower versions of two calls, which the count of instructions must reject."""
    x, longer, grid, median = _pay(100), np.resize(_pay(10**5), 106_000), dpf.Grid(*BOUNDS), _mechanisms()["median"]
    return {
        "control: a median, and the sum of 50 numbers": lambda: (sum(range(50)), median(x)),
        "control: codes of 6 % more records": lambda: grid.encode(longer),
    }
