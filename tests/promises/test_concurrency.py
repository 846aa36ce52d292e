"""Mechanisms and generators used by many threads and by forked children at once."""

import dataclasses
import pickle
import sys
import sysconfig
import threading
import time

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast.densities import PerturbedHistogram
from dpfast.statistics import Mean, Median, TrimmedMean
from tests.cases import every
from tests.central import central, name, outcome, plain, shaped
from tests.forks import answer_of_child, needs_fork
from tests.threads import in_threads

X = np.random.default_rng(0).normal(50, 10, 999)
GRID = dpf.Grid(0, 100)
SCALARS = [
    dpf.InverseSensitivity(Median(), grid=GRID, epsilon=0.01),
    dpf.InverseSensitivity(TrimmedMean(0.1), grid=GRID, epsilon=0.01),
    dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=0.01),
    dpf.SmoothSensitivity(Median(), grid=GRID, epsilon=0.5, delta=1e-6),
    dpf.MEstimator(dpf.psi.Huber(5.0), grid=GRID, epsilon=0.01),
]
THREADS, CALLS = 8, 40
FIRST = 4  # threads that meet empty caches


@pytest.mark.parametrize("mechanism", SCALARS, ids=repr)
class TestThreads:
    def test_one_mechanism(self, mechanism):
        """Each thread draws its own words: on 2**32 points hardly any two releases are equal."""
        before = pickle.dumps(mechanism)
        parts = in_threads(lambda i: [mechanism(X) for _ in range(CALLS)])
        releases = [value for part in parts for value in part]
        assert len(set(releases)) > 0.97 * len(releases)
        assert all(0 <= value <= 100 for value in releases)
        assert pickle.dumps(mechanism) == before

    def test_one_generator(self, mechanism):
        """A release takes its words in one piece: many threads make the releases of one thread, in some order."""
        shared = Generator(PCG64(3))
        parts = in_threads(lambda i: [mechanism(X, rng=shared) for _ in range(CALLS)])
        alone = Generator(PCG64(3))
        expected = [mechanism(X, rng=alone) for _ in range(THREADS * CALLS)]
        assert sorted(value for part in parts for value in part) == sorted(expected)
        assert len(set(expected)) > len(expected) / 2

    def test_workers_inside_threads(self, mechanism):
        expected = [mechanism(X, rng=PCG64(i)) for i in range(THREADS)]
        assert in_threads(lambda i: mechanism(X, rng=PCG64(i), workers=3)) == expected

    def test_pickled(self, mechanism):
        copy = pickle.loads(pickle.dumps(mechanism))
        assert copy == mechanism
        assert hash(copy) == hash(mechanism)
        assert copy(X, rng=PCG64(1)) == mechanism(X, rng=PCG64(1))


def test_block_counts_in_threads(monkeypatch):
    """More numbers of records than a mechanism keeps: no thread loses one that another forgets."""
    monkeypatch.setattr("dpfast.aggregate.blocks._MOST_COUNTS", 2)
    sizes = range(40, 60)
    expected = [dpf.SampleAndAggregate("normal", bounds=(0, 1), epsilon=1.0).block_count(n) for n in sizes]
    shared = dpf.SampleAndAggregate("normal", bounds=(0, 1), epsilon=1.0)
    assert in_threads(lambda i: [shared.block_count(n) for n in sizes]) == [expected] * THREADS


def forget():
    """Empty all caches of functions."""
    for path, module in list(sys.modules.items()):
        if path.partition(".")[0] == "dpfast":
            for value in vars(module).values():
                getattr(value, "cache_clear", lambda: None)()


def listed(release, *args, **options):
    return np.asarray(plain(outcome(release, *args, **options))).tolist()


def drawn(law, seed):
    return listed(law.sample, 3, rng=PCG64(seed))


class TestFirstUse:
    """Threads that share an object and all of its caches, which are empty, release what one thread alone releases."""

    @every("mechanism", central(GRID, epsilon=2.0), ids=name)
    def test_mechanism_and_law(self, mechanism):
        """Of the threads, every second one begins with the mechanism, and the others with the law."""
        records = shaped(mechanism, X[:60])
        expected = [listed(mechanism, records, rng=PCG64(i)) for i in range(FIRST)]
        shared, law = pickle.loads(pickle.dumps(mechanism)), outcome(mechanism.law, records)
        samples = None if isinstance(law, str) else [drawn(mechanism.law(records), i) for i in range(FIRST)]

        def call(i):
            """A release and, unless its law is a message about the number of records, a sample."""
            sample = drawn(law, i) if samples and i % 2 else None
            released = listed(shared, records, rng=PCG64(i))
            return released, drawn(law, i) if samples and sample is None else sample

        forget()
        assert in_threads(call, FIRST) == list(zip(expected, samples or [None] * FIRST, strict=True))


def test_vectors_by_one_generator(monkeypatch):
    """A point of nested boxes takes the word of its level and those of its coordinates in one piece, too."""
    rows, boxes = X[:990].reshape(-1, 3), dpf.NestedBoxes(Median(), grid=GRID, epsilon=0.01)
    law, box = boxes.law(rows), dpf.NestedBoxes._box

    def slowly(*arguments):
        time.sleep(0.0005)  # other threads run between the two draws
        return box(*arguments)

    monkeypatch.setattr(dpf.NestedBoxes, "_box", slowly)
    for seed in range(6):
        for release in (law.sample, lambda rng: boxes(rows, rng=rng)):
            calls = CALLS if release == law.sample else 2
            shared, alone = Generator(PCG64(seed)), Generator(PCG64(seed))
            parts = in_threads(lambda i, f=release, rng=shared, k=calls: [f(rng=rng).tobytes() for _ in range(k)])
            expected = [release(rng=alone).tobytes() for _ in range(THREADS * calls)]
            assert sorted(released for part in parts for released in part) == sorted(expected)


def test_arrays_and_selections_in_threads():
    rows = X[:990].reshape(-1, 3)
    boxes = dpf.NestedBoxes(Median(), grid=GRID, epsilon=1.0)
    histogram = PerturbedHistogram(20, grid=GRID, epsilon=1.0)
    selection = dpf.Selection(epsilon=0.1)

    def job(i):
        rng = Generator(PCG64(i))
        return [
            (boxes(rows, rng=rng).tolist(), histogram(X, rng=rng).counts.tolist(), selection(X, rng=rng))
            for _ in range(10)
        ]

    assert in_threads(job) == [job(i) for i in range(THREADS)]


def test_secure_generator_handed_to_other_threads():
    """One secure generator for all: its lock keeps words from being given twice."""
    source = dpf.random.SecureBitGenerator()
    parts = in_threads(lambda i: source.random_raw(20_000).tolist() + [int(source.random_raw()) for _ in range(500)])
    words = [word for part in parts for word in part]
    assert len(set(words)) == len(words)


@needs_fork
def test_forks_while_threads_draw():
    """Children forked while threads draw make further draws, all different, and do not hang."""
    mechanism = dataclasses.replace(SCALARS[0], measure="uniform")  # of 2**32 equally likely points
    stop, drawn = threading.Event(), []
    mechanism(X)  # the generator of this thread has words left when it forks

    def draw(i):
        while not stop.is_set():
            drawn.append(mechanism(X))

    threads = [threading.Thread(target=draw, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    released = []
    try:
        for _ in range(20):
            released += answer_of_child(lambda: [mechanism(X) for _ in range(3)])
            released.append(mechanism(X))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert len(released) == 80
    everything = released + drawn
    assert len(set(released)) >= 79
    assert len(set(everything)) > 0.97 * len(everything)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="not a free-threaded Python")
def test_kernels_leave_the_gil_off():
    assert not sys._is_gil_enabled()
