"""Base class of the randomisers of one number: blocks, shapes, bytes and exact laws."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.core.types import Records
from dpfast.local.randomizer import Aggregate, BlockRandomizer
from dpfast.random import BLOCK, RandomSource, bit_generator, over_blocks, stream

# Reports are summed in blocks of this many bytes, which fit a second-level cache, but of at least this many reports.
_CACHE = 2**20
_LEAST_REPORTS = 992
_WIDE = {kind: np.dtype(wide) for kind, wide in zip("fiub", (np.float64, np.int64, np.uint64, np.uint64), strict=True)}


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """The exact law of the report of one record. PRIVATE: it depends on the record; for audits, tests and simulation.

    Outcome k is report k, as for `dpfast.audit.verify`.

    Parameters
    ----------
    reports : ndarray, shape (m, ...)
        Every possible report, each once.
    pmf : tuple of Fraction
        Its probability, at least 2**-1000.
    """

    reports: NDArray[Any]
    pmf: tuple[Fraction, ...]

    def outcomes(self) -> NDArray[np.int64]:
        """0..m - 1."""
        return np.arange(len(self.pmf))

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Log probability of outcomes k."""
        return np.asarray(self._logs[containers.integers("k", k)])

    def value(self, k: ArrayLike) -> NDArray[Any]:
        """Return the reports of outcomes k."""
        return np.asarray(self.reports[containers.integers("k", k)])

    @cached_property
    def _logs(self) -> NDArray[np.float64]:
        known: dict[int, float] = {}  # many reports share few probabilities, and logarithms are slow
        return np.array([known.get(id(p)) or known.setdefault(id(p), math.log(float(p))) for p in self.pmf])


class ReportsOfOneType(ABC):
    """Reports in arrays of one dtype, which are checked, and travel as bytes."""

    @property
    @abstractmethod
    def report(self) -> np.dtype[Any]:
        """The dtype of one report, including its shape if it has several numbers."""

    def to_bytes(self, reports: NDArray[Any]) -> bytes:
        """Return the reports as bytes, one after the other, each number little-endian; `report` defines the numbers."""
        rows = self._rows(reports)
        return rows.astype(rows.dtype.newbyteorder("<"), copy=False).tobytes()

    def from_bytes(self, data: bytes) -> NDArray[Any]:
        """Return the one-dimensional array of reports that `to_bytes` wrote.

        Raises
        ------
        ValueError
            If the number of bytes does not fit.
        """
        kind = self.report
        if len(data) % kind.itemsize:
            raise ValueError(f"data must have {kind.itemsize} bytes for each report, not {len(data)} in all")
        numbers = np.frombuffer(data, kind.base.newbyteorder("<")).astype(kind.base)
        return numbers.reshape((-1, *kind.shape))

    def _rows(self, reports: NDArray[Any]) -> NDArray[Any]:
        """Return the reports as a contiguous one-dimensional array, after checking shape and dtype."""
        kind = self.report
        if not isinstance(reports, (np.ndarray, np.generic)) or reports.dtype != kind.base:
            raise TypeError(f"reports must be an array of {kind.base}, as randomize returns it")
        if reports.shape[max(0, reports.ndim - len(kind.shape)) :] != kind.shape or reports.ndim > 1 + len(kind.shape):
            raise ValueError(f"reports must be of shape (n,{','.join(map(str, kind.shape))}), not {reports.shape}")
        return np.ascontiguousarray(reports).reshape((-1, *kind.shape))


class ScalarRandomizer(ReportsOfOneType, BlockRandomizer):
    """Base class of randomisers of one number or category; if reports are packed, they have one axis more than x."""

    @abstractmethod
    def fill(self, source: BitGenerator, x: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the reports of the one-dimensional x to `out`, which holds zeros."""

    @abstractmethod
    def _values(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        """Decode a one-dimensional array of valid reports."""

    def randomize(self, x: Records, *, rng: RandomSource = None, workers: int = 1) -> NDArray[Any]:
        threads = checks.threads(workers)
        bit_generator(rng)  # reject invalid arguments before reading the data
        one = not hasattr(x, "__len__")  # a scalar of Python or NumPy; None is a missing record
        values = containers.cell(x) if one else containers.numbers("x", x, dimensions=1)
        if values.ndim > 1:
            raise ValueError(f"x must be one record or a one-dimensional array, not of shape {values.shape}")
        report, flat = self.report, values.reshape(-1)
        out = np.zeros(flat.size, report)
        if 0 < flat.size <= BLOCK:
            self.fill(stream(rng), flat, out)
        else:
            parts = lambda source, block: self.fill(source, flat[block], out[block])  # noqa: E731
            over_blocks(parts, rng, flat.size, BLOCK, threads)
        return out.reshape((() if one else values.shape) + report.shape)

    def aggregate(self, reports: NDArray[Any], *, workers: int = 1) -> Aggregate:
        threads = checks.threads(workers)
        rows = self._rows(reports)
        return self._aggregate(rows, min(BLOCK, max(_LEAST_REPORTS, _CACHE // self.report.itemsize)), threads)

    def decode(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        values = self._decoded(self._rows(reports), self._values)
        lead = reports.shape[: reports.ndim - len(self.report.shape)]
        return values.reshape((*lead, *values.shape[1:]))

    def _aggregated(self, reports: NDArray[Any] | Aggregate, size: int) -> Aggregate:
        """Return the given aggregate, or that of the given reports, checked for at least one report and `size` sums."""
        total = self.own(reports) if isinstance(reports, Aggregate) else self.aggregate(reports)
        if total.sums.shape != (size,) or total.sums.dtype != np.int64:
            raise ValueError(f"the aggregate must hold {size} counts, not {total.sums.size}")
        if total.n < 1:
            raise ValueError("an estimate needs at least one report that is not refused")
        return total


def symbols(count: int) -> np.dtype[Any]:
    """Return the smallest unsigned dtype for 0..count - 1."""
    return np.min_scalar_type(count - 1)


def widened(x: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers as an aligned array of doubles or of 64-bit integers, which kernels read."""
    wide = _WIDE[x.dtype.kind]
    if x.dtype == wide and x.flags.aligned:
        return x
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return x.astype(wide)


def unpadded(rows: NDArray[np.uint64], bits: int) -> NDArray[np.bool_]:
    """Mask of the rows of packed bits that are 0 beyond the first `bits`."""
    return np.asarray(rows[:, -1] <= np.uint64(2 ** ((bits - 1) % 64 + 1) - 1))


def record(x: ArrayLike) -> NDArray[Any]:
    """One record as an array of length 1, for laws."""
    values = containers.numbers("x", [x] if not hasattr(x, "__len__") else x)
    if values.size != 1:
        raise ValueError(f"x must be one record, not {values.size} records")
    return values.reshape(1)
