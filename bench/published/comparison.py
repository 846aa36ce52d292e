"""Cases: releases of dpfast and of published algorithms from the same records, and the ratios of their errors."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bench.peers.comparison import quotient, ratio

LIMIT = 1.05
HEADINGS = ["released", "records", "n", "guarantee", "published", "its error", "dpfast", "error ratio"]


@dataclass(frozen=True)
class Published:
    """An algorithm, as a function of a generator and of the records; `why` explains where dpfast has more error."""

    name: str
    release: Callable
    why: str = ""


@dataclass(frozen=True)
class Case:
    """A row for each algorithm.

    `draw` makes a tuple of arrays from a generator, `ours` releases from them, and ``error(release, *arrays)`` measures
    a release. With `root` the errors are squares, of which the page has the roots of the means.
    """

    name: str
    records: str
    n: int
    guarantee: str
    draw: Callable
    ours: Callable
    error: Callable
    algorithms: tuple[Published, ...]
    root: bool = False
    datasets: int = 60
    rounds: int = 30


@dataclass(frozen=True)
class Row:
    """The errors of one algorithm and of dpfast, their ratio and its standard error."""

    case: Case
    algorithm: Published
    theirs: float
    ours: float
    ratio: float
    error: float

    @property
    def lost(self):
        return self.ratio > LIMIT

    @property
    def reason(self):
        """Why dpfast has more error; empty if nobody knows."""
        chance = f"within two standard errors of {LIMIT}." if self.ratio <= LIMIT + 2 * self.error else ""
        return self.algorithm.why or chance

    def cells(self, digits):
        case, found = self.case, quotient(self.ratio, self.error)
        marked = f"**{found}**" if self.lost else found
        sizes = digits(self.theirs), digits(self.ours)
        return [case.name, case.records, f"{case.n:,}", case.guarantee, self.algorithm.name, *sizes, marked]


def rows(case: Case, seed: int, *, seconds: float, quick: bool) -> Iterator[Row]:
    """Compare the algorithms of a case with dpfast on the same data sets; each takes at most some seconds."""
    generator = np.random.default_rng([seed, case.n, len(case.name), len(case.records)])
    datasets = [case.draw(generator) for _ in range(3 if quick else case.datasets)]
    limits = (2, 0.2) if quick else (case.rounds, seconds)
    ours = _errors(case, lambda *arrays: case.ours(*arrays), datasets, *limits)
    for algorithm in case.algorithms:
        release = algorithm.release
        theirs = _errors(case, lambda *arrays, release=release: release(generator, *arrays), datasets, *limits)
        relative, error = ratio(ours, theirs)
        sizes = float(theirs.mean()), float(ours.mean())
        if case.root:
            sizes = math.sqrt(sizes[0]), math.sqrt(sizes[1])
            relative, error = math.sqrt(relative), error / (2 * math.sqrt(relative))
        yield Row(case, algorithm, *sizes, relative, error)


def _errors(case, release, datasets, rounds, seconds):
    """Errors of shape (data sets, releases): as many releases of each data set as time allows, at least one."""
    found, start = [], time.perf_counter()
    while not found or (len(found) < rounds and time.perf_counter() - start < seconds):
        found.append([case.error(release(*arrays), *arrays) for arrays in datasets])
    return np.array(found).T
