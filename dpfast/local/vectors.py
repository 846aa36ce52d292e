"""Base class of the randomisers of vectors: constants, checks of shapes, blocks of people, errors."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.core.types import Records
from dpfast.local.randomizer import Aggregate, BlockRandomizer
from dpfast.random import RandomSource, bit_generator, over_blocks, stream

# People are randomised in blocks of about this many coordinates, each block with its own stream.
_COORDINATES = 2**18
_LEAST_PEOPLE = 256  # per sum, or the sums would take as much memory as the reports


class VectorRandomizer(BlockRandomizer):
    """Base class of randomisers of vectors of d numbers; each report is a row."""

    d: int
    radius: float

    # Subclasses provide these

    @property
    @abstractmethod
    def row(self) -> tuple[tuple[int, ...], type]:
        """Shape and dtype of one report."""

    @abstractmethod
    def fill(self, source: BitGenerator, x: NDArray[np.float64], out: NDArray[Any]) -> None:
        """Write the reports of the rows of x to `out`; `randomize` charges a ledger before it calls this."""

    @abstractmethod
    def decode_into(self, reports: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Write the decoded vectors of valid, contiguous reports to `out`."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """The factor that converts a sum of reports to data units."""

    @property
    @abstractmethod
    def second_moment(self) -> float:
        """E|Z|^2 of a decoded report; the same for all records."""

    # Derived from these

    def randomize(self, x: Records, *, rng: RandomSource = None, workers: int = 1) -> NDArray[Any]:
        threads = checks.threads(workers)
        bit_generator(rng)
        rows, one = self._records(x)
        shape, kind = self.row
        n, step = rows.shape[0], max(1, _COORDINATES // self.d)
        out = np.empty((n, *shape), kind)
        if 0 < n <= step:
            self.fill(stream(rng), containers.doubles(rows), out)
            return out[0] if one else out

        def fill(source: BitGenerator, people: slice) -> None:
            self.fill(source, containers.doubles(rows[people]), out[people])

        over_blocks(fill, rng, n, step, threads)
        return out[0] if one else out

    def decode(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        def vectors(valid: NDArray[Any]) -> NDArray[np.float64]:
            out = np.empty((len(valid), self.d))
            self.decode_into(valid, out)
            return out

        rows, one = self.checked_reports(reports)
        out = self._decoded(rows, vectors)
        return out[0] if one else out

    def aggregate(self, reports: NDArray[Any], *, workers: int = 1) -> Aggregate:
        threads = checks.threads(workers)
        rows, _ = self.checked_reports(reports)
        # independent of `threads`: sums of doubles depend on the partition
        return self._aggregate(rows, max(_LEAST_PEOPLE, self._together), threads)

    @property
    def _together(self) -> int:
        """Number of reports that are summed at once."""
        return _COORDINATES // self.d

    def estimate(self, reports: NDArray[Any] | Aggregate) -> NDArray[np.float64]:
        """Unbiased estimate of the mean of the records, a vector of d numbers.

        Refused reports are left out; ``aggregate(reports).refused`` is their number.

        Raises
        ------
        ValueError
            If there are no reports, or all are refused, or the aggregate is of another randomiser.
        """
        total = self.own(reports) if isinstance(reports, Aggregate) else self.aggregate(reports)
        if total.sums.shape != (self.d,):
            raise ValueError(f"the aggregate must have {self.d} sums, not sums of shape {total.sums.shape}")
        if total.n < 1:
            raise ValueError("an estimate needs at least one report that is not refused")
        return np.asarray(total.sums * (self.unit / total.n), dtype=np.float64)

    def variance(self, x: ArrayLike | None = None) -> Any:
        """Total variance of a decoded report, summed over coordinates; by default for the worst record, 0.

        Parameters
        ----------
        x : array_like of shape (d,) or (n, d), optional
            Records; clamped or projected, and NaN replaced.

        Returns
        -------
        float, or ndarray of shape (n,)
            The second moment, which is the same for all records, minus ``|x|^2``.
        """
        if x is None:
            return self.second_moment
        rows, one = self._records(x)
        with np.errstate(all="ignore"):  # tiny numbers are 0, whatever a caller raises for
            values = self.second_moment - np.square(self._meant(containers.doubles(rows))).sum(axis=1)
        return float(values[0]) if one else values

    @property
    def worst_variance(self) -> float:
        return self.second_moment / self.d

    @abstractmethod
    def _meant(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows of x after clamping or projection."""

    def _records(self, x: Records) -> tuple[NDArray[Any], bool]:
        array = containers.numbers("x", x, dimensions=2)
        if array.ndim not in (1, 2) or array.shape[-1] != self.d:
            raise ValueError(f"x must be of shape ({self.d},) or (n, {self.d}), not {array.shape}")
        return array.reshape(-1, self.d), array.ndim == 1

    def checked_reports(self, reports: NDArray[Any]) -> tuple[NDArray[Any], bool]:
        """Return the reports as a contiguous two-dimensional array, and whether a single report was given."""
        shape, kind = self.row
        array = np.asarray(reports)
        if array.dtype != np.dtype(kind):
            raise TypeError(f"reports must be of dtype {np.dtype(kind)}, not {array.dtype}")
        one = array.shape == shape
        if not one and (array.ndim != 1 + len(shape) or array.shape[1:] != shape):
            raise ValueError(f"reports must be of shape {shape} or (n, *{shape}), not {array.shape}")
        return np.ascontiguousarray(array).reshape(-1, *shape), one

    def to_bytes(self, reports: NDArray[Any]) -> bytes:
        rows, _ = self.checked_reports(reports)
        return rows.astype(rows.dtype.newbyteorder("<"), copy=False).tobytes()

    def from_bytes(self, data: bytes) -> NDArray[Any]:
        shape, kind = self.row
        size = np.dtype(kind).itemsize * math.prod(shape)
        if len(data) % size:
            raise ValueError(f"data must have a multiple of {size} bytes, not {len(data)}")
        little = np.dtype(kind).newbyteorder("<")
        return np.frombuffer(data, little).astype(kind).reshape(-1, *shape)
