"""Frequencies of keys from large public domains: reports of about log k bits, counted by fast transforms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _randomize, _samplers
from dpfast._kernels._threads import each
from dpfast.core import checks, containers
from dpfast.core.coin import Coin, coin
from dpfast.core.grid import Grid
from dpfast.core.types import Records
from dpfast.local.randomizer import Aggregate, LocalMechanism
from dpfast.local.responses import LARGEST_LAW
from dpfast.local.scalar import FiniteLaw, ReportsOfOneType, record, symbols, widened
from dpfast.local.simplex import rule_of, subsimplex
from dpfast.random import BLOCK, RandomSource, bit_generator, over_blocks

_MOST_KEYS = 2**64
_CELLS = 2**20
_BUCKETS = 2**11  # cells of one hash function, at least: its transform fits a cache, and there are many functions
_SYMBOLS = 2**21  # symbols of one hash function, about; their counts are transformed at once
_ALL = 2**24  # so many estimates are made without a list of keys
_PRIMES = tuple(q for q in range(2, 200) if all(q % d for d in range(2, q)))
_AT_ONCE = 2**31  # reports whose counts are 32-bit integers
_LANES, _MANY = 32, 64  # hash functions that are counted at once: a vector; one alone if a prime is longer than vectors
_ADDITIONS = 24  # of vectors, that take as long as the addition of 1 to a cell; 20 to 35 for the primes from 5 to 131
_TOLERANCE = Fraction(1, 200)


class Field(NamedTuple):
    """The residues modulo a prime, `width` of which count as near.

    A report supports its key with odds e^epsilon width / (prime - width), any other with probability width / prime.
    """

    prime: int
    width: int


def _spread(ratio: Fraction, share: Fraction) -> Fraction:
    """Variance of a decoded entry that is not the record's: (1 + q (E - 1))^2 / (q (1 - q)(E - 1)^2)."""
    return (1 + share * (ratio - 1)) ** 2 / (share * (1 - share) * (ratio - 1) ** 2)


@lru_cache(maxsize=256)
def best_field(epsilon: float) -> Field:
    """Return the smallest prime below 200 whose variance is within 0.5 % of the least for these
    primes; in rationals.
    """
    ratio = coin(epsilon).ratio
    fields = []
    for prime in _PRIMES:
        ideal = prime / (ratio + 1)
        widths = {min(max(w, 1), prime - 1) for w in (math.floor(ideal), math.ceil(ideal))}
        fields.append(
            min((Field(prime, w) for w in sorted(widths)), key=lambda f: _spread(ratio, Fraction(f.width, f.prime)))
        )
    spreads = [_spread(ratio, Fraction(f.width, f.prime)) for f in fields]
    limit = min(spreads) * (1 + _TOLERANCE)
    return next(f for f, spread in zip(fields, spreads, strict=True) if spread <= limit)


@dataclass(frozen=True)
class HashedCategorical(ReportsOfOneType, LocalMechanism):
    """Local randomiser for one of k keys, k up to 2**64, to estimate the frequencies of all or of some of them.

    Pure epsilon-local differential privacy. A report takes a few bytes and is drawn in O(log k) steps. The server
    counts n reports in two passes and one transform, whatever k is, or few of them without it, and estimates the
    frequency of a key in O(hashes).

    Parameters
    ----------
    k : int
        Number of keys, 2..2**64; records are the integers 0..k - 1.
    epsilon : float
        At least 2**-40; rounded down to a double.
    cells : int
        The number of counts that the server keeps, about, 2**8..2**28. If k is small enough, each key has its own
        count. Otherwise keys are hashed by several public functions, and keys that share a cell disturb each other: it
        adds the variance ``sum(frequencies**2) / cells`` to every estimate.
    seed : int
        Public, 0..2**64 - 1; determines the hash functions. Client and server use the same.

    Attributes
    ----------
    prime, width, digits, hashes : int
        A hash function maps keys to ``prime**digits`` cells; see Notes.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    A record that is not one of 0..k - 1 counts as key 0. Keys from 2**53 on need an array of integers, since a list is
    read as float64. A key is hashed by a random one of the public functions to a vector v of digits modulo the prime. A
    report is the function, a uniform vector a of digits, and b, such that ``a v + b`` modulo the prime is below `width`
    with odds e^epsilon width / (prime - width). Another vector than v is supported with probability width / prime
    exactly (https://dpfast.readthedocs.io/en/latest/proofs/local-categories.html). `loss` is the ratio of the variance
    to that of optimal subset selection, whose reports have k bits: at most 1.017 up to epsilon = 5, and 1.14, 1.94 at
    6, 7.

    Privacy: one exact coin for each report, its probability rounded towards privacy; all other randomness is uniform
    whatever the record, and no choice of hash functions can break the guarantee.
    Estimates are unbiased over random hash functions. The number of functions is that of cells over ``prime**digits``.
    A report is a number of 1 to 8 bytes; numbers that are too large are refused.

    References
    ----------
    Feldman, Nelson, Nguyen and Talwar 2022, "Private frequency estimation via projective geometry"; Thorup 2015, "High
    speed hashing for integers and strings", section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> postcode = np.random.default_rng(0).zipf(1.5, 100_000) % 2**40
    >>> survey = local.HashedCategorical(2**40, epsilon=1.0)
    >>> reports = survey.randomize(postcode)
    >>> reports.itemsize
    4
    >>> frequencies = survey.estimate(reports, keys=[1, 2, 12345])
    >>> bool(np.abs(frequencies - [0.383, 0.135, 0]).max() < 0.05)
    True
    """

    k: int
    epsilon: float
    cells: int = field(default=_CELLS, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    prime: int = field(init=False, repr=False, compare=False)
    width: int = field(init=False, repr=False, compare=False)
    digits: int = field(init=False, repr=False, compare=False)
    hashes: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        k = checks.whole("k", self.k, least=2)
        if k > _MOST_KEYS:
            raise ValueError(f"k must be at most 2**64, not {k}")
        epsilon = checks.positive_down("epsilon", self.epsilon)
        cells = checks.whole("cells", self.cells, least=2**8)
        if cells > 2**28:
            raise ValueError(f"cells must be at most 2**28, not {cells}")
        seed = checks.whole("seed", self.seed)
        if seed >= 2**64:
            raise ValueError(f"seed must be below 2**64, not {seed}")
        prime, width = best_field(epsilon)
        coin(epsilon, Fraction(width, prime - width))
        digits, hashes = least_digits(k, prime), 1
        if prime**digits > cells or prime ** (digits + 1) > _SYMBOLS:
            digits = least_digits(min(_BUCKETS, cells // 4), prime)
            hashes = max(1, round(cells / prime**digits))
        values = (k, epsilon, cells, seed, prime, width, digits, hashes)
        names = ("k", "epsilon", "cells", "seed", "prime", "width", "digits", "hashes")
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    # ---- constants ----

    @property
    def grid(self) -> Grid:
        """Grid of the keys, 0..k - 1, at most 2**52."""
        if self.k > 2**52:
            raise ValueError(f"a grid has at most 2**52 keys, not {self.k}: give the grids of fewer of them")
        return Grid(0, self.k - 1, step=1.0)

    @cached_property
    def coin(self) -> Coin:
        """The coin that decides whether a report supports its key."""
        return coin(self.epsilon, Fraction(self.width, self.prime - self.width))

    @property
    def buckets(self) -> int:
        """The number of cells of one hash function."""
        return int(self.prime**self.digits)

    @property
    def hashed(self) -> bool:
        """Whether several keys may share a cell."""
        return self.buckets < self.k

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """The probabilities that a report supports the true key, and a given other one (over random functions)."""
        p, q = self.coin.probability, Fraction(self.width, self.prime)
        return p, q + (p - q) / self.buckets if self.hashed else q

    @property
    def share(self) -> Fraction:
        return Fraction(self.width, self.prime)

    @property
    def loss(self) -> float:
        """The ratio of the variance of a small frequency to the least possible, 4 E / (E - 1)**2, E = e**epsilon."""
        p, q = self.support
        ratio = self.coin.ratio
        return float(q * (1 - q) / (p - q) ** 2 / (4 * ratio / (ratio - 1) ** 2))

    @cached_property
    def report(self) -> np.dtype[Any]:
        """The dtype of a report."""
        return symbols(self.outcomes)

    @property
    def outcomes(self) -> int:
        """The number of different reports."""
        return self.hashes * self.buckets * self.prime

    # ---- the person ----

    def randomize(self, x: Records, *, rng: RandomSource = None, workers: int = 1) -> NDArray[Any]:
        """Return the reports of many people, or of one (with one dimension less).

        Parameters
        ----------
        x : array_like
            Private data, one key for each person; never modified.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the run reproducible, hence not private. Default: the secure generator.
        workers : int
            Number of threads, -1 for one per core; reports do not depend on it.
        """
        threads = checks.threads(workers)
        bit_generator(rng)  # reject invalid arguments before reading the data
        one = not hasattr(x, "__len__")
        values = containers.cell(x) if one else containers.numbers("x", x, dimensions=1)
        if values.ndim > 1:
            raise ValueError(f"x must be one record or a one-dimensional array, not of shape {values.shape}")
        out, flat = np.empty(values.size, self.report), values.reshape(-1)
        over_blocks(lambda source, block: self.fill(source, flat[block], out[block]), rng, flat.size, BLOCK, threads)
        return out.reshape(() if one else values.shape)

    def fill(self, source: Any, x: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the reports of the one-dimensional x to `out`."""
        drawn, height = np.empty(x.size, np.uint64), np.empty(x.size, np.uint32)
        _samplers.fill_uniform(source, self.hashes * self.buckets - 1, drawn)
        start = np.zeros(x.size, np.uint32)
        _randomize.fill_windows(source, start, self.width, self.prime, self.coin.threshold, height)
        keys = keys_of(x, self.k)
        _randomize.fill_hashed(drawn, height, keys, self.buckets, self.prime, self.digits, self.seed, self.hashed, out)

    def _product(self, a: NDArray[np.uint64], v: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the products of vectors of digits, modulo the prime."""
        prime = np.uint64(self.prime)
        total = np.zeros(np.broadcast(a, v).shape, np.uint64)
        for _ in range(self.digits):
            a, first = np.divmod(a, prime)
            v, second = np.divmod(v, prime)
            total += first * second
        return np.asarray(total % prime)

    def _bucket(self, hashes: NDArray[np.uint64], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the cells of keys under the functions of these numbers; the keys themselves if each has a cell."""
        if not self.hashed:
            return keys
        first, second, offset = (_mixed(3 * hashes + np.uint64(i), self.seed) for i in range(3))
        top = ((first + keys) * (second + (keys >> np.uint64(32))) + offset) >> np.uint64(32)
        return (top * np.uint64(self.buckets)) >> np.uint64(32)

    def law(self, x: ArrayLike) -> FiniteLaw:
        """Return the exact law of the report of one record. PRIVATE.

        Raises
        ------
        ValueError
            If there are more than 2**16 different reports.
        """
        if self.outcomes > LARGEST_LAW:
            raise ValueError(f"law supports at most 2**16 reports, not {self.outcomes}: use audit.distinguish")
        reports = np.arange(self.outcomes, dtype=self.report)
        near = self.supported(reports, keys_of(record(x), self.k))[:, 0]
        p, each_ = self.coin.probability, self.hashes * self.buckets
        inside, outside = p / (each_ * self.width), (1 - p) / (each_ * (self.prime - self.width))
        return FiniteLaw(reports, tuple(inside if s else outside for s in near.tolist()))

    # ---- the server ----

    def supported(self, reports: NDArray[Any], keys: ArrayLike) -> NDArray[np.bool_]:
        """Mask of shape (n, len(keys)): the keys that each report supports."""
        drawn, offset = np.divmod(reports.astype(np.uint64), np.uint64(self.prime))
        hashes, vectors = np.divmod(drawn, np.uint64(self.buckets))
        cells = self._bucket(hashes[:, None], _checked_keys(keys, self.k)[None, :])
        heights = self._product(vectors[:, None], cells) + offset[:, None]
        return np.asarray(heights % np.uint64(self.prime) < self.width)

    def aggregate(self, reports: NDArray[Any], *, workers: int = 1) -> Aggregate:
        """Count the reports; adding aggregates gives the aggregate of all their reports.

        Parameters
        ----------
        reports : ndarray
            As `randomize` returns them.
        workers : int
            Number of threads; the result does not depend on it.

        Returns
        -------
        Aggregate
            The sums are the numbers of reports that support each cell of each hash function.

        Raises
        ------
        TypeError, ValueError
            If the dtype or shape is not that of the arrays that `randomize` returns.
        """
        threads, rows = checks.threads(workers), self._rows(reports)
        return self.counted(rows, np.zeros(self.hashes * self.buckets, np.int64), threads)

    def counted(self, reports: NDArray[Any], sums: NDArray[np.int64], threads: int) -> Aggregate:
        """Return the aggregate of contiguous reports, counted in zeros of the length of its sums."""
        table, n = sums.reshape(self.hashes, self.buckets), 0
        for first in range(0, reports.size, _AT_ONCE):
            n += self._add(reports[first : first + _AT_ONCE], table, threads)
        return Aggregate(n, sums, int(reports.size) - n, parameters=self.digest())

    def _add(self, reports: NDArray[Any], sums: NDArray[np.int64], threads: int) -> int:
        """Add the supports that reports give to the cells of their functions, and return the number of valid reports;
        other rows of `sums` are not touched.
        """
        ends, order = np.empty(self.hashes + 1, np.int64), np.empty_like(reports)
        n = _randomize.group_functions(reports, self.buckets * self.prime, ends, order)
        present = np.flatnonzero(np.diff(ends))
        ends = np.append(ends[present], n)
        kind, lanes = (self.prime, self.digits, self.width), _LANES if self.prime < _MANY else 1
        together = present.size * self.buckets * self.prime * ((self.digits - 1) * self.prime + 1)  # additions
        few = _ADDITIONS * n * self.width * self.buckets // self.prime < together
        share = lanes * max(1, -(-present.size // (lanes * threads)))

        def add(first: int) -> None:
            some, own = ends[first : first + share + 1], present[first : first + share]
            if few:
                _randomize.add_reports(order[some[0] : some[-1]], *kind, sums)
            elif self.hashes == 1:
                _randomize.add_function(order[:n], *kind, sums[0])
            else:
                _randomize.add_functions(order, some, own, *kind, lanes, sums)

        each(add, range(0, present.size, share), threads)
        return n

    def estimate(
        self, reports: NDArray[Any] | Aggregate, keys: ArrayLike | None = None, *, project: bool | str = False
    ) -> NDArray[np.float64]:
        """Unbiased estimates of the frequencies of keys; they may be negative.

        Refused reports are left out; ``aggregate(reports).refused`` is their number.

        Parameters
        ----------
        reports : ndarray or Aggregate
        keys : array_like of integers, optional
            The keys of interest, below k. Default: all, if k is at most 2**24.
        project : bool or {"l2"}
            Return the nearest frequencies that are nonnegative and sum to at most 1 instead. True is "l2".

        Raises
        ------
        TypeError, ValueError
            If `project` is not one of these, there is no report, the aggregate is not of this randomiser, or `keys` is
            missing and k is above 2**24.
        """
        rule = rule_of(project, ("l2",))
        total = self.own(reports) if isinstance(reports, Aggregate) else self.aggregate(reports)
        if total.sums.shape != (self.hashes * self.buckets,) or total.sums.dtype != np.int64:
            raise ValueError(f"the aggregate must hold {self.hashes * self.buckets} counts, not {total.sums.size}")
        if total.n < 1:
            raise ValueError("an estimate needs at least one report that is not refused")
        if keys is None:
            if self.k > _ALL:
                raise ValueError(f"keys must be given for k above 2**24, not {self.k}")
            keys = np.arange(self.k)
        wanted = _checked_keys(keys, self.k)
        if self.hashed:
            counts = np.zeros(wanted.size, np.int64)
            _randomize.add_cells(total.sums.reshape(self.hashes, self.buckets), wanted, self.seed, counts)
        else:
            counts = total.sums[wanted]
        p, q = self.support
        frequencies = (counts / total.n - float(q)) / float(p - q)
        return subsimplex(frequencies) if rule else frequencies

    def collisions(self, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Means of the estimates of keys in terms of their frequencies: a matrix, symmetric, 1 on its diagonal.

        The entry of two keys is the share of hash functions by which they share a cell, less the share that `estimate`
        subtracts. Multiplying estimates by the inverse removes the error from collisions among these keys.
        """
        if not self.hashed:
            return np.eye(keys.size)
        shared = np.zeros((keys.size, keys.size))
        for j in range(self.hashes):
            cells = self._bucket(np.array(j, np.uint64), keys)
            shared += cells[:, None] == cells[None, :]
        return (shared / self.hashes - 1 / self.buckets) / (1 - 1 / self.buckets)

    def standard_error(self, n: SupportsIndex, frequency: float = 0.0) -> float:
        """Return the standard error of an estimate from n reports for a key of this frequency, from public numbers.

        It leaves out the collisions of hashed keys, see `cells`.
        """
        n, f = checks.whole("n", n, least=1), checks.fraction("frequency", frequency)
        p, q = map(float, self.support)
        return math.sqrt((f * p * (1 - p) + (1 - f) * q * (1 - q)) / n) / (p - q)

    def error(self, n: SupportsIndex, confidence: float = 0.95) -> float:
        """Half-width of a confidence interval from n reports, for the frequency of one given key, at the worst one.

        A normal approximation, from public numbers only.
        """
        tail = (1 - checks.between("confidence", confidence, 0, 1)) / 2
        return float(-scipy.special.ndtri(tail)) * max(self.standard_error(n, 0.0), self.standard_error(n, 1.0))


def keys_of(x: NDArray[Any], k: int) -> NDArray[np.uint64]:
    """Keys of records of any dtype; 0 for a record that is not one of 0..k - 1."""
    keys = np.empty(x.size, np.uint64)
    _randomize.fill_keys(widened(x), k - 1, keys)
    return keys


def _checked_keys(keys: ArrayLike, k: int) -> NDArray[np.uint64]:
    """Public keys, all below k."""
    array = np.asarray(keys)
    if array.dtype.kind == "f" and isinstance(keys, (list, tuple)):  # NumPy's dtype for integers around 2**63
        array = np.array([checks.whole("keys", key) for key in keys], np.uint64)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError("keys must be a one-dimensional array of integers")
    if array.size and (int(array.min()) < 0 or int(array.max()) >= k):
        raise ValueError(f"keys must be in 0..{k - 1}")
    return array.astype(np.uint64)


def least_digits(k: int, prime: int) -> int:
    """Return the number of digits of the keys 0..k - 1."""
    digits = 1
    while prime**digits < k:
        digits += 1
    return digits


def _mixed(number: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Public random words, by SplitMix64."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))
