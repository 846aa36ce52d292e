"""Small calls: the overhead of Python and of the checks."""

from collections.abc import Iterator
from functools import partial

import numpy as np

import dpfast as dpf
from bench import calls, data
from bench.compare.clock import Floor, Job
from bench.peers import installed


def call(size) -> Iterator[Job]:
    """The small calls of `bench.calls`, and for calls in one line five of them against five built ones."""
    x, table = data.pay(100), calls.small()
    for name, one in table.items():
        others = installed.medians(x) if name == "median, built" else {}
        yield Job(name, one.run, (Floor(one.floor_name, one.floor, one.limit),), others)
    for name in ("median", "trimmed mean", "smooth median", "mean", "count"):
        built, line = table[f"{name}, built"], table[f"{name} in one line"].run
        floor = Floor("5 built calls and 1 np.median", partial(_five, built.run, built.floor), 1.0)
        yield Job(f"5 of {name} in one line", partial(_five, line), (floor,))
    theirs, public = Floor("np.median", partial(np.median, x)), {"bounds": data.BOUNDS, "epsilon": data.EPSILON}
    for name in ("mean", "median", "variance", "sum"):
        yield Job(f"interval of the {name}, n = 100", partial(dpf.interval, name, x, **public), (theirs,))
    assumed = partial(dpf.explain, "median", n=1000, **public, distribution=(20_000.0, 80_000.0))
    yield Job("explain under typical values, asked before", assumed, (theirs,))


def _five(call, last=None):
    for _ in range(5):
        call()
    if last is not None:
        last()
