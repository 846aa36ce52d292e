"""Calls of the cases for columns, types and values of epsilon, and what became of them."""

import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import PCG64

import dpfast as dpf
from bench.columns.cases import CASES, Case
from bench.columns.tables import Column, columns

EPSILONS = (0.1, 0.5, 1.0, 4.0)
BINS = (10.0, 25.0, 50.0, 100.0)  # of n epsilon min(q, 1 - q), as of the chance that a quantile is absurd
GRID_STEP = 2.0**-23  # relative, of `dpf.FloatGrid`
REFUSED, WARNED, FINE, ABSURD, BROKEN = "refused", "warned", "fine", "absurd", "broken"


@dataclass(frozen=True)
class Call:
    """One call, whose random numbers depend on nothing but its name."""

    case: Case
    column: Column
    dtype: str
    epsilon: float

    def __str__(self):
        return f"{self.case.name} of {self.column} as {self.dtype}, n = {self.column.n}, epsilon = {self.epsilon:g}"

    @property
    def information(self):
        """n epsilon min(q, 1 - q), n of the smallest group."""
        n = self.column.fewest if self.case.grouped else self.column.n
        return n * self.epsilon * self.case.level

    def run(self):
        """The outcome, or None if the case does not fit the column."""
        rng = PCG64(zlib.crc32(str(self).encode()))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                release = self.case.run(self.column, self.column.records[self.dtype], self.epsilon, rng)
            except ValueError as error:
                return Outcome(self, REFUSED, said=str(error))
            except Exception as error:  # a call must not end otherwise
                return Outcome(self, BROKEN, said=repr(error))
        if release is None:
            return None
        texts = [str(word.message) for word in said if issubclass(word.category, dpf.UtilityWarning)]
        absurd, ranks = release.absurd, None
        if self.case.quantile is not None:
            ranks = self._rank_error(float(release.values)) * self.epsilon
        if texts:
            return Outcome(self, WARNED, absurd, ranks, texts[0], release)
        return Outcome(self, ABSURD if absurd else FINE, absurd, ranks, "", release)

    def _rank_error(self, value):
        """The number of records between the value and the quantile; a record rounded to the grid is itself."""
        rank, rounding = self.case.quantile * self.column.n, abs(value) * GRID_STEP
        below = np.searchsorted(self.column.ordered, value - rounding, "left")
        most = np.searchsorted(self.column.ordered, value + rounding, "right")
        return max(below - rank, rank - most, 0.0)


@dataclass(frozen=True)
class Outcome:
    """What a call did; `kind` is "absurd" only if no word came before it. ranks: the rank error times epsilon."""

    call: Call
    kind: str
    absurd: bool = False
    ranks: float | None = None
    said: str = ""
    release: object = None

    def __str__(self):
        released = "" if self.release is None else f": released {np.ravel(self.release.values)[:4]}"
        return f"{self.kind}: {self.call}{released} {self.said}".rstrip()


def calls(most=None, only=None) -> Iterator[Call]:
    """All calls, or of each case `most`, spread evenly over tables, types and epsilon; the same in every run.

    only: names of cases.
    """
    every = [(column, dtype, epsilon) for column in columns() for dtype in column.records for epsilon in EPSILONS]
    order = np.random.default_rng(1).permutation(len(every))
    for place, case in enumerate(CASES.values()):
        start = 0 if most is None else place * most
        for k in order[(start + np.arange(most or order.size)) % order.size]:
            if only is None or case.name in only:
                yield Call(case, *every[k])


def bin_of(information):
    """The number of the bin of n epsilon min(q, 1 - q)."""
    return int(np.searchsorted(BINS, information, side="right"))
