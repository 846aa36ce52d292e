"""Work of threads on shared objects, small enough for ThreadSanitizer: `python -m assurance.platforms.threaded`.

Each job is one object that all threads use from its first use on. Results are compared with those of one thread.
"""

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast.random import SecureBitGenerator
from tests.threads import in_threads

THREADS = 4
X = np.random.default_rng(0).normal(50, 10, 2000)
ROWS = X.reshape(-1, 2)
GRID = dpf.Grid(0, 100)


def shared() -> dict[str, Callable[[], Callable[[int], Any]]]:
    """For each name a function that makes a shared object, and returns the work of thread i on it."""

    def of(make: Callable[[], Any], work: Callable[[Any, int], Any]) -> Callable[[], Callable[[int], Any]]:
        def start() -> Callable[[int], Any]:
            thing = make()
            return lambda i: np.asarray(work(thing, i)).tolist()

        return start

    def release(records: Any, **options: Any) -> Callable[[Any, int], Any]:
        return lambda mechanism, i: [mechanism(records, rng=PCG64(i), **options) for _ in range(3)]

    def sample(law: Any, i: int) -> Any:
        return law.sample(20, rng=PCG64(i))

    median, mean = dpf.statistics.Median(), dpf.statistics.Mean()
    inverse = dpf.InverseSensitivity(median, grid=GRID, epsilon=1.0)
    depth = dpf.robust.TukeyDepth(grid=GRID, epsilon=4.0)
    joint = dpf.Quantiles((0.1, 0.5, 0.9), grid=GRID, epsilon=1.0)
    histogram = dpf.densities.PerturbedHistogram(20, grid=GRID, epsilon=1.0)
    boxes = dpf.NestedBoxes(median, grid=GRID, epsilon=1.0)
    return {
        "the median": of(lambda: inverse, release(X)),
        "the median, with workers": of(lambda: inverse, release(np.tile(X, 200), workers=2)),
        "the law of the median": of(lambda: inverse.law(X), sample),
        "the mean": of(lambda: dpf.GlobalSensitivity(mean, grid=GRID, epsilon=0.1), release(X)),
        "the smooth median": of(lambda: dpf.SmoothSensitivity(median, grid=GRID, epsilon=1.0), release(X)),
        "Huber's estimate": of(lambda: dpf.MEstimator(dpf.psi.Huber(5.0), grid=GRID, epsilon=1.0), release(X)),
        "joint quantiles": of(lambda: joint, release(X)),
        "the law of joint quantiles": of(lambda: joint.law(X), sample),
        "nested boxes": of(lambda: boxes, release(ROWS, workers=2)),
        "the law of nested boxes": of(lambda: boxes.law(ROWS), sample),
        "the law of Tukey depth": of(lambda: depth.law(ROWS[:200]), sample),
        "a histogram": of(lambda: histogram, lambda mechanism, i: mechanism(X, rng=PCG64(i)).counts),
        "a call of one line": of(lambda: X, lambda x, i: dpf.median(x, bounds=(0, 100), epsilon=1.0, rng=PCG64(i))),
        "noise": of(lambda: None, lambda _, i: dpf.noise.laplace(3.0, 500, rng=PCG64(i))),
    }


def generators() -> None:
    """Words of one secure generator are different in all threads, and those of each thread's own are."""
    source = SecureBitGenerator()
    for draw in (source.random_raw, lambda n: dpf.random.secure_generator().bit_generator.random_raw(n)):
        parts = in_threads(lambda i, draw=draw: draw(9000).tolist() + [int(draw(1)[0]) for _ in range(50)], THREADS)
        words = [word for part in parts for word in part]
        assert len(set(words)) == len(words)
    one = Generator(PCG64(1))
    in_threads(lambda i: [dpf.median(X, bounds=(0, 100), epsilon=1.0, rng=one) for _ in range(5)], THREADS)


def children() -> None:
    """Several threads of a child are the first to acquire the lock of the parent's generator."""
    source = SecureBitGenerator()
    child = os.fork()
    if child == 0:
        in_threads(lambda i: source.random_raw(100), THREADS)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def ledgers() -> None:
    """No charge is lost or made twice."""
    ledger = dpf.Ledger(1.0)
    median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=0.125)

    def spend(i: int) -> int:
        done = 0
        for _ in range(4):
            try:
                ledger.release(median, X)
                done += 1
            except dpf.BudgetError:
                pass
        return done

    assert sum(in_threads(spend, THREADS)) == len(ledger.charges) == 8


def main() -> int:
    for name, start in shared().items():
        work = start()
        together = in_threads(work, THREADS)
        work = start()
        assert together == [work(i) for i in range(THREADS)], name
        print(name, flush=True)
    for check in (generators, ledgers, children):
        check()
        print(check.__name__, flush=True)
    assert threading.active_count() == 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
