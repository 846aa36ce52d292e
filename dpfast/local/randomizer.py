"""Base classes of the local randomisers, and the aggregate of their reports."""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, SupportsIndex

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels._threads import each
from dpfast.core import checks
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.spending import Carrier, hook
from dpfast.core.tabular import Declared
from dpfast.core.traps import Cautious
from dpfast.core.types import Records
from dpfast.random import RandomSource
from dpfast.streaming.wire import fingerprint

_MAGIC = b"dpf3"
_HEAD = 48  # bytes before the sums


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The number and the sums of a set of reports; all that a server needs to keep.

    Parameters
    ----------
    n : int
        Number of reports included.
    sums : ndarray
        Counts (int64) or sums, one for each category or coordinate; the randomiser defines them.
    refused : int
        Number of refused reports, included in neither `n` nor `sums`: the randomiser never sends them for any record.
    parameters : str, optional
        A digest of the class and the public parameters of the randomiser, in hexadecimal digits. Aggregates of other
        parameters do not add up, and other randomisers refuse to estimate from them. None for sums that were counted
        elsewhere: such aggregates only add to each other, and every randomiser whose sums have this shape takes them.

    Notes
    -----
    Two aggregates are equal if their numbers are; `parameters` are not compared. For categories, `sums` are computed
    from counters when they are first asked for; until then, aggregates are added by their counters, so that one of many
    parts costs no more than counting its reports.
    """

    n: int
    sums: NDArray[Any]
    refused: int = 0
    parameters: str | None = field(default=None, kw_only=True)

    def __add__(self, other: Self) -> Aggregate:
        """Return the aggregate of the union of both sets of reports; raises a ValueError for those of another
        randomiser.
        """
        if self.parameters != other.parameters:
            raise ValueError("the aggregates must be of the same randomiser, with the same public parameters")
        n, refused = self.n + other.n, self.refused + other.refused
        own, others = _counters(self), _counters(other)
        if own and others and own.rule is others.rule:
            wide = None if n < 2**32 else np.int64  # None: that of both
            return counted(n, np.add(own.counts, others.counts, dtype=wide), refused, own.rule, self.parameters)
        if self.sums.shape != other.sums.shape or self.sums.dtype != other.sums.dtype:
            raise ValueError("the aggregates must be of the same randomiser")
        return Aggregate(n, self.sums + other.sums, refused, parameters=self.parameters)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Aggregate)
            and (self.n, self.refused) == (other.n, other.refused)
            and np.array_equal(self.sums, other.sums)
        )

    __hash__ = None  # type: ignore[assignment]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return the sums of counters, computed when they are first asked for; the counters are then dropped."""
            counters = _counters(self)
            if name == "sums" and counters:
                self.__dict__.setdefault("sums", counters.rule.sums(counters.counts, self.n))
                self.__dict__.pop("_counters", None)
            if name == "sums" and name in self.__dict__:  # also those that another thread has computed meanwhile
                return self.__dict__["sums"]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "sums": self.sums}  # of a subclass, all fields
        state.pop("_counters", None)
        return state

    def to_bytes(self) -> bytes:
        """Return the aggregate as bytes, little-endian.

        Layout: "dpf3", "i" or "f", three zeros, `n`, `refused` and the number of sums (u64), the 16 bytes of
        `parameters` (zeros for None), the sums (i64 or f64).
        """
        kind = b"i" if self.sums.dtype.kind == "i" else b"f"
        numbers = self.sums.astype("<i8" if kind == b"i" else "<f8", copy=False)
        digest = bytes.fromhex(self.parameters) if self.parameters else bytes(16)
        sizes = struct.pack("<QQQ", self.n, self.refused, numbers.size)
        return _MAGIC + kind + bytes(3) + sizes + digest + numbers.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Aggregate:
        """Read an aggregate that `to_bytes` wrote.

        Raises
        ------
        ValueError
            If the bytes are not those of an aggregate.
        """
        kind = data[4:5]
        if data[:4] != _MAGIC or kind not in (b"i", b"f") or len(data) < _HEAD:
            raise ValueError("data are not the bytes of an aggregate")
        n, refused, size = struct.unpack("<QQQ", data[8:32])
        if len(data) != _HEAD + 8 * size:
            raise ValueError(f"data must have {_HEAD + 8 * size} bytes for {size} sums, not {len(data)}")
        sums = np.frombuffer(data, "<i8" if kind == b"i" else "<f8", offset=_HEAD)
        parameters = data[32:_HEAD].hex() if any(data[32:_HEAD]) else None
        return cls(n, sums.astype(np.int64 if kind == b"i" else np.float64), refused, parameters=parameters)


class CountRule(Protocol):
    """How sums follow from counters."""

    def sums(self, counts: NDArray[Any], n: int) -> NDArray[Any]:
        """Return the sums of n reports, which does not modify their counters."""
        ...


def counted(n: int, counts: NDArray[Any], refused: int, rule: CountRule, parameters: str | None = None) -> Aggregate:
    """Return the aggregate with ``rule.sums(counts, n)``.

    They are computed when they are first asked for, so that merged aggregates of one rule compute them once. `counts`
    are the aggregate's own from now on, and have room for n.
    """
    made = object.__new__(Aggregate)
    made.__dict__.update(n=n, refused=refused, parameters=parameters, _counters=_Counters(counts, rule))
    return made


class _Counters(NamedTuple):
    counts: NDArray[Any]
    rule: CountRule


def _counters(aggregate: Aggregate) -> _Counters | None:
    """Return the counters of an aggregate that has no sums yet."""
    found: _Counters | None = aggregate.__dict__.get("_counters")
    return found


@lru_cache(maxsize=1024)
def _digest(mechanism: LocalMechanism, part: int) -> str:
    return fingerprint((mechanism, part))


class LocalMechanism(Declared, Cautious, Carrier):
    """Base class for mechanisms that randomise each record on its own: a frozen dataclass with a public `epsilon`."""

    epsilon: float

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        hook(cls)  # reports are charged to the active ledger, if it has neighbors="local"

    @property
    def privacy(self) -> Privacy:
        """The guarantee for one report, under any change of its record; neighbors "local"."""
        return Privacy(self.epsilon, neighbors="local")

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """The guarantee in the form that a `dpfast.Ledger` composes."""
        return PrivacyProfile(self.privacy)

    @property
    def share(self) -> Fraction:
        """The share of all reports that support a given record; for `Shuffled`, public.

        If the reports that support a record have the same probability, at most e^epsilon times that of all others, this
        is their share, or an upper bound of it; also if the record is first rounded at random to one of which this is
        true. Else it is 1/2, which always is on the safe side.
        """
        return Fraction(1, 2)

    def digest(self, part: int = 0) -> str:
        """`Aggregate.parameters` of its reports, or of one part of them: a digest of class and public parameters."""
        return _digest(self, part)

    def own(self, aggregate: Aggregate, part: int = 0) -> Aggregate:
        """Return the aggregate, which must be of these public parameters.

        Raises
        ------
        ValueError
            If it is of another randomiser.
        """
        if aggregate.parameters not in (None, self.digest(part)):
            raise ValueError(f"the aggregate must be of this randomiser, {self!r}, not of another one")
        return aggregate


class Randomizer(LocalMechanism, ABC):
    """Base class of the local randomisers: public parameters, without data and without state.

    Subclasses are frozen dataclasses: picklable, hashable, and equal if their parameters are. Client and server build
    equal ones. Reports are independent, one for each record of x. Whatever a record holds (NaN, infinities, values out
    of range), a report has the same shape and type.

    A server does not trust the reports it receives. It refuses a report that the randomiser never sends for any record:
    such a report is left out of `aggregate` and `estimate`, counted in `Aggregate.refused`, and NaN in `decode`. So a
    dishonest person can move an estimate no further than an honest one. Refusing is a public rule about public reports
    and costs no privacy. It neither raises nor warns, because otherwise one person could stop the survey. An array
    whose shape or dtype is not that of reports is an error.
    """

    @abstractmethod
    def randomize(self, x: Records, *, rng: RandomSource = None, workers: int = 1) -> NDArray[Any]:
        """Return the reports of many people, or of one (with one dimension less).

        Parameters
        ----------
        x : array_like
            Private data, one record for each person along the first axis; never modified.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the run reproducible, hence not private. Default: the secure generator.
        workers : int
            Number of threads, -1 for one per core; reports do not depend on it.
        """

    @abstractmethod
    def decode(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        """Decode each report into an unbiased estimate of its record; NaN for a refused report."""

    @abstractmethod
    def aggregate(self, reports: NDArray[Any], *, workers: int = 1) -> Aggregate:
        """Sum the reports; adding aggregates gives the aggregate of all their reports.

        Raises
        ------
        TypeError, ValueError
            If the dtype or shape is not that of the arrays that `randomize` returns.
        """

    @abstractmethod
    def estimate(self, reports: NDArray[Any] | Aggregate) -> Any:
        """Unbiased estimate of the mean of the records, or of the frequencies of the categories.

        Refused reports are left out; ``aggregate(reports).refused`` is their number.
        """

    @abstractmethod
    def variance(self, x: ArrayLike | None = None) -> Any:
        """Variance of a decoded report for the record x; by default for the worst record."""

    def error(self, n: SupportsIndex, confidence: float = 0.95) -> float:
        """Half-width of a confidence interval from n reports, for a frequency, mean or coordinate.

        A normal approximation with the variance of the worst record, from public numbers only: with about this
        probability the estimate (for a vector, that of one given category or coordinate) is at most this far from the
        mean of the n records.

        Parameters
        ----------
        n : int
            Number of reports, at least 1.
        confidence : float
            In (0, 1).
        """
        n = checks.whole("n", n, least=1)
        tail = (1 - checks.between("confidence", confidence, 0, 1)) / 2
        return float(-scipy.special.ndtri(tail) * math.sqrt(self.worst_variance / n))

    @property
    def worst_variance(self) -> float:
        """The variance of a decoded number, for the worst record."""
        return float(self.variance())

    @abstractmethod
    def to_bytes(self, reports: NDArray[Any]) -> bytes:
        """Return the reports as bytes, in the layout that the class documents."""

    @abstractmethod
    def from_bytes(self, data: bytes) -> NDArray[Any]:
        """Return the reports that `to_bytes` wrote; raise ValueError if the number of bytes does not fit."""


class BlockRandomizer(Randomizer):
    """A randomiser whose reports are rows of an array, checked and summed block by block."""

    @abstractmethod
    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Mask of the rows that are reports; shape and dtype are already checked."""

    @abstractmethod
    def sums(self, reports: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of valid reports."""

    def _counted(self, rows: NDArray[Any]) -> tuple[int, NDArray[Any]]:
        """Return the number of valid reports among the rows of a block, and their sums."""
        valid = self.valid(rows)
        reports = rows if valid.all() else rows[valid]
        return len(reports), self.sums(reports)

    def _aggregate(self, rows: NDArray[Any], step: int, threads: int) -> Aggregate:
        """Return the aggregate of the rows, computed in blocks of `step`."""
        starts = range(0, max(1, len(rows)), step)
        parts = each(lambda start: self._counted(rows[start : start + step]), starts, threads)
        (n, sums), *others = parts
        for more, added in others:
            n, sums = n + more, sums + added
        return Aggregate(n, sums, len(rows) - n, parameters=self.digest())

    def _decoded(
        self, rows: NDArray[Any], decode: Callable[[NDArray[Any]], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return the decoded rows; NaN for rows that are not reports."""
        valid = self.valid(rows)
        if valid.all():
            return decode(rows)
        values = decode(rows[valid])
        out = np.full((len(rows), *values.shape[1:]), np.nan)
        out[valid] = values
        return out
