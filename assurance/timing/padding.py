"""Answers for two datasets whose run times differ: at once, and at public times, as the example service gives them.

At once they must be told apart (the control). At public times the lag of the answers is compared: the times from when
they are due, which the delay then hides.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpfast as dpf
from assurance.timing.distinguish import advantage
from assurance.timing.selection import shown
from dpfast.timing import AnswerTime

RECORDS, REQUESTS = 1_000_000, 1500
TIME = AnswerTime("0.04", stability="1e-4", epsilon="1/50", delta="0.1", overrun="1e-9")


class Noted(AnswerTime):
    """Answer times whose delays are noted, to compute lags."""

    def delay(self, rng: Any = None) -> int:
        noted.append(super().delay(rng))
        return noted[-1]


noted: list[int] = []


def times(run: Callable[[Callable[[], Any]], Any], data: tuple[NDArray[np.float64], ...]) -> list[NDArray[np.float64]]:
    """Nanoseconds of each answer, by dataset, in random order."""
    median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100), epsilon=1.0)
    rng, found = np.random.default_rng(2), ([], [])  # type: ignore[var-annotated]

    async def ask() -> None:
        for _ in range(REQUESTS):
            which = int(rng.integers(2))
            start = time.monotonic_ns()
            try:
                await run(lambda which=which: median.release(data[which]))
            except TimeoutError:
                late.append(which)
            passed = time.monotonic_ns() - start
            found[which].append(passed - (noted.pop() if noted else 0))

    late: list[int] = []
    asyncio.run(ask())
    if late:
        print(f"  {len(late)} answers of {REQUESTS} were withheld")
    return [np.array(values, np.float64) for values in found]


def check() -> list[str]:
    """Print the advantages and the lags; a failure if the control is not told apart."""
    data = (np.full(RECORDS, 50.0), np.random.default_rng(0).uniform(0, 100, RECORDS))
    print(f"padding: medians of {RECORDS} records, constant or random; {REQUESTS} answers")
    at_once = times(asyncio.to_thread, data)
    control = advantage(*at_once)
    middle = [f"{np.median(values) / 1e6:.2f}" for values in at_once]
    print(f"  at once: medians of {' and '.join(middle)} ms, {shown(control)}")
    at = Noted(TIME.seconds, stability=TIME.stability, epsilon=TIME.epsilon, delta=TIME.delta, overrun=TIME.overrun)
    lags = [values - 1e9 * float(TIME.seconds) for values in times(at.run, data)]
    for p in (0.05, 0.5, 0.95):
        print(f"  lag, {p:.0%} quantile: {' and '.join(f'{np.quantile(lag, p) / 1e3:.0f}' for lag in lags)} us")
    print(f"  at public times, delay known: {shown(advantage(*lags))}")
    hidden = [lag + [TIME.delay() for _ in lag] for lag in lags]
    print(f"  at public times: {shown(advantage(*hidden))}")
    return [] if control.lower > 0.5 else ["padding: the control was not told apart"]
