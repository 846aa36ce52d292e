"""Partition selection: which keys of private records may be released, and their counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _keyed_balls
from dpfast.choosing import Explain, explained
from dpfast.core import checks
from dpfast.core.privacy import Privacy
from dpfast.core.tabular import Tabular
from dpfast.core.types import Exact
from dpfast.keys import Keys, Sorted, lookup
from dpfast.laws import DiscreteLaplace, Independent, Law, NoisyIntegers
from dpfast.laws.keyed import (
    MOST_LOSS,
    MOST_NOISE,
    DomainCounts,
    KeyedCounts,
    KeyNoise,
    StepNoise,
    TruncatedNoise,
    UnboundedNoise,
    steps,
)
from dpfast.laws.thresholds import thresholded
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.random import RandomSource
from dpfast.streaming import Counts, KeyReading, Reading

_DENSE = 2**16  # keys of a domain up to which each one draws its noise
_MOST_KEYS = 2**63
_KNOTS = 4096  # of the cells in which a noise is summed
_LIKELY = 0.9  # the probability of release by which two kinds of noise are compared
_RISE = Fraction(5, 8)  # of epsilon, for the key with one record more after a replacement; the rest for the other


@dataclass(frozen=True, eq=False)
class Partitions(Tabular):
    """Released keys and their noisy counts.

    Attributes
    ----------
    keys : ndarray, or tuple of ndarrays for keys of several columns
        In increasing order, or in that of a listed domain. An object array for text, bytes and objects, else of the
        dtype of the column.
    counts : ndarray of int64
        The noisy number of records of each key.
    privacy : Privacy
        The guarantee of the release.

    Examples
    --------
    >>> import dpfast as dpf
    >>> released = dpf.partitions([3] * 100 + [5] * 100 + [8], epsilon=1.0, delta=1e-6)
    >>> len(released), released.keys
    (2, array([3, 5], dtype=object))
    """

    keys: Keys
    counts: NDArray[np.int64]
    privacy: Privacy

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        return f"Partitions({len(self)} keys, {self.privacy})"

    def _caption(self) -> str:
        return f"Partitions, {len(self):,} keys: {self.privacy}"

    def _as_columns(self) -> dict[str, NDArray[Any]]:
        several = isinstance(self.keys, tuple)
        columns = {f"key_{j}": keys for j, keys in enumerate(self.keys)} if several else {"key": self.keys}
        return {**columns, "count": self.counts}


@dataclass(frozen=True, repr=False)
class PartitionSelection(Mechanism):
    """Release the keys that enough records have, with noisy counts.

    Parameters
    ----------
    epsilon : float
        Positive; rounded down to a double.
    delta : float
        In [0, 1); rounded down to a double. Positive unless there is a `domain`.
    contributions : int
        k, the number of records that one unit (a person) may have, with the same key or different ones. The guarantee
        is for units: add-remove only.
    per_key : int, optional
        1 promises that all records of a unit have different keys, as `dpfast.bound_contributions` with ``per_unit=k,
        per_key=1`` makes them; the guarantee holds only then. Fewer records are needed to release a key, about sqrt(k)
        times those of k = 1 instead of k times. It has no effect with a `domain`. Default: records of a unit may have
        the same key.
    neighbors : {"add-remove", "replace-one"}
    domain : int or sequence of keys, optional
        The possible keys, public: 0..domain - 1 for a number, at most 2**63, or a list. The guarantee is then pure:
        delta must be 0. Records with other keys are left out.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Privacy (https://dpfast.readthedocs.io/en/latest/proofs/partitions.html): without a domain, keys are released with
    the largest probabilities that (epsilon, delta) allows for a key of any number of records, up to 2**-50 of them; the
    counts cost nothing. Their noise is discrete Laplace noise of scale 1 / epsilon; a key that noise and a threshold
    alone would not release has a public count instead. Under replacement one count falls and another one rises: 5/8 of
    epsilon bound the rise and 3/8 the fall, which releases keys of about a tenth fewer records than equal parts, with a
    tenth more noise. For k contributions each record has epsilon / k. With ``per_key=1`` the alternative is rounded
    Gaussian noise, of a scale proportional to sqrt(k), and a threshold; it is used if fewer records then release a key
    with probability 0.9, from about k = 4 on. With a number as domain, the noise is discrete Laplace, and keys without
    records are released as well: about one on average. With a list, all its keys are released. Cost:
    `dpfast.keys.KeyCounts` of the records, and a sort of the distinct keys.

    References
    ----------
    Desfontaines, Voss, Gipson and Mandayam 2022, "Differentially private partition selection"; Cormode, Procopiuc,
    Srivastava and Tran 2012, "Differentially private summaries for sparse data".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.PartitionSelection(1.0, 1e-6)
    >>> mechanism.threshold, round(mechanism.probability(20), 3)
    (14, 0.999)
    >>> mechanism(["a"] * 100 + ["b"] * 100 + ["rare"]).keys
    array(['a', 'b'], dtype=object)
    """

    reads_all: ClassVar[bool] = False  # the number of records with listed keys is private
    releases_numbers: ClassVar[bool] = False

    epsilon: float
    delta: float = 0.0
    contributions: int = field(kw_only=True, default=1)
    per_key: int | None = field(kw_only=True, default=None)
    neighbors: str = field(kw_only=True, default="add-remove")
    domain: int | tuple[Any, ...] | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checks.delta_down(self.delta))
        object.__setattr__(self, "contributions", checks.whole("contributions", self.contributions, least=1))
        checks.choice("neighbors", self.neighbors, ("replace-one", "add-remove"))
        object.__setattr__(self, "per_key", checks.one_or_none("per_key", self.per_key))
        if self.contributions > 1 and self.neighbors != "add-remove":
            raise ValueError("contributions above 1 need neighbors='add-remove': a unit is added or removed")
        object.__setattr__(self, "domain", _domain(self.domain))
        if self.domain is None and self.delta == 0:
            raise ValueError("delta must be positive unless domain= gives the possible keys")
        if self.domain is not None and self.delta > 0:
            raise ValueError("delta must be 0 with domain=, whose guarantee is pure")
        if self.domain is not None and self._scale > MOST_NOISE:
            raise ValueError(
                f"epsilon={self.epsilon!r} requires noise of more than 2**56 records: use a larger epsilon"
            )
        self._noise()

    @property
    def privacy(self) -> Privacy:
        per_unit = self.contributions if self.contributions > 1 else None
        return Privacy(self.epsilon, self.delta, self.neighbors, per_unit=per_unit)

    def __repr__(self) -> str:
        among = "" if self.domain is None else f" among {self._size} possible ones"
        promise = ", different ones within a unit" if self._different else ""
        return f"<PartitionSelection of keys{among}{promise}: {self.privacy}>"

    @property
    def _different(self) -> bool:
        """Whether the guarantee uses the promise of different keys."""
        return self.per_key is not None and self.contributions > 1 and self.domain is None

    @property
    def _size(self) -> int:
        assert self.domain is not None
        return self.domain if isinstance(self.domain, int) else len(self.domain)

    @property
    def _scale(self) -> Fraction:
        """The scale of discrete Laplace noise: the largest change of all counts together, divided by epsilon."""
        change = 2 if self.neighbors == "replace-one" else self.contributions
        return change / Fraction(self.epsilon)

    def _noise(self) -> KeyNoise:
        if self.domain is None:
            if self._different:
                return _of_different_keys(self.epsilon, self.delta, self.contributions)
            return _truncated(self.epsilon, self.delta, self.contributions, self.neighbors)
        center = 0
        if isinstance(self.domain, int):
            scale = float(self._scale)
            center = max(math.ceil(scale * (math.log(self._size) - math.log1p(math.exp(-1 / scale)))) - 1, 0)
        return UnboundedNoise(self._scale, center)

    @property
    def threshold(self) -> int | None:
        """The least count that is released; None for a list of keys, all of which are released. Public."""
        return None if isinstance(self.domain, tuple) else self._noise().threshold

    def _explained_error(self, n: int | None) -> str:
        least = self.threshold
        return "" if least is None else f"A key is released if its noisy count is at least {least:,}"

    def probability(self, n: SupportsIndex) -> float:
        """Return the probability that a key with n records is released. Public, like n.

        Examples
        --------
        >>> import dpfast as dpf
        >>> mechanism = dpf.PartitionSelection(1.0, 1e-6)
        >>> [float(f"{mechanism.probability(n):.2g}") for n in (0, 1, 2, 14, 30)]
        [0.0, 1e-06, 3.7e-06, 0.7, 1.0]
        """
        number = checks.whole("n", n)
        if isinstance(self.domain, tuple):
            return 1.0
        return float(self._noise().below(np.array(min(number, 2**62))))

    def error(self, n: SupportsIndex) -> float:
        """Return the expected absolute noise on the count of a key with n records, if the key is released. Public, like
        n.

        The release of a key depends on its noise, so that for few records the count is rather too large; `probability`
        says how likely it is released.

        Parameters
        ----------
        n : int
            The number of records of the key.

        Returns
        -------
        float
            In records, to 1 %; NaN if the key is never released.

        Examples
        --------
        >>> import dpfast as dpf
        >>> mechanism = dpf.PartitionSelection(1.0, 1e-6)
        >>> [round(mechanism.error(n), 1) for n in (1, 14, 30, 1000)]
        [13.4, 0.6, 0.9, 0.9]
        """
        number = min(checks.whole("n", n), 2**62)
        noise, most = self._noise(), 2**62 if isinstance(self.domain, tuple) else number
        away = np.unique(np.geomspace(1, 2.0**60, _KNOTS).astype(np.int64))
        ends = np.unique(np.concatenate([noise.center - away, [noise.center], noise.center + away, [most]]))
        ends = ends[ends <= most]  # of cells of J, which releases the key if it is below n
        distances = np.abs((ends[:-1] + ends[1:] - 1) / 2 - noise.center)
        total = np.sum(np.diff(noise.cdf(ends)) * distances) + noise.extra(ends[-1]) * abs(noise.other - number)
        released = noise.below(ends[-1])
        return float(total / released) if released else math.nan

    def reading(self) -> Reading:
        if not isinstance(self.domain, tuple):
            return KeyReading()
        size = len(self.domain)
        return Counts((size,), self._listed, lambda codes, threads: np.bincount(codes, minlength=size))

    def _listed(self, x: Any) -> NDArray[np.int64]:
        """Return the places in the domain of the records whose keys are there."""
        codes = lookup(x, self.domain)
        return codes[codes >= 0]

    def law_of(self, summary: Any) -> Law:
        if isinstance(self.domain, tuple):
            counts, _ = summary
            return NoisyIntegers(
                counts,
                noise=Independent(DiscreteLaplace(self._scale), len(self.domain)),
                most=2**61,
                decode=self._all,
            )
        noise = self._noise()
        if self.domain is None:
            return KeyedCounts(summary.counts, noise=noise, decode=lambda drawn: self._released(summary, drawn))
        assert isinstance(noise, UnboundedNoise)
        keys, counts = _within(summary, self.domain)
        if self.domain > _DENSE:
            return DomainCounts(keys, counts, last=self.domain - 1, noise=noise, decode=self._sparse)
        dense = np.zeros(self.domain, np.int64)
        dense[keys] = counts
        return KeyedCounts(dense, noise=noise, decode=self._dense)

    def sampled(self, law: Law, shape: tuple[int, ...], source: np.random.BitGenerator) -> NDArray[Any]:
        out = np.empty(math.prod(shape), object)
        for i in range(out.size):
            out[i] = law.value(law.sample(rng=source))
        return out.reshape(shape)

    def release(
        self,
        x: Any,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        rng: RandomSource = None,
        workers: int = 1,
    ) -> Any:
        """Make `size` independent releases, an object array of `Partitions`: EACH ONE spends the budget.

        For None, return one `Partitions`, like a call.
        """
        return super().release(x, size=size, rng=rng, workers=workers)

    # ---- the released object ----

    def _released(self, summary: Sorted, drawn: NDArray[np.int64]) -> Partitions:
        seen = drawn > 0
        return Partitions(summary.keys(seen), drawn[seen], self.privacy)

    def _dense(self, drawn: NDArray[np.int64]) -> Partitions:
        places = np.flatnonzero(drawn)
        return Partitions(places, drawn[places], self.privacy)

    def _sparse(self, drawn: NDArray[np.int64]) -> Partitions:
        return Partitions(drawn[:, 0].copy(), drawn[:, 1].copy(), self.privacy)

    def _all(self, drawn: NDArray[np.int64]) -> Partitions:
        assert isinstance(self.domain, tuple)
        keys = np.empty(len(self.domain), object)
        for place, key in enumerate(self.domain):
            keys[place] = key
        return Partitions(keys, drawn, self.privacy)


def _domain(domain: Any) -> int | tuple[Any, ...] | None:
    """Return the parameter as a number, or a tuple of distinct keys."""
    if domain is None or isinstance(domain, tuple):
        keys = domain
    elif isinstance(domain, (str, bytes)) or not (hasattr(domain, "__len__") and hasattr(domain, "__getitem__")):
        size = checks.whole("domain", domain, least=1)
        if size > _MOST_KEYS:
            raise ValueError(f"domain must be at most 2**63, not {size}")
        return size
    else:
        keys = tuple(domain.tolist() if hasattr(domain, "tolist") else domain)
    if keys is not None:
        if not keys:
            raise ValueError("domain must have at least one key")
        keys = tuple(map(_plain, keys))
        columns: Any = tuple([] for _ in keys[0]) if isinstance(keys[0], tuple) else []
        lookup(columns, keys, "domain")  # distinct, none missing
    return keys


def _plain(key: Any) -> Any:
    """Return a float of a subclass, whose value may change, as a plain one; other keys as they are."""
    if isinstance(key, tuple):
        return tuple(map(_plain, key))
    subclass = isinstance(key, float) and type(key) is not float and not isinstance(key, np.generic)
    return float.__float__(key) if subclass else key


def _within(summary: Sorted, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys that are integers from 0 to size - 1, and their counts."""
    keys: Any = summary.keys()
    if isinstance(keys, tuple):
        raise TypeError("keys must be in one column for a number as domain")
    if keys.dtype.kind == "O":
        inside = np.array([isinstance(key, int) and 0 <= key < size for key in keys], bool)
    else:
        inside = (keys >= 0) & (keys <= np.asarray(size - 1, np.uint64 if keys.dtype.kind == "u" else np.int64))
        if keys.dtype.kind == "f":
            inside &= (keys == np.floor(keys)) & (keys < 2.0**63)
    return keys[inside].astype(np.int64), summary.counts[inside]


@lru_cache(maxsize=64)
def _truncated(epsilon: float, delta: float, contributions: int, neighbors: str) -> KeyNoise:
    """Return the noise of (epsilon, delta): the one of `steps`, or a truncated discrete Laplace
    noise for long tables.
    """
    whole, part = min(Fraction(epsilon), Fraction(MOST_LOSS)), Fraction(delta)
    if neighbors == "replace-one":
        half = part / 2
        made = steps((whole * _RISE, half), (whole * (1 - _RISE), half))
        return TruncatedNoise(whole / 2, half) if made is None else StepNoise(made)
    return _of_one_record(whole / contributions, _keyed_balls.share_down(whole, contributions, part))


def _of_one_record(epsilon: Fraction, delta: Fraction) -> KeyNoise:
    made = steps((epsilon, delta), (epsilon, delta))
    return TruncatedNoise(epsilon, delta) if made is None else StepNoise(made)


@lru_cache(maxsize=64)
def _of_different_keys(epsilon: float, delta: float, contributions: int) -> KeyNoise:
    """Return the noise of (epsilon, delta) for records of different keys: in equal parts, or
    Gaussian, see `_needed`.
    """
    most = min(epsilon, float(MOST_LOSS))
    gaussian = thresholded(most, delta, contributions)
    try:
        parts = _of_one_record(Fraction(most) / contributions, _keyed_balls.part_down(contributions, Fraction(delta)))
    except ValueError:
        if gaussian is None:
            raise
        return gaussian
    return parts if gaussian is None or _needed(parts) <= _needed(gaussian) else gaussian


def _needed(noise: KeyNoise) -> int:
    """Return the least number of records that releases a key with probability 0.9."""
    low, high = 0, 2**60
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if noise.below(np.array(middle)) >= _LIKELY else (middle, high)
    return high


def partitions(
    keys: Any,
    *,
    epsilon: Exact,
    delta: Exact = 0.0,
    contributions: SupportsIndex = 1,
    per_key: SupportsIndex | None = None,
    neighbors: str = "add-remove",
    domain: SupportsIndex | Sequence[Any] | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> Any:
    """Release the keys that enough private records have, with noisy counts: partition selection.

    Parameters
    ----------
    keys : array_like of shape (n,) or (n, k), frame, tuple of columns, or Chunks
        The key of each record: numbers, text or bytes, in lists also dates, UUIDs and others. `dpfast.keys.column_of`
        lists the types and the containers. Missing keys are left out.
    epsilon, delta, contributions, per_key, neighbors, domain
        See `dpfast.PartitionSelection`.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        As for other functions, but without effect: one thread counts the keys.
    explain : bool or callable
        Print a text about the release, or pass it to this function.

    Returns
    -------
    Partitions
        `keys` in increasing order and their `counts`.

    Raises
    ------
    TypeError, ValueError
        See `dpfast.PartitionSelection`; keys of another dtype.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> cities = np.repeat(["Oslo", "Rome", "Lima"], [500, 300, 2])
    >>> released = dpf.partitions(cities, epsilon=1.0, delta=1e-6)
    >>> released.keys, bool(np.abs(released.counts - [300, 500][::-1]).max() < 30)
    (array(['Oslo', 'Rome'], dtype=object), True)
    """
    mechanism = PartitionSelection(
        checks.positive_down("epsilon", epsilon),
        checks.delta_down(delta),
        contributions=contributions,  # type: ignore[arg-type]
        per_key=per_key,  # type: ignore[arg-type]
        neighbors=neighbors,
        domain=domain,  # type: ignore[arg-type]
    )
    return explained(mechanism, explain, keys)(keys, rng=rng, workers=workers)
