"""What the time of a selection shows of one record: neighbouring adversarial datasets, timed in turns.

Both datasets use one array, of which one record is written before each call. A threshold on the time is chosen on half
of the times and evaluated on the other half. The control compares datasets that are not neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpfast as dpf
from assurance.timing.distinguish import Advantage, advantage

SECONDS = {10_000: 2.0, 1_000_000: 6.0}  # of measuring, for each pair


def datasets(n: int) -> dict[str, tuple[NDArray[np.float64], float, float]]:
    """Records, and the two values of the middle one, in 0..100."""
    rng = np.random.default_rng(0)
    spread, halves = rng.uniform(0, 100, n), np.resize([0.0, 100.0], n)
    pipe = np.concatenate([np.arange(n // 2), np.arange(n - n // 2)[::-1]]) * (200 / n)
    return {
        "random": (spread, 0.0, 100.0),
        "sorted": (np.sort(spread), 0.0, 100.0),
        "organ pipe": (pipe, 0.0, 100.0),
        "constant": (np.full(n, 50.0), 50.0, 100.0),
        "two values, one record decides": (halves, 0.0, 100.0),
        "random, NaN or not": (spread, np.nan, 50.0),
    }


def statistics() -> dict[str, Callable[[NDArray[np.float64]], Any]]:
    grid = dpf.Grid(0, 100, 2.0**-10)
    median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=1.0)
    quantiles = dpf.Quantiles([0.25, 0.5, 0.75], grid=grid, epsilon=1.0)
    mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=grid, epsilon=1.0)
    return {"median": median.release, "3 quantiles": quantiles.release, "mean": mean.release}


def timed(call: Callable[[NDArray[np.float64]], Any], x: NDArray[np.float64], pair: tuple[float, float]) -> Advantage:
    """Times of both datasets, in random order."""
    rng, place = np.random.default_rng(1), x.size // 2
    times: tuple[list[int], list[int]] = ([], [])
    end = time.monotonic() + SECONDS[x.size]
    while time.monotonic() < end:
        which = int(rng.integers(2))
        x[place] = pair[which]
        start = time.perf_counter_ns()
        call(x)
        times[which].append(time.perf_counter_ns() - start)
    return advantage(*(np.array(values, np.float64)[len(values) // 20 :] for values in times))


def control(call: Callable[[NDArray[np.float64]], Any], n: int) -> Advantage:
    """Sorted and random records of two datasets that share no record."""
    made = datasets(n)
    first, second, x = made["constant"][0], made["random"][0], np.empty(n)
    rng, times = np.random.default_rng(1), ([], [])  # type: ignore[var-annotated]
    end = time.monotonic() + SECONDS[x.size]
    while time.monotonic() < end:
        which = int(rng.integers(2))
        x[:] = (first, second)[which]
        start = time.perf_counter_ns()
        call(x)
        times[which].append(time.perf_counter_ns() - start)
    return advantage(*(np.array(values, np.float64) for values in times))


def shown(a: Advantage) -> str:
    releases = "" if a.lower <= 0 else f", told apart after about {a.releases:.0f} releases"
    return f"advantage {a.estimate:+.3f}, in [{a.lower:+.3f}, {a.upper:+.3f}]{releases}"


def check() -> list[str]:
    """Print the advantages; a failure if the control is not told apart."""
    print("selection: the advantage of a threshold on the time, of one record, intervals at 95 %")
    failures = []
    for n in SECONDS:
        for name, call in statistics().items():
            for data, (x, one, other) in datasets(n).items():
                print(f"  n = {n}, {name}, {data}: {shown(timed(call, x, (one, other)))}", flush=True)
        found = control(statistics()["median"], n)
        print(f"  n = {n}, control, constant against random records: {shown(found)}", flush=True)
        if found.lower <= 0:
            failures.append(f"selection: the control of n = {n} was not found")
    return failures
