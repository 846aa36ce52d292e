"""Releases of many mechanisms, threads that share a mechanism and a generator, and forks while threads draw."""

import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator

import dpfast as dpf
from assurance.endurance.check import Check, Violation, ended, forked, killed
from dpfast.random import SecureBitGenerator, secure_generator
from tests.central import plain, shaped
from tests.kinds import kind_of
from tests.releases import GRID, LOCAL, MECHANISMS, NOISE, RELEASES, X
from tests.threads import in_threads

COLUMNS = np.stack([np.linspace(-1, 1, 100)] * 4, axis=1)


def fingerprint(release: Any) -> bytes:
    """The bytes of a release, equal for equal releases."""
    return repr(type(release)).encode() + np.asarray(plain(release)).tobytes()


def _kinds(releases: Any) -> str:
    """The types of one or several releases."""
    return repr([kind_of(release) for release in (releases if isinstance(releases, list) else [releases])])


def _records(randomizer: Any) -> np.ndarray:
    if isinstance(randomizer, dpf.local.Hypercube):
        return np.sign(COLUMNS + 0.01)
    if isinstance(randomizer, dpf.local.L2Ball):
        return COLUMNS[:, :3] / 2
    levels = {dpf.local.Binary: 2, dpf.local.Categorical: 4}.get(type(randomizer))
    return X if levels is None else np.arange(100) % levels


class Releases(Check):
    """Every public function, mechanism and randomizer: the same bits for the same seed, the same type in every round.

    Functions without a parameter for the generator, and noise, give the same type of outcome.
    """

    faults = ("another generator in the second round",)
    most = 40  # releases in a step

    def __init__(self, folder: Path, seed: int = 0, fault: str | None = None) -> None:
        super().__init__(folder, seed, fault)
        self._seeded: list[Callable[[int], Any]] = [
            *(lambda seed, m=m: m(shaped(m, X), rng=PCG64(seed)) for m in MECHANISMS),
            *(lambda seed, r=r: r.randomize(_records(r), rng=PCG64(seed)) for r in LOCAL),
        ]
        self._jobs: list[tuple[Callable[[int], Any], bool]] = [
            *((job, True) for job in self._seeded),
            *((lambda seed, job=job: job(), False) for job in (*RELEASES.values(), *NOISE)),
        ]
        self._first: list[Any] = [None] * len(self._jobs)
        self._at = 0

    def step(self) -> None:
        for _ in range(self.most):
            self._one(self._at)
            self._at = (self._at + 1) % len(self._jobs)

    def _one(self, i: int) -> None:
        job, seeded = self._jobs[i]
        later = self._first[i] is not None
        seed = i + 1 if later and self.fault else i
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpf.PrivacyWarning)
            warnings.simplefilter("ignore", dpf.UtilityWarning)
            release = job(seed)
        self.counts["releases"] += 1
        seen = fingerprint(release) if seeded else _kinds(release)
        if later:
            self.require(seen == self._first[i], f"release {i} is not that of the first round")
        self._first[i] = seen


MEDIAN = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100), epsilon=0.25)
SHARED = [
    MEDIAN,
    dpf.InverseSensitivity(dpf.statistics.TrimmedMean(0.1), grid=dpf.Grid(0, 100), epsilon=0.25),
    dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 100), epsilon=0.25),
    dpf.SmoothSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=0.25, delta=1e-6),
    dpf.MEstimator(dpf.psi.Huber(5.0), grid=dpf.Grid(0, 100), epsilon=0.25),
    dpf.NestedBoxes(dpf.statistics.Median(), grid=GRID, epsilon=0.25),
]


class Threads(Check):
    """Threads that share a mechanism and a generator make the releases of one thread, in some order."""

    faults = ("a generator with the same state in each thread",)
    threads, calls = 6, 12

    def step(self) -> None:
        mechanism, seed = self.random.choice(SHARED), self.random.getrandbits(32)
        x, shared = shaped(mechanism, X), Generator(PCG64(seed))

        def work(i: int) -> list[bytes]:
            rng = Generator(PCG64(seed)) if self.fault else shared
            return [fingerprint(mechanism(x, rng=rng)) for _ in range(self.calls)]

        parts = in_threads(work, self.threads)
        alone = Generator(PCG64(seed))
        expected = [fingerprint(mechanism(x, rng=alone)) for _ in range(self.threads * self.calls)]
        self.counts["releases"] += 2 * len(expected)
        self.counts["threads"] += self.threads
        same = sorted(release for part in parts for release in part) == sorted(expected)
        self.require(same, f"threads make other releases than one thread: {mechanism!r}")


class Forks(Check):
    """Children forked while threads draw: no word is drawn twice, in the parent or in a child, and no child hangs."""

    faults = ("children that inherit the state of the generator",)
    children, threads, words = 3, 2, 64

    def step(self) -> None:
        inherited = PCG64(self.random.getrandbits(32))

        def draw() -> bytes:
            source = inherited if self.fault else secure_generator().bit_generator
            return source.random_raw(self.words).astype("<u8").tobytes()

        stop, drawn = threading.Event(), [draw()]

        def keep_drawing() -> None:
            source = SecureBitGenerator() if self.fault else secure_generator().bit_generator
            while not stop.is_set():
                drawn.append(source.random_raw(self.words).astype("<u8").tobytes())
                MEDIAN(X)
                stop.wait(0.001)

        threads = [threading.Thread(target=keep_drawing) for _ in range(self.threads)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(self.children):
                drawn.append(self._of_child(draw))
                drawn.append(draw())
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        words = np.frombuffer(b"".join(drawn), "<u8")
        self.counts["words"] += words.size
        self.counts["children"] += self.children
        self.require(np.unique(words).size == words.size, "a word was drawn twice after a fork")

    def _of_child(self, draw: Callable[[], bytes]) -> bytes:
        """The words that a child draws, which also makes a release."""
        reader, writer = os.pipe()

        def child() -> None:
            os.write(writer, draw())
            MEDIAN(X)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork in a process with threads
            number = forked(child)
        os.close(writer)
        try:
            status = ended(number)
            if status is None:
                killed(number)
                raise Violation("a child forked while threads draw did not end")
            self.require(status == 0, f"a child forked while threads draw ended with status {status}")
            return os.read(reader, 8 * self.words)
        finally:
            os.close(reader)
