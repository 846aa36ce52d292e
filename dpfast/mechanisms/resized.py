"""A mechanism for a public number of records, on a random sample of a noisy number of them, which is then private."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks
from dpfast.core.privacy import Privacy, PrivacyProfile, shown
from dpfast.core.rounding import down, up
from dpfast.core.traps import Trap, of_least_records, of_private_n
from dpfast.core.types import Exact
from dpfast.laws import DiscreteLaplace, Law
from dpfast.mechanisms.foreseen import GUESS, Foreseen
from dpfast.mechanisms.mechanism import UNKNOWN_ERROR, Mechanism
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.subsampled import MixedLaw, OfSamples, RecordsPlan
from dpfast.mechanisms.urns import sampled_pieces
from dpfast.random import RandomSource, bit_generator
from dpfast.statistics import MomentStatistic, Sum
from dpfast.statistics.rank import TrimmedSum
from dpfast.streaming import Chunks, Counted

MOST = 10**9  # records of a sample
OF_NUMBER = Fraction(1, 10)  # of epsilon, for the number of records
LEAST_EPSILON = 2.0**-12  # of the number, whose noise the memory must hold
_NEGLIGIBLE = 60.0  # of the noise, in scales, in a law
_MOST_COLUMNS = 2**12  # of rows of which samples are drawn


@dataclass(frozen=True)
class NoisySize:
    """The number of records of a sample: that of all records with noise, rarely more than it.

    Parameters
    ----------
    epsilon : Fraction
        At least 2**-12.
    filled : float
        In (0, 1/2): at most the probability that a sample is filled up with missing records.
    least : int
        The least number of records of a sample. Public.
    """

    epsilon: Fraction
    filled: float = 0.005
    least: int = 1

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """The noise on the number of records."""
        return DiscreteLaplace(1 / self.epsilon)

    @cached_property
    def margin(self) -> int:
        """What is subtracted from the noisy number of records: it is then rarely too large. Public."""
        return self.noise.magnitude(1 - 2 * self.filled)

    def of(self, noisy: SupportsIndex) -> int:
        """Return the number of records of a sample for a noisy number of records."""
        return min(max(int(noisy) - self.margin, self.least), MOST)

    def drawn(self, n: int, source: np.random.BitGenerator) -> int:
        """Release the number of records of a sample of n."""
        return self.of(n + self.noise.draw(source))


def sample_places(n: int, size: int, source: np.random.BitGenerator) -> NDArray[np.int64]:
    """Draw a uniform sample of n places in random order, filled up to this size by -1, for a missing record."""
    filled = np.concatenate([np.arange(n), np.full(max(size - n, 0), -1)])
    return np.random.Generator(source).permutation(filled)[:size]


@dataclass(frozen=True, repr=False)
class Resized(OfSamples):
    """Release by a mechanism for one replaced record, and keep the number of records private.

    The number of records is released with noise to the mechanism, which then has as many: a uniform random sample of
    the records or, if the noisy number is greater, all of them and missing ones (NaN). (epsilon, delta)-differentially
    private for one record added or removed.

    Parameters
    ----------
    mechanism : Mechanism
        For one replaced record, with a guarantee in epsilon and delta, of numbers or rows.
    epsilon : float
        The total; what it is above the epsilon of the mechanism is for the number of records, at least 2**-12.
    missing : {None, "drop"}
        "drop": records that are missing, of rows those with a missing entry, are left out before they are counted.
        Otherwise they follow the policy of the mechanism.
    filled : float
        In (0, 1/2): at most the probability that a sample is filled up with missing records.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter; a mechanism that does not take up to 10**9 records.

    Notes
    -----
    Privacy: given the noisy number N, the samples of neighbours can be drawn together so that they differ in one
    record, which is replaced (https://dpfast.readthedocs.io/en/latest/proofs/resized.html).
    The noise of the number is discrete Laplace. A public margin is subtracted, the least with which the result exceeds
    the number of records with a probability of at most `filled`; it is raised to what the mechanism needs, and lowered
    to 10**9. The sample is drawn by the generator of the release, in random order for a mechanism that depends on the
    order. A mechanism made for one record added or removed has less error where there is one: means, sums, counts and
    single quantiles.
    Cost: that of the mechanism and of a copy of the records. A sample of `Counted` records takes memory of the distinct
    values, and of more than 10**9 of them a millisecond for each distinct value. Timing is outside the guarantee.

    References
    ----------
    The transformation "resize" of OpenDP; Balle, Barthe and Gaboardi 2018, "Privacy amplification by subsampling", for
    the samples of neighbours.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> deciles = dpf.Quantiles(np.arange(1, 10) / 10, grid=dpf.Grid(0, 100, step=1), epsilon=0.9)
    >>> private = dpf.Resized(deciles, epsilon=1.0)
    >>> print(private.privacy)
    epsilon = 1 (pure differential privacy) for one record added or removed
    >>> bool(np.abs(private(np.arange(10_000) % 101) - 10 * np.arange(1, 10)).max() <= 3)
    True
    """

    counts_first: ClassVar[str] = "a sample is drawn by position, which requires all records: use Chunks"

    mechanism: Mechanism
    epsilon: float = field(kw_only=True)
    missing: str | None = field(kw_only=True, default=None)
    filled: float = field(kw_only=True, default=0.005)

    if TYPE_CHECKING:  # epsilon may be given exactly

        def __init__(
            self, mechanism: Mechanism, *, epsilon: Exact, missing: str | None = None, filled: float = 0.005
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        mechanism = self.mechanism
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        if self._for_number < LEAST_EPSILON:
            inner = mechanism.privacy.epsilon
            enough = max(float(inner / (1 - OF_NUMBER)), float(inner) + 2 * LEAST_EPSILON)
            raise ValueError(
                f"epsilon={shown(self.epsilon)} must be at least 2**-12 above that of the mechanism, {shown(inner)}: "
                f"the rest is for the number of records; give epsilon={enough:.3g}"
            )
        if not _reads_one_array(mechanism):
            raise TypeError(f"mechanism must read one array of numbers or rows, in any number, not {mechanism!r}")
        if self.missing not in (None, "drop"):
            raise ValueError(f"missing must be None or 'drop', not {self.missing!r}")
        object.__setattr__(self, "filled", checks.between("filled", self.filled, 0, 0.5))
        mechanism.plan(MOST)  # reject a mechanism that does not take as many records

    @property
    def _for_number(self) -> Fraction:
        """The epsilon of the number of records."""
        return Fraction(self.epsilon) - Fraction(self.mechanism.privacy.epsilon)

    @cached_property
    def _size(self) -> NoisySize:
        return NoisySize(self._for_number, self.filled, self.least)

    @property
    def _noise(self) -> DiscreteLaplace:
        """The noise on the number of records."""
        return self._size.noise

    @property
    def margin(self) -> int:
        """What is subtracted from the noisy number of records: it is then rarely too large. Public."""
        return self._size.margin

    @cached_property
    def least(self) -> int:
        """The least number of records of a sample. Public."""
        return max(getattr(self.mechanism, "least_records", 1), 1)

    def size(self, noisy: SupportsIndex) -> int:
        """Return the number of records of a sample for a noisy number of records."""
        return self._size.of(noisy)

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.mechanism.privacy.delta, "add-remove")

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """Of the number, and of the mechanism: mixtures over the samples of neighbours do not exceed it."""
        inner = self.mechanism.privacy_profile
        number = ("discrete-laplace", up(self._for_number), 1)
        return PrivacyProfile(self.privacy, (number, *inner.parts), failure=inner.failure)

    def __repr__(self) -> str:
        return f"<Resized, for a private number of records, of {self.mechanism!r}: {self.privacy}>"

    @property
    def ordered(self) -> bool:
        return False  # a sample is in random order where that matters

    @cached_property
    def resolves(self) -> bool:
        return False  # missing records are those of the mechanism, or left out

    def _explained_split(self, n: int | None) -> str:
        share = float(100 * self._for_number / Fraction(self.epsilon))
        parts = f"Of epsilon, {share:.3g} % is for the number of records", self.mechanism._explained_split(None)
        return ". ".join(part for part in parts if part)

    def _explained_missing(self) -> str:
        if self.missing == "drop":
            return "Missing records (NaN, None, null) are left out"
        return self.mechanism._explained_missing()

    def _enough(self) -> float:
        enough = self.mechanism.enough
        return self.margin + enough if enough else 0.0

    def _explained_error(self, n: int | None) -> str:
        of_sample = f"It reads a random sample, of about {self.margin:,} records less than there are"
        return f"{of_sample}. {super()._explained_error(n) or UNKNOWN_ERROR}"

    def _foreseen_of_many(self, n: int) -> Foreseen | None:
        size = self.size(n)
        found = self.mechanism.foreseen(size)
        few = n <= self.margin or found is GUESS
        return GUESS if few else found and found.of_sample(size, n, float(1 / self._for_number))

    def _make_plan(self, n: int | None) -> Plan:
        return ResizedPlan(self, None)

    def law_of(self, records: Any) -> SizesLaw:
        """Return the exact law, given the records: the mixture of those of all samples. PRIVATE."""
        return SizesLaw(self, records)

    def of_all(self, release: Any, size: int) -> Any:
        """Return what the release from a sample of this size says of all records: a sum grows with their number."""
        if not isinstance(getattr(self.mechanism, "statistic", None), Sum):
            return release
        return release * ((size + self.margin) / size)

    def padded(self, records: Any, missing: int) -> Any:
        """Return records and so many missing ones."""
        if not missing:
            return records
        if isinstance(records, Chunks):
            first = next(iter(records), np.zeros(0))
            if isinstance(first, Counted):
                return Chunks([*records, Counted([np.nan], [missing])])
            return Chunks([*records, np.full((missing, *first.shape[1:]), np.nan)])
        return np.concatenate([records, np.full((missing, *records.shape[1:]), np.nan)])


def resized(
    mechanism: Callable[[float], Mechanism], *, epsilon: float, missing: str | None = None, filled: float = 0.005
) -> Resized:
    """Return a mechanism for one replaced record with a private number of records.

    Parameters
    ----------
    mechanism : callable
        Makes it for an epsilon.
    epsilon : float
        The total, of which a tenth is for the number of records.
    missing, filled
        See `Resized`.
    """
    made = mechanism(down(Fraction(epsilon) * (1 - OF_NUMBER)))
    return Resized(made, epsilon=epsilon, missing=missing, filled=filled)


def _reads_one_array(mechanism: Mechanism) -> bool:
    """Whether a mechanism reads numbers, or rows of them, as they are: samples of other records cannot be drawn.

    What it makes of any records is public.
    """
    if callable(getattr(mechanism, "least_records", None)):
        return False
    rows = [(3, columns) for columns in range(1, _MOST_COLUMNS + 1)]
    for shape in rows if mechanism.dimensions > 1 else [(3,)]:
        records = np.zeros(shape)
        with suppress(TypeError, ValueError):  # records of another kind, or rows of another number of columns
            read = mechanism.values_of(records)
            return isinstance(read, np.ndarray) and (read.shape, read.dtype) == (records.shape, records.dtype)
    return False


class ResizedPlan(RecordsPlan):
    """A release from a sample of a noisy number of records, drawn anew for each release."""

    mechanism: Resized

    @property
    def traps(self) -> tuple[Trap, ...]:  # type: ignore[override]
        """The traps of a presumed number of records; within bounds any number may be enough."""
        least = self.mechanism.least
        return tuple(of_private_n(lambda n: of_least_records(n, least) if self.mechanism.enough else self.traps_of(n)))

    def traps_of(self, n: int) -> Iterable[Trap]:
        sampling, least = self.mechanism, self.mechanism.least
        few = super().traps_of(n) if sampling.enough else sampling.mechanism.plan(max(n, least)).traps
        return itertools.chain(of_least_records(n, least), few)

    def read(self, values: Any, threads: int = 1) -> tuple[Plan, Any]:
        """Return the records as floats, so that the missing ones that may fill them up change no others."""
        if not isinstance(values, Chunks):
            return self, self._floats(values)
        read = self.mechanism.values_of
        pieces = [self._floats(piece if isinstance(piece, Counted) else read(piece)) for piece in values]
        if not self.mechanism.mechanism.ordered:
            return self, Chunks(pieces)
        if any(isinstance(piece, Counted) for piece in pieces):  # of which no order matters
            counted = (p if isinstance(p, Counted) else Counted(p, np.ones(len(p), np.int64)) for p in pieces)
            return self, Chunks(list(counted))
        return self, np.concatenate(pieces) if pieces else self._floats(np.zeros(0))

    def _floats(self, values: Any) -> Any:
        drops = self.mechanism.missing == "drop"
        if isinstance(values, Counted):
            known = ~np.isnan(values.values) if drops else slice(None)
            return Counted(np.asarray(values.values, np.float64)[known], values.counts[known])
        floats = np.asarray(values, np.float64)
        absent = np.isnan(floats) if floats.ndim == 1 else np.isnan(floats).any(axis=1)
        return floats[~absent] if drops else floats

    def release(self, records: Any, source: np.random.BitGenerator, threads: int) -> Any:
        mechanism = self.mechanism
        n = records.records() if isinstance(records, Chunks) else len(records)
        size = mechanism._size.drawn(n, source)
        sample = self._sample(records, n, size, source)
        return mechanism.of_all(mechanism.mechanism.plan(size).draw(sample, source, threads), size)

    def _sample(self, records: Any, n: int, size: int, source: np.random.BitGenerator) -> Any:
        """Draw a sample of n records, filled up to this size."""
        mechanism = self.mechanism
        if size < n:
            pieces = sampled_pieces(list(records) if isinstance(records, Chunks) else [records], n, size, source)
            whole = not any(isinstance(piece, Counted) for piece in pieces)
            records = np.concatenate(pieces) if whole else Chunks(pieces)
        sample = mechanism.padded(records, max(size - n, 0))
        if not mechanism.mechanism.ordered or isinstance(sample, Chunks):
            return sample
        return sample[np.random.Generator(source).permutation(size)]


class SizesLaw(Law):
    """The mixture of the laws of all samples, by their size and the records that are in them. PRIVATE.

    Parameters
    ----------
    mechanism : Resized
        Of records in any order.
    records : ndarray of float64
    """

    def __init__(self, mechanism: Resized, records: NDArray[np.float64]) -> None:
        if mechanism.mechanism.ordered:
            raise ValueError("the law of samples in random order cannot be listed: use audit.distinguish")
        if isinstance(getattr(mechanism.mechanism, "statistic", None), (TrimmedSum, MomentStatistic)):
            raise ValueError("what codes mean depends on the size of the sample: use audit.distinguish")
        self._mechanism, self._records = mechanism, records

    @cached_property
    def _parts(self) -> list[tuple[float, Any]]:
        """The logarithm of the probability of each size, and the law of the samples of this size."""
        mechanism, n = self._mechanism, len(self._records)
        reach = math.ceil(_NEGLIGIBLE * float(mechanism._noise.scale))
        noise = np.arange(-reach, reach + 1)
        logs = mechanism._noise.logpmf(noise.astype(np.float64))
        sizes = [mechanism.size(n + z) for z in noise.tolist()]
        found = []
        for size, group in itertools.groupby(zip(sizes, logs.tolist(), strict=True), key=lambda pair: pair[0]):
            found.append((float(np.logaddexp.reduce([log for _, log in group])), self._law(size)))
        return found

    def _law(self, size: int) -> Law:
        mechanism, n = self._mechanism, len(self._records)
        plan = mechanism.mechanism.plan(size)

        def law(places: NDArray[np.int64]) -> Law:
            sample = mechanism.padded(self._records[places], max(size - n, 0))
            read, summary = plan.read(sample)
            return read.law_of(summary)

        return MixedLaw(law, n, min(size, n))

    def outcomes(self) -> NDArray[np.int64]:
        """Return those of any size: quantiles of few records are fewer."""
        return np.unique(np.concatenate([law.outcomes() for _, law in self._parts]), axis=0)

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(np.logaddexp.reduce([log + law.logpmf(k) for log, law in self._parts], axis=0))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        source, shape = bit_generator(rng), checks.shape(size)
        n, mechanism = len(self._records), self._mechanism
        sizes = [mechanism.size(n + mechanism._noise.draw(source)) for _ in range(math.prod(shape))]
        draws = [self._law(size).sample(rng=source) for size in sizes]
        return draws[0] if size is None else np.array(draws).reshape(*shape, *np.shape(draws[0]) if draws else ())

    def value(self, k: ArrayLike) -> Any:
        return self._parts[0][1].value(k)
