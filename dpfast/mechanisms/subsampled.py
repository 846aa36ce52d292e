"""A mechanism on a secret random sample of the records, whose guarantee is amplified."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks
from dpfast.core.grid import Points
from dpfast.core.privacy import Privacy
from dpfast.core.rounding import up
from dpfast.laws import Law
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.plan import Plan
from dpfast.random import RandomSource, bit_generator
from dpfast.streaming import Chunks, Counted, Labelled

_MOST_SAMPLES = 2**12  # in a law
_MOST_EXPONENT = 700.0


class OfSamples(Mechanism):
    """Base class of releases by another mechanism, for one replaced record, from a random sample of the records."""

    mechanism: Mechanism

    def __post_init__(self) -> None:
        mechanism = self.mechanism
        if not isinstance(mechanism, Mechanism) or not mechanism.reads_records:
            raise TypeError(f"mechanism must be a dpfast.Mechanism that reads records, not {mechanism!r}")
        stated = mechanism.privacy
        if stated.neighbors != "replace-one" or stated.records != 1:
            raise ValueError(f"mechanism must be for one record replaced, not {stated}")
        if stated.unit != "epsilon":
            raise ValueError(f"mechanism must state its guarantee in epsilon, not in {stated.unit}")
        if not mechanism.reads_all:
            raise ValueError(f"mechanism must read all records, because a sample shows their number: {mechanism!r}")
        object.__setattr__(self, "releases_numbers", mechanism.releases_numbers)

    @property
    def dimensions(self) -> int:
        return self.mechanism.dimensions

    @property
    def grids(self) -> tuple[Points, ...]:
        """The grids of the records, if there are any."""
        return self.mechanism.points

    @property
    def leaves_out(self) -> bool:
        return self.mechanism.leaves_out

    @property
    def parts(self) -> tuple[str, ...]:
        return self.mechanism.parts

    def values_of(self, x: Any) -> Any:
        return self.mechanism.values_of(x)

    def sampled(self, law: Law, shape: tuple[int, ...], source: np.random.BitGenerator) -> NDArray[Any]:
        return self.mechanism.sampled(law, shape, source)


@dataclass(frozen=True, repr=False)
class Subsampled(OfSamples):
    """Release by another mechanism from a uniform random sample of the records, without replacement.

    (epsilon', delta')-differentially private for one replaced record, the number of records is public. Nobody may learn
    which records are in the sample.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism for one replaced record, with a guarantee in epsilon and delta.
    share : float
        In (0, 1]: the sample of n records has floor(share n) of them, by the exact value of the share.

    Raises
    ------
    TypeError, ValueError
        From the constructor: an invalid parameter. From a call: fewer than 1 / share records.

    Notes
    -----
    Privacy: a replaced record is in the sample with probability m / n <= share, so that ``epsilon' = log(1 + share
    (e^epsilon - 1))`` and ``delta' = share delta``, both rounded up
    (https://dpfast.readthedocs.io/en/latest/proofs/subsampling.html). The sample is drawn by the generator of the
    release. For the same guarantee a release from all records is better for all statistics of the library: subsampling
    is for functions of the records that take too long for all of them.

    References
    ----------
    Balle, Barthe and Gaboardi 2018, "Privacy amplification by subsampling".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    >>> sampled = dpf.Subsampled(median, 0.1)
    >>> round(sampled.privacy.epsilon, 4)
    0.1586
    >>> 40 < sampled(np.arange(100_000) % 101) < 60
    True
    """

    counts_first: ClassVar[str] = "a sample is drawn by position, which requires the number of records: use Chunks"

    mechanism: Mechanism
    share: float

    def __post_init__(self) -> None:
        super().__post_init__()
        share = checks.rational_or_double("share", self.share)
        if not 0 < share <= 1:
            raise ValueError(f"share must be positive and at most 1, not {self.share!r}")
        object.__setattr__(self, "share", share)

    @cached_property
    def _amplified(self) -> Privacy:
        stated, share = self.mechanism.privacy, Fraction(self.share)
        return Privacy(_epsilon_up(up(Fraction(stated.epsilon)), share), min(up(share * Fraction(stated.delta)), 1.0))

    @property
    def privacy(self) -> Privacy:
        return self._amplified

    def __repr__(self) -> str:
        return f"<Subsampled, {float(self.share):.3g} of the records, for {self.mechanism!r}: {self.privacy}>"

    @property
    def ordered(self) -> bool:
        return self.mechanism.ordered

    def number_of(self, values: Any) -> int | None:
        return values.records() if isinstance(values, Chunks) else self.mechanism.number_of(values)

    @property
    def least_records(self) -> Any:
        """The least number of records for which there is a sample, and a release from it. Public."""
        least = getattr(self.mechanism, "least_records", 1)
        return least if callable(least) else math.ceil(max(least, 1) / Fraction(self.share))

    def size(self, n: SupportsIndex) -> int:
        """Return the number of records in a sample of n. Public."""
        size = math.floor(Fraction(self.share) * checks.records(checks.whole("n", n)))
        if not size:
            raise ValueError(f"share={self.share!r} of n={n} records is less than one: use a larger share")
        return size

    def error(self, n: SupportsIndex, *args: Any, **assumptions: Any) -> Any:
        """Return the error of the mechanism for a sample of n records, under its own assumptions. Public.

        Examples
        --------
        >>> import dpfast as dpf
        >>> mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 1), epsilon=1.0)
        >>> round(dpf.Subsampled(mean, 0.1).error(10_000), 4) == round(mean.error(1000), 4)
        True
        """
        return self.mechanism.error(self.size(n), *args, **assumptions)

    def _make_plan(self, n: int | None) -> Plan:
        return SamplePlan(self, n)

    def law_of(self, records: Any) -> MixedLaw:
        """Return the exact law, given the records: the mixture of those of all samples. PRIVATE."""
        n, mechanism = self.number_of(records), self.mechanism
        assert n is not None
        size = self.size(n)
        plan = mechanism.plan(size)

        def law(places: NDArray[np.int64]) -> Law:
            read, summary = plan.read(sample_of(mechanism, records, places))
            return read.law_of(summary)

        return MixedLaw(law, n, size)


def _epsilon_up(epsilon: float, share: Fraction) -> float:
    """Return log(1 + share (e^epsilon - 1)), rounded up, and at most epsilon.

    In doubles: expm1 and log1p are accurate to a few ulp, and do not enlarge relative errors.
    """
    if share == 1 or epsilon > _MOST_EXPONENT:
        return epsilon
    return min(epsilon, math.log1p(up(share) * math.expm1(epsilon)) * (1 + 2.0**-46))


class RecordsPlan(Plan):
    """The plan of a release whose summary is all records, because it draws some of them anew for each release."""

    def release(self, records: Any, source: np.random.BitGenerator, threads: int) -> Any:
        """Draw a release from the records."""
        raise NotImplementedError

    def draw_from(self, records: Any, source: np.random.BitGenerator) -> Any:
        return self.release(records, source, 1)

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> Any:
        plan, records = self.read(values, threads)
        assert isinstance(plan, RecordsPlan)
        return plan.release(records, source, threads)

    def draws(self, records: Any, shape: tuple[int, ...], source: np.random.BitGenerator) -> NDArray[Any]:
        made = [self.release(records, source, 1) for _ in range(math.prod(shape))]
        if self.mechanism.releases_numbers:
            return np.array(made).reshape(*shape, *np.shape(made[0]) if made else ())
        out = np.empty(len(made), object)
        out[:] = made
        return out.reshape(shape)


class SamplePlan(RecordsPlan):
    """A release from a sample of n records, drawn anew for each release."""

    mechanism: Subsampled

    def __init__(self, mechanism: Subsampled, n: int | None) -> None:
        super().__init__(mechanism, n)
        if n is not None:
            self.size = mechanism.size(n)
            self.traps = mechanism.mechanism.plan(self.size).traps

    def read(self, values: Any, threads: int = 1) -> tuple[Plan, Any]:
        mechanism = self.mechanism
        mechanism.check_missing()
        return (self if self.n is not None else mechanism.plan_for(values)), values

    def release(self, records: Any, source: np.random.BitGenerator, threads: int) -> Any:
        mechanism, n = self.mechanism.mechanism, self.n
        assert n is not None
        places = drawn_places(n, self.size, source)
        return mechanism.plan(self.size).draw(sample_of(mechanism, records, places), source, threads)


def drawn_places(n: int, size: int, source: np.random.BitGenerator) -> NDArray[np.int64]:
    """Draw a uniform subset of 0..n - 1, in ascending order, which is that of the records."""
    places: NDArray[np.int64] = np.random.Generator(source).choice(n, size, replace=False, shuffle=False)
    places.sort()
    return places


def sample_of(mechanism: Mechanism, records: Any, places: NDArray[np.int64]) -> Any:
    """Return the records at places in ascending order, for the plan of a mechanism. PRIVATE.

    Those of chunks are read once: what a mechanism makes of records may not be records that it reads again.
    """
    if not isinstance(records, Chunks):
        return _taken(records, places)
    pieces = list(_samples(mechanism, records, places))
    if all(isinstance(piece, Counted) for piece in pieces):
        return Chunks(pieces)
    repeated = [np.repeat(piece.values, piece.counts) if isinstance(piece, Counted) else piece for piece in pieces]
    return _joined([mechanism.values_of(x) if x is not piece else x for x, piece in zip(repeated, pieces, strict=True)])


def _taken(values: Any, places: NDArray[np.int64]) -> Any:
    return tuple(part[places] for part in values) if isinstance(values, tuple) else values[places]


def _joined(pieces: list[Any]) -> Any:
    """Return what a mechanism reads of all pieces together."""
    if isinstance(pieces[0], Labelled):
        return Labelled(*map(np.concatenate, zip(*((piece.rows, piece.labels) for piece in pieces), strict=True)))
    if isinstance(pieces[0], tuple):
        return tuple(map(np.concatenate, zip(*pieces, strict=True)))
    return np.concatenate(pieces)


def _samples(mechanism: Mechanism, records: Chunks, places: NDArray[np.int64]) -> Iterator[Any]:
    """Yield those of each chunk."""
    start = 0
    for piece in records:
        values = piece if isinstance(piece, Counted) else mechanism.values_of(piece)
        size = values.records() if isinstance(values, Counted) else mechanism.number_of(values)
        assert size is not None
        first, last = np.searchsorted(places, [start, start + size])
        own, start = places[first:last] - start, start + size
        if not isinstance(values, Counted):
            yield _taken(values, own)
            continue
        held = np.searchsorted(np.cumsum(values.counts), own, side="right")
        kinds, counts = np.unique(held, return_counts=True)
        yield Counted(values.values[kinds], counts)


class MixedLaw(Law):
    """The mixture of the laws of all samples, equally likely, which have the same outcomes. PRIVATE.

    Parameters
    ----------
    law : callable
        Returns the law of a sample, given its places.
    n, size : int
        The number of records, and that in a sample.
    """

    def __init__(self, law: Callable[[NDArray[np.int64]], Any], n: int, size: int) -> None:
        self._law, self.n, self.size = law, n, size

    @cached_property
    def laws(self) -> list[Any]:
        """Those of all samples, at most 2**12."""
        if math.comb(self.n, self.size) > _MOST_SAMPLES:
            raise ValueError("a law of more than 2**12 samples cannot be listed: use audit.distinguish")
        return [self._law(np.array(places, np.int64)) for places in itertools.combinations(range(self.n), self.size)]

    def outcomes(self) -> NDArray[np.int64]:
        outcomes: NDArray[np.int64] = self.laws[0].outcomes()
        return outcomes

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        logs = [law.logpmf(k) for law in self.laws]
        return np.asarray(np.logaddexp.reduce(logs, axis=0) - math.log(len(logs)))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        """Draw samples first, and then from the law of each: draws from the same sample are taken together."""
        source, shape = bit_generator(rng), checks.shape(size)
        drawn = np.array([drawn_places(self.n, self.size, source) for _ in range(math.prod(shape))])
        samples, which = np.unique(drawn.reshape(len(drawn), self.size), axis=0, return_inverse=True)
        empty = self._law(np.arange(self.size)).sample(0, source)
        counts = np.bincount(which.ravel(), minlength=len(samples)).tolist()
        parts = [self._law(places).sample(count, source) for places, count in zip(samples, counts, strict=True)]
        draws = np.concatenate([empty, *parts])
        draws[np.argsort(which.ravel(), kind="stable")] = draws.copy()
        return draws[0] if size is None else draws.reshape(*shape, *draws.shape[1:])

    def value(self, k: ArrayLike) -> Any:
        return self._law(np.arange(self.size)).value(k)
