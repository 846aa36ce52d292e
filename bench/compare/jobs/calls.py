"""Small calls: the overhead of Python and of the checks."""

from collections.abc import Iterator
from functools import partial

import numpy as np

import dpfast as dpf
from bench import data
from bench.compare.clock import Floor, Job
from bench.peers import installed
from dpfast import local
from dpfast.random import SecureBitGenerator


def built(x):
    """Mechanisms of x that are built, the calls that build them, and the limits of both to np.median."""
    public, short = {"grid": dpf.Grid(*data.BOUNDS), "epsilon": data.EPSILON}, {"epsilon": data.EPSILON}
    bounded, statistics = short | {"bounds": data.BOUNDS}, dpf.statistics
    median, trimmed = statistics.Median(), statistics.TrimmedMean(0.1)
    count = dpf.GlobalSensitivity(statistics.Count(), neighbors="add-remove", **public)
    return {
        "median": (dpf.InverseSensitivity(median, **public), partial(dpf.median, x, **bounded), 0.4),
        "trimmed mean": (
            dpf.InverseSensitivity(trimmed, **public),
            partial(dpf.trimmed_mean, x, 0.1, method="inverse-sensitivity", **bounded),  # "auto" takes the other
            0.9,
        ),
        "smooth median": (
            dpf.SmoothSensitivity(median, **public), partial(dpf.median, x, method="smooth-sensitivity", **bounded), 1.3
        ),
        "mean": (dpf.GlobalSensitivity(statistics.Mean(), **public), partial(dpf.mean, x, **bounded), 0.9),
        "std": (dpf.GlobalSensitivity(statistics.Variance(), **public), partial(dpf.std, x, **bounded), 1.0),
        "count": (count, partial(dpf.count, x, **short), 0.6),
    }  # fmt: skip


def call(size) -> Iterator[Job]:
    """Releases of 100 records, against NumPy's of the same 100."""
    x = data.pay(100)
    theirs = partial(np.median, x)
    for name, (mechanism, line, limit) in built(x).items():
        release, others = partial(mechanism, x), installed.medians(x) if name == "median" else {}
        yield Job(f"{name}, n = 100, mechanism built", release, (Floor("np.median", theirs, limit),), others)
        floors = (
            Floor("5 built calls and 1 np.median", partial(_five, release, theirs), 1.0),
            Floor("np.median", theirs),
        )
        yield Job(f"5 one-line calls, {name}, n = 100", partial(_five, line), floors[:1])
        yield Job(f"one-line call, {name}, n = 100", line, floors[1:])
    public = {"bounds": data.BOUNDS, "epsilon": data.EPSILON}
    for name in ("mean", "median", "variance", "sum"):
        run = partial(dpf.interval, name, x, **public)
        yield Job(f"interval of the {name}, n = 100", run, (Floor("np.median", theirs),))
    assumed = partial(dpf.explain, "median", n=1000, **public, distribution=(20_000.0, 80_000.0))
    yield Job("explain under typical values, asked before", assumed, (Floor("np.median", theirs),))
    deciles = np.arange(1, 10) / 10
    floor = Floor("np.quantile", lambda: np.quantile(x, deciles), 4.0)
    yield Job("9 quantiles, n = 100, mechanism built", partial(data.deciles_mechanism(), x), (floor,))
    floor = Floor("np.histogram", lambda: np.histogram(x, 20, range=data.BOUNDS), 1.8)
    yield Job("histogram of 20 bins, n = 100", lambda: dpf.histogram(x, 20, **public), (floor,))


def _five(call, last=None):
    for _ in range(5):
        call()
    if last is not None:
        last()


def one_draw(size) -> Iterator[Job]:
    """Local reports of one person, a draw of noise, and the lock of the secure generator."""
    x, rng, epsilon = data.pay(100), np.random.default_rng(1), data.EPSILON
    unit = np.full((1, 100), 0.05)
    reports = {
        "k-RR": (local.Categorical(data.CATEGORIES, epsilon, "k-rr"), np.array([7]), 0.4),
        "interval": (local.Interval(epsilon, bounds=(0, 1)), np.array([0.3]), 0.4),
        "l2 ball, d = 100": (local.L2Ball(100, epsilon), unit, 0.6),
        "hypercube, d = 100": (local.Hypercube(100, epsilon), unit, 0.7),
    }
    for name, (survey, record, limit) in reports.items():
        floor = Floor("np.median of 100", partial(np.median, x), limit)
        yield Job(f"one local report, {name}", partial(survey.randomize, record), (floor,))
    floor = Floor("Generator.laplace(0.0, 1e3)", lambda: rng.laplace(0.0, 1e3), 1.0)
    yield Job("noise.laplace(1e3), one draw", lambda: dpf.noise.laplace(1e3), (floor,))
    lock = SecureBitGenerator().lock

    def thousand():
        for _ in range(1000):
            with lock:
                pass

    yield Job("1000 entries of the lock of SecureBitGenerator", thousand, (Floor("60 us", 60e-6, 1.0),))
