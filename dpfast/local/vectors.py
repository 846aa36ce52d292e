"""What the randomisers of vectors share: constants, checks of shapes, blocks of people, errors."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks, _containers
from dpfast._threads import each
from dpfast.local.randomizer import Aggregate, BlockRandomizer
from dpfast.random import RandomSource, bit_generator, streams

# People are randomised in blocks of about so many coordinates, each block with its own stream.
_COORDINATES = 2**18
_LEAST_PEOPLE = 256  # that are summed together, or the sums would take as much memory as the reports


class VectorRandomizer(BlockRandomizer):
    """A randomiser of vectors of d numbers, whose reports are rows."""

    d: int
    radius: float

    # What a subclass says

    @property
    @abstractmethod
    def row(self) -> tuple[tuple[int, ...], type]:
        """Shape and type of one report."""

    @abstractmethod
    def fill(self, source: BitGenerator, x: NDArray[np.float64], out: NDArray[Any]) -> None:
        """Write the reports of the rows of x to `out`; `randomize` charges a ledger before it calls this."""

    @abstractmethod
    def decode_into(self, reports: NDArray[Any], out: NDArray[np.float64]) -> None:
        """The vectors of valid, contiguous reports."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """What a sum of reports is multiplied by."""

    @property
    @abstractmethod
    def second_moment(self) -> float:
        """E|Z|^2 of a decoded report, which is the same for all records."""

    # What follows

    def randomize(self, x: ArrayLike, *, rng: RandomSource = None, workers: int = 1) -> NDArray[Any]:
        threads = _checks.threads(workers)
        bit_generator(rng)
        rows, one = self._records(x)
        shape, kind = self.row
        out = np.empty((rows.shape[0], *shape), kind)
        step = max(1, _COORDINATES // self.d)
        starts = range(0, rows.shape[0], step)
        sources = streams(rng, len(starts))

        def fill(block: int) -> None:
            people = slice(starts[block], starts[block] + step)
            self.fill(sources[block], _as_doubles(rows[people]), out[people])

        each(fill, range(len(starts)), threads)
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
        threads = _checks.threads(workers)
        rows, _ = self.checked_reports(reports)
        # not of `threads`: sums of doubles depend on the parts
        return self._aggregate(rows, max(_LEAST_PEOPLE, self._together), threads)

    @property
    def _together(self) -> int:
        """How many reports are summed at once."""
        return _COORDINATES // self.d

    def estimate(self, reports: NDArray[Any] | Aggregate) -> NDArray[np.float64]:
        """Unbiased estimate of the mean of the records, a vector of d numbers.

        Reports that are refused are left out; ``aggregate(reports).refused`` is their number.

        Raises
        ------
        ValueError
            No reports, or all refused, or an aggregate of another randomiser.
        """
        total = reports if isinstance(reports, Aggregate) else self.aggregate(reports)
        if total.sums.shape != (self.d,):
            raise ValueError(f"the aggregate must have {self.d} sums, not shape {total.sums.shape}")
        if total.n < 1:
            raise ValueError("there are no reports to estimate a mean from (their number is public)")
        return np.asarray(total.sums * (self.unit / total.n), dtype=np.float64)

    def variance(self, x: ArrayLike | None = None) -> Any:
        """Total variance of a decoded report, the sum over all coordinates; by default of the worst record, 0.

        Parameters
        ----------
        x : array_like of shape (d,) or (n, d), optional
            Taken as it is meant: clamped or projected, without NaN.

        Returns
        -------
        float, or ndarray of shape (n,)
            The second moment, the same for all records, less ``|x|^2``.
        """
        if x is None:
            return self.second_moment
        rows, one = self._records(x)
        values = self.second_moment - np.square(self._meant(_as_doubles(rows))).sum(axis=1)
        return float(values[0]) if one else values

    @property
    def worst_variance(self) -> float:
        return self.second_moment / self.d

    @abstractmethod
    def _meant(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The records that the rows of x mean."""

    def _records(self, x: ArrayLike) -> tuple[NDArray[Any], bool]:
        array = _containers.numbers("x", x, dimensions=2)
        if array.ndim not in (1, 2) or array.shape[-1] != self.d:
            raise ValueError(f"x must be of shape ({self.d},) or (n, {self.d}), not {array.shape}")
        return array.reshape(-1, self.d), array.ndim == 1

    def checked_reports(self, reports: NDArray[Any]) -> tuple[NDArray[Any], bool]:
        """Many reports, without gaps, and whether they were one."""
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


def _as_doubles(rows: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):  # a signalling NaN
        return np.ascontiguousarray(rows, dtype=np.float64)
