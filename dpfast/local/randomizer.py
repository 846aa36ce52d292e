"""What every local randomiser can do, and promises."""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from dpfast import _checks
from dpfast._threads import each
from dpfast.privacy import Privacy, PrivacyProfile
from dpfast.random import RandomSource
from dpfast.spending import Carrier, hook

_MAGIC = b"dpf2"


@dataclass(frozen=True, eq=False)
class Aggregate:
    """What a server keeps of any number of reports: how many there were, and their sums.

    Parameters
    ----------
    n : int
        Reports counted.
    sums : ndarray
        Counts (int64) or sums, one for each category or coordinate; their meaning is the randomiser's.
    refused : int
        Reports left out, in neither `n` nor `sums`: those that the randomiser never sends, whatever the record.
    """

    n: int
    sums: NDArray[Any]
    refused: int = 0

    def __add__(self, other: Self) -> Aggregate:
        """The aggregate of both sets of reports."""
        if self.sums.shape != other.sums.shape or self.sums.dtype != other.sums.dtype:
            raise ValueError("these aggregates are of different randomisers")
        return Aggregate(self.n + other.n, self.sums + other.sums, self.refused + other.refused)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Aggregate)
            and (self.n, self.refused) == (other.n, other.refused)
            and np.array_equal(self.sums, other.sums)
        )

    __hash__ = None  # type: ignore[assignment]

    def to_bytes(self) -> bytes:
        """The aggregate as bytes, little-endian.

        "dpf2", "i" or "f", three zeros, `n`, `refused` and the number of sums (u64), the sums (i64 or f64).
        """
        kind = b"i" if self.sums.dtype.kind == "i" else b"f"
        numbers = self.sums.astype("<i8" if kind == b"i" else "<f8", copy=False)
        return _MAGIC + kind + bytes(3) + struct.pack("<QQQ", self.n, self.refused, numbers.size) + numbers.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Aggregate:
        """The aggregate that `to_bytes` wrote.

        Raises
        ------
        ValueError
            Other bytes.
        """
        kind = data[4:5]
        if data[:4] != _MAGIC or kind not in (b"i", b"f") or len(data) < 32:
            raise ValueError("data are not the bytes of an aggregate")
        n, refused, size = struct.unpack("<QQQ", data[8:32])
        if len(data) != 32 + 8 * size:
            raise ValueError(f"data must have {32 + 8 * size} bytes for {size} sums, not {len(data)}")
        sums = np.frombuffer(data, "<i8" if kind == b"i" else "<f8", offset=32)
        return cls(n, sums.astype(np.int64 if kind == b"i" else np.float64), refused)


class LocalMechanism(Carrier):
    """What randomises the records of people one by one: a frozen dataclass with a public `epsilon`, without data."""

    epsilon: float

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        hook(cls)  # reports are charged to an active ledger, of neighbors="local"

    @property
    def privacy(self) -> Privacy:
        """The guarantee for one report, under any change of its record; neighbors "local"."""
        return Privacy(self.epsilon, neighbors="local")

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """The same, as a `dpfast.Ledger` composes it."""
        return PrivacyProfile(self.privacy)


class Randomizer(LocalMechanism, ABC):
    """A local randomiser: what one person sends instead of a value; public parameters, no data and no state.

    Subclasses are frozen dataclasses: picklable, hashable, equal when their parameters are. Client and server build the
    same one. Reports are independent, one for each record of x; whatever a record holds (NaN, infinities, values out of
    range), a report has the same shape and type.

    A server does not trust what it is sent. A report that the randomiser never sends, whatever the record, is refused:
    left out of `aggregate` and `estimate` and counted in `Aggregate.refused`, NaN in `decode`. So each person moves an
    estimate by no more than an honest one could. Refusing is a public rule about public reports and costs no privacy;
    it neither raises nor warns, or one person could stop the survey. An array of another shape or dtype than those of
    reports is an error.
    """

    @abstractmethod
    def randomize(self, x: ArrayLike, *, rng: RandomSource = None, workers: int = 1) -> NDArray[Any]:
        """The reports of many people, or of one (one dimension less).

        Parameters
        ----------
        x : array_like
            Private data, one record for each person along the first axis; never modified.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the run reproducible, hence not private. Default: the secure generator.
        workers : int
            Threads, -1 for one per core; reports do not depend on it.
        """

    @abstractmethod
    def decode(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        """For each report an unbiased estimate of its record; NaN for a report that is refused."""

    @abstractmethod
    def aggregate(self, reports: NDArray[Any], *, workers: int = 1) -> Aggregate:
        """The sums of the reports; sums of aggregates are aggregates of all the reports.

        Raises
        ------
        TypeError, ValueError
            An array of another dtype or shape than `randomize` returns.
        """

    @abstractmethod
    def estimate(self, reports: NDArray[Any] | Aggregate) -> Any:
        """Unbiased estimate of the mean of the records, or of the frequencies of the categories.

        Reports that are refused are left out; ``aggregate(reports).refused`` is their number.
        """

    @abstractmethod
    def variance(self, x: ArrayLike | None = None) -> Any:
        """Variance of a decoded report at the record x; by default of the worst record."""

    def error(self, n: SupportsIndex, confidence: float = 0.95) -> float:
        """Half the width of a confidence interval from n reports, for a frequency, mean or coordinate.

        Normal approximation with the variance of the worst record, from public numbers only: with about this
        probability the estimate, or that of one given category or coordinate, is no further from the mean of the n
        records.

        Parameters
        ----------
        n : int
            Reports, at least 1.
        confidence : float
            In (0, 1).
        """
        n = _checks.whole("n", n, least=1)
        tail = (1 - _checks.between("confidence", confidence, 0, 1)) / 2
        return float(-ndtri(tail) * math.sqrt(self.worst_variance / n))

    @property
    def worst_variance(self) -> float:
        """The variance of a decoded number, at the worst record."""
        return float(self.variance())

    @abstractmethod
    def to_bytes(self, reports: NDArray[Any]) -> bytes:
        """The reports as bytes, in the layout that the class documents."""

    @abstractmethod
    def from_bytes(self, data: bytes) -> NDArray[Any]:
        """The reports that `to_bytes` wrote; ValueError for bytes of another length."""


class BlockRandomizer(Randomizer):
    """A randomiser whose reports are rows of an array, checked and summed a block at a time."""

    @abstractmethod
    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Which rows, of the right shape and dtype, are reports."""

    @abstractmethod
    def sums(self, reports: NDArray[Any]) -> NDArray[Any]:
        """The sums of valid reports."""

    def _counted(self, rows: NDArray[Any]) -> tuple[int, NDArray[Any]]:
        """How many rows of a block are reports, and the sums of those."""
        valid = self.valid(rows)
        reports = rows if valid.all() else rows[valid]
        return len(reports), self.sums(reports)

    def _aggregate(self, rows: NDArray[Any], step: int, threads: int) -> Aggregate:
        """The aggregate of rows, `step` of them at a time."""
        starts = range(0, max(1, len(rows)), step)
        parts = each(lambda start: self._counted(rows[start : start + step]), starts, threads)
        (n, sums), *others = parts
        for more, added in others:
            n, sums = n + more, sums + added
        return Aggregate(n, sums, len(rows) - n)

    def _decoded(
        self, rows: NDArray[Any], decode: Callable[[NDArray[Any]], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """What `decode` makes of rows, NaN where they are no reports."""
        valid = self.valid(rows)
        if valid.all():
            return decode(rows)
        values = decode(rows[valid])
        out = np.full((len(rows), *values.shape[1:]), np.nan)
        out[valid] = values
        return out
