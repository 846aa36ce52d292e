"""Which of k categories: randomised response and its better relatives, all of one exact coin."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks, _containers
from dpfast._kernels import _bits, _randomize
from dpfast.coin import Coin, coin
from dpfast.grid import Grid
from dpfast.local.randomizer import Aggregate
from dpfast.local.scalar import FiniteLaw, ScalarRandomizer, record, symbols, unpadded

PRIME = 2**32 - 5
_MOST_CATEGORIES = 2**31
_LARGEST_LAW = 2**16


@dataclass(frozen=True)
class Binary(ScalarRandomizer):
    """A yes or no from each person, by Warner's randomised response.

    The truth is sent with probability ``e^epsilon / (1 + e^epsilon)``, else the opposite. Pure epsilon-local
    differential privacy.

    Parameters
    ----------
    epsilon : float
        At least 2**-40; rounded down to a double.

    Raises
    ------
    TypeError, ValueError
        Before any data are looked at.

    Notes
    -----
    A record counts as 1 if it is greater than 0, else as 0, NaN and missing ones too. A report is one byte, 0 or 1,
    others are refused; the sums of an aggregate are the numbers of zeros and ones.

    Privacy: the coin is exact, its probability rounded towards privacy, and estimates divide by what it really is
    (docs/proofs/local-categories.md). Cost: two random words for a report. The time does not depend on the records, up
    to what the processor makes of them.

    References
    ----------
    Warner 1965; Duchi, Jordan and Wainwright 2018, section 4; mechanisms-b 1.1 of the specification.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> smokes = np.random.default_rng(0).random(100_000) < 0.3
    >>> survey = local.Binary(epsilon=1.0)
    >>> estimate = survey.estimate(survey.randomize(smokes))
    >>> bool(abs(estimate - smokes.mean()) < 0.05)
    True
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _checks.positive_down("epsilon", self.epsilon))
        coin(self.epsilon)

    @property
    def coin(self) -> Coin:
        """The coin: "keep" sends the truth."""
        return coin(self.epsilon)

    @property
    def report(self) -> np.dtype[Any]:
        return np.dtype(np.uint8)

    @property
    def grid(self) -> Grid:
        """The records: 0 and 1."""
        return Grid(0, 1, step=1.0)

    def _fill(self, source: BitGenerator, x: NDArray[Any], out: NDArray[Any]) -> None:
        _randomize.fill_windows(source, self._codes(x), 1, 2, self.coin.threshold, out)

    @staticmethod
    def _codes(x: NDArray[Any]) -> NDArray[np.uint32]:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return (x > 0).astype(np.uint32)

    def _valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(reports < 2)

    def _sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        ones = np.count_nonzero(reports)
        return np.array([reports.size - ones, ones], np.int64)

    def law(self, x: ArrayLike) -> FiniteLaw:
        """The exact law of the report of one record. PRIVATE."""
        keep = self.coin.probability
        zero = keep if self._codes(record(x))[0] == 0 else 1 - keep
        return FiniteLaw(np.arange(2, dtype=np.uint8), (zero, 1 - zero))

    def _values(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        p = self.coin.probability
        ends = np.array([float((p - 1) / (2 * p - 1)), float(p / (2 * p - 1))])
        return np.asarray(ends[reports])

    def estimate(self, reports: NDArray[Any] | Aggregate) -> float:
        """Unbiased estimate of the share of ones, without reports that are refused; may lie outside [0, 1]."""
        total = self._aggregated(reports, 2)
        p = self.coin.probability
        return float((Fraction(int(total.sums[1]), total.n) - (1 - p)) / (2 * p - 1))

    def variance(self, x: ArrayLike | None = None) -> Any:
        p = self.coin.probability
        constant = float(p * (1 - p) / (2 * p - 1) ** 2)
        return constant if x is None else np.full(np.shape(x), constant)[()]


@dataclass(frozen=True)
class Categorical(ScalarRandomizer):
    """Which of k categories each person is in: frequencies without anyone telling.

    Pure epsilon-local differential privacy.

    Parameters
    ----------
    k : int
        Number of categories, 2..2**31; records are the integers 0..k - 1.
    epsilon : float
        At least 2**-40; rounded down to a double.
    method : {"auto", "k-rr", "subset", "oue", "olh", "hadamard"}
        "auto" is the method of least total variance, the first of these on a tie, a function of k and epsilon only.
        That is "subset", or "k-rr" where both are the same. For many categories others are nearly as accurate and
        cheaper; see Notes.

    Attributes
    ----------
    method : str
        The method in use, never "auto".

    Raises
    ------
    TypeError, ValueError
        Before any data are looked at.

    Notes
    -----
    A record that is not one of 0..k - 1 (NaN, a fraction, out of range) counts as category 0.

    With E = e^epsilon, a report is

    - "k-rr": one category, the true one with E times the probability of any other. 1, 2 or 4 bytes.
    - "subset": a set of about k / (E + 1) categories, each with the true one in it E times as likely as one without it.
      k bits. As many random words as the set has members.
    - "oue": k bits, the true one fair, the others 1 with probability 1 / (E + 1). 1/8 random word for each.
    - "olh": a line over the field of 2**32 - 5 elements that is below an edge at the true category, E times as likely
      as one that is not; another category is below it with probability ``edge / (2**32 - 5)`` exactly. 8 bytes. This is
      local hashing with hash functions that are pairwise independent, so that estimates are unbiased without an
      assumption, and with the best number of cells, which is not whole: at least the accuracy of "oue". Counting takes
      n k steps.
    - "hadamard": a random row of the Hadamard matrix and its entry at the true category, flipped or not. 1 to 4 bytes.
      Counting takes one fast transform. Good for small epsilon.

    Packed bits are words of 64, the first category the lowest bit; as bytes, ceil(k / 8) for a report. The sums of an
    aggregate are how many reports support each category. Refused are symbols out of range, bits beyond the last
    category that are not 0, for "subset" sets of another size, for "olh" numbers that are no elements of the field.

    Privacy: one exact coin for each report, its probability rounded towards privacy; what follows is uniform whatever
    the record (docs/proofs/local-categories.md). Estimates divide by the probabilities that the coin really has.

    References
    ----------
    Wang, Blocki, Li and Jha 2017 (OUE, OLH); Ye and Barg 2018 (subset selection); Acharya, Sun and Zhang 2019 and
    Bassily et al. 2017 (Hadamard); Feldman et al. 2022 (lines over a field); mechanisms-b 4.4 of the specification.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> browser = np.random.default_rng(0).integers(0, 10, 100_000) // 2
    >>> survey = local.Categorical(5, epsilon=1.0)
    >>> survey.method
    'k-rr'
    >>> frequencies = survey.estimate(survey.randomize(browser))
    >>> bool(np.abs(frequencies - 0.2).max() < 0.05)
    True
    """

    k: int
    epsilon: float
    method: str = "auto"

    def __post_init__(self) -> None:
        k = _checks.whole("k", self.k, least=2)
        if k > _MOST_CATEGORIES:
            raise ValueError(f"k must be at most 2**31, not {k}")
        epsilon = _checks.positive_down("epsilon", self.epsilon)
        coin(epsilon)
        _checks.choice("method", self.method, ("auto", *_METHODS))
        method = _least_variance(k, epsilon) if self.method == "auto" else self.method
        _method(method, k, epsilon)
        for name, value in (("k", k), ("epsilon", epsilon), ("method", method)):
            object.__setattr__(self, name, value)

    @property
    def _method(self) -> _Method:
        return _method(self.method, self.k, self.epsilon)

    @property
    def coin(self) -> Coin:
        """The coin that decides what is sent."""
        return self._method.coin

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """The probabilities that a report supports the true category, and any other one; exact."""
        return self._method.p, self._method.q

    @property
    def report(self) -> np.dtype[Any]:
        return self._method.report

    @property
    def grid(self) -> Grid:
        """The records: 0..k - 1."""
        return Grid(0, self.k - 1, step=1.0)

    @property
    def total_variance(self) -> float:
        """Sum over all categories of the variance of a decoded report; the same at every record."""
        return float(self._method.total_variance)

    def _fill(self, source: BitGenerator, x: NDArray[Any], out: NDArray[Any]) -> None:
        self._method.fill(source, self._codes(x), out)

    def _codes(self, x: NDArray[Any]) -> NDArray[np.uint32]:
        """The categories of records of any dtype, 0 for what is none."""
        if x.dtype.kind == "f":
            with np.errstate(invalid="ignore"):  # a signalling NaN
                x = x.astype(np.float64, copy=False) if x.dtype.itemsize < 8 else x  # where k is a number, too
                inside = (x >= 0) & (x < self.k) & (x == np.floor(x))
                return np.where(inside, x, 0).astype(np.uint32)
        whole = x.astype(np.int64 if x.dtype.kind == "i" else np.uint64, copy=False).view(np.uint64)
        return np.where(whole < self.k, whole, 0).astype(np.uint32)

    def _valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return self._method.valid(reports)

    def _sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return self._method.sums(reports)

    def law(self, x: ArrayLike) -> FiniteLaw:
        """The exact law of the report of one record. PRIVATE.

        Raises
        ------
        ValueError
            More than 2**16 different reports, as there always are for "olh".
        """
        if self._method.outcomes > _LARGEST_LAW:
            raise ValueError(f"a law of more than 2**16 reports is not written out, here {self._method.outcomes}")
        return self._method.law(int(self._codes(record(x))[0]))

    def decode(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        """For each report an unbiased estimate of its record as a vector: 1 in its category, 0 elsewhere.

        A report that is refused is a vector of NaN. n times k numbers: for frequencies use `estimate`, which needs no
        memory.
        """
        return super().decode(reports)

    def _values(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        p, q = self.support
        values = np.array([float(-q / (p - q)), float((1 - q) / (p - q))])
        return np.asarray(values[self._method.supported(reports).astype(np.intp)])

    def estimate(self, reports: NDArray[Any] | Aggregate) -> NDArray[np.float64]:
        """Unbiased estimates of the k frequencies; they may be negative and need not sum to 1.

        Reports that are refused are left out; ``aggregate(reports).refused`` is their number.
        """
        total = self._aggregated(reports, self.k)
        p, q = self.support
        return (total.sums / total.n - float(q)) / float(p - q)

    def variance(self, x: ArrayLike | None = None) -> Any:
        """Variance of the entries of a decoded report.

        Of the k entries at one record x, or for an array of records one row each; by default the largest one.
        """
        own, other = self._method.variances
        if x is None:
            return float(max(own, other))
        values = _containers.numbers("x", x if hasattr(x, "__len__") else [x])
        rows = np.full((values.size, self.k), float(other))
        rows[np.arange(values.size), self._codes(values.reshape(-1))] = float(own)
        return rows.reshape((*(values.shape if hasattr(x, "__len__") else ()), self.k))

    def to_bytes(self, reports: NDArray[Any]) -> bytes:
        """The reports one after the other.

        Symbols, rows and lines (slope, then offset) little-endian; packed bits in ceil(k / 8) bytes.
        """
        if not self._method.packed:
            return super().to_bytes(reports)
        rows = self._rows(reports).astype("<u8", copy=False)
        return rows.view(np.uint8)[:, : -(-self.k // 8)].tobytes()

    def from_bytes(self, data: bytes) -> NDArray[Any]:
        """The reports that `to_bytes` wrote, one axis of them.

        Raises
        ------
        ValueError
            Bytes of another length.
        """
        if not self._method.packed:
            return super().from_bytes(data)
        each = -(-self.k // 8)
        if len(data) % each:
            raise ValueError(f"data must have {each} bytes for each report, not {len(data)} in all")
        rows = np.zeros((len(data) // each, 8 * self.report.shape[0]), np.uint8)
        rows[:, :each] = np.frombuffer(data, np.uint8).reshape(-1, each)
        return rows.view("<u8").astype(np.uint64)


class _Method(ABC):
    """How the record becomes a report, and which categories a report supports.

    Every category but the true one is supported with the same probability q, the true one with p > q.
    """

    coin: Coin
    p: Fraction
    q: Fraction
    report: np.dtype[Any]
    outcomes: int
    packed = False

    def __init__(self, k: int) -> None:
        self.k = k

    @property
    def variances(self) -> tuple[Fraction, Fraction]:
        """Of the decoded entry of the true category, and of any other."""
        return _variances(self.p, self.q)

    @property
    def total_variance(self) -> Fraction:
        return _total_variance(self.k, self.p, self.q)

    @abstractmethod
    def fill(self, source: BitGenerator, codes: NDArray[np.uint32], out: NDArray[Any]) -> None: ...

    @abstractmethod
    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of these, of the right shape and dtype, can be sent."""

    @abstractmethod
    def sums(self, reports: NDArray[Any]) -> NDArray[np.int64]: ...

    @abstractmethod
    def supported(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Shape (n, k): which categories each report supports."""

    @abstractmethod
    def law(self, code: int) -> FiniteLaw: ...


def _variances(p: Fraction, q: Fraction) -> tuple[Fraction, Fraction]:
    return p * (1 - p) / (p - q) ** 2, q * (1 - q) / (p - q) ** 2


def _total_variance(k: int, p: Fraction, q: Fraction) -> Fraction:
    own, other = _variances(p, q)
    return own + (k - 1) * other


class _Response(_Method):
    """k-ary randomised response."""

    def __init__(self, k: int, epsilon: float) -> None:
        super().__init__(k)
        self.coin = coin(epsilon, Fraction(1, k - 1))
        self.p = self.coin.probability
        self.q = (1 - self.p) / (k - 1)
        self.report, self.outcomes = symbols(k), k

    def fill(self, source: BitGenerator, codes: NDArray[np.uint32], out: NDArray[Any]) -> None:
        _randomize.fill_windows(source, codes, 1, self.k, self.coin.threshold, out)

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(reports < self.k)

    def sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(reports, minlength=self.k)

    def supported(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(reports[:, None] == np.arange(self.k))

    def law(self, code: int) -> FiniteLaw:
        return FiniteLaw(
            np.arange(self.k, dtype=self.report), tuple(self.p if z == code else self.q for z in range(self.k))
        )


class _Hadamard(_Method):
    """One bit of a random row of the Hadamard matrix, whose entry (j, x) is -1 to the number of digits in j & x."""

    def __init__(self, k: int, epsilon: float) -> None:
        super().__init__(k)
        self.coin = coin(epsilon)
        self.p, self.q = self.coin.probability, Fraction(1, 2)
        self.order = 1 << (k - 1).bit_length()
        self.report, self.outcomes = symbols(2 * self.order), 2 * self.order

    def fill(self, source: BitGenerator, codes: NDArray[np.uint32], out: NDArray[Any]) -> None:
        _randomize.fill_rows(source, codes, self.order - 1, self.coin.threshold, out)

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(reports < 2 * self.order)

    def sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Twice a category's count is n plus the transform, at it, of (reports of bit 0) - (of bit 1) in each row."""
        pairs = np.bincount(reports, minlength=2 * self.order).reshape(-1, 2)
        signs = pairs[:, 0] - pairs[:, 1]
        half = 1
        while half < self.order:
            blocks = signs.reshape(-1, 2, half)
            signs = np.stack([blocks[:, 0] + blocks[:, 1], blocks[:, 0] - blocks[:, 1]], axis=1)
            half *= 2
        return np.asarray((len(reports) + signs.reshape(-1)[: self.k]) // 2)

    def supported(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(
            _parity((reports >> 1)[:, None] & np.arange(self.k, dtype=reports.dtype)) == (reports & 1)[:, None]
        )

    def law(self, code: int) -> FiniteLaw:
        outcomes = np.arange(2 * self.order, dtype=self.report)
        kept = self.supported(outcomes)[:, code]
        return FiniteLaw(outcomes, tuple((self.p if keep else 1 - self.p) / self.order for keep in kept))


class _Packed(_Method):
    """Reports of k bits."""

    packed = True

    def __init__(self, k: int) -> None:
        super().__init__(k)
        self.report = np.dtype((np.uint64, (-(-k // 64),)))

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return unpadded(reports, self.k)

    def sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        counts = np.zeros(64 * reports.shape[1], np.int64)
        _bits.count_columns(reports, counts)
        return counts[: self.k]

    def supported(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        octets = reports.astype("<u8", copy=False).view(np.uint8)
        return np.unpackbits(octets, axis=1, count=self.k, bitorder="little").astype(np.bool_)


class _Unary(_Packed):
    """Optimised unary encoding. The ratio of one report is largest, (1 - q) / q, where x is in it and x' is not."""

    def __init__(self, k: int, epsilon: float) -> None:
        super().__init__(k)
        self.coin = coin(epsilon)
        self.p, self.q = Fraction(1, 2), 1 - self.coin.probability
        self.outcomes = 2 ** min(k, 64)

    def fill(self, source: BitGenerator, codes: NDArray[np.uint32], out: NDArray[Any]) -> None:
        _randomize.fill_unary(source, codes, 2**64 - self.coin.threshold, self.k, out)

    def law(self, code: int) -> FiniteLaw:
        def probability(z: int) -> Fraction:
            ones = (z & ~(1 << code)).bit_count()
            return self.p * self.q**ones * (1 - self.q) ** (self.k - 1 - ones)

        every = np.arange(self.outcomes, dtype=np.uint64)
        return FiniteLaw(every[:, None], tuple(map(probability, range(self.outcomes))))


class _Subset(_Packed):
    """A set of `width` categories, by the coin with the true one in it or not."""

    def __init__(self, k: int, epsilon: float) -> None:
        super().__init__(k)
        best = k * (1 - coin(epsilon).probability)
        options = {min(max(width, 1), k - 1) for width in (math.floor(best), math.ceil(best))}
        coins = {width: coin(epsilon, Fraction(width, k - width)) for width in sorted(options)}
        self.width = min(coins, key=lambda width: self._spread(coins[width].probability, width))
        self.coin = coins[self.width]
        self.p = self.coin.probability
        self.q = self._other(self.p, self.width)
        self.outcomes = math.comb(k, min(self.width, 64)) if k <= 64 else _LARGEST_LAW + 1

    def _other(self, p: Fraction, width: int) -> Fraction:
        """The probability that a given other category is in the set."""
        return (width - p) / (self.k - 1)

    def _spread(self, p: Fraction, width: int) -> Fraction:
        return _total_variance(self.k, p, self._other(p, width))

    def fill(self, source: BitGenerator, codes: NDArray[np.uint32], out: NDArray[Any]) -> None:
        _randomize.fill_subsets(source, codes, self.width, self.k, self.coin.threshold, out)

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        right = np.empty(len(reports), np.bool_)
        _bits.have_ones(reports, self.k, self.width, right)
        return right

    def law(self, code: int) -> FiniteLaw:
        inside = self.p / math.comb(self.k - 1, self.width - 1)
        outside = (1 - self.p) / math.comb(self.k - 1, self.width)
        sets = sorted(sum(1 << v for v in members) for members in itertools.combinations(range(self.k), self.width))
        return FiniteLaw(
            np.array(sets, np.uint64)[:, None], tuple(inside if members >> code & 1 else outside for members in sets)
        )


def _best_edge(k: int, ratio: Fraction) -> int:
    """The edge of least total variance: q = 1 / (1 + r), r^2 = (c + E^2) / (c + 1), c = E / (k - 1), E = `ratio`.

    In integers, so the same for client and server. Many categories: q = 1 / (1 + E), and half of the reports support
    the truth.
    """
    c = ratio / (k - 1)
    square = (c + ratio**2) / (c + 1)
    root = math.isqrt((square.numerator << 128) // square.denominator)
    return max(1, (PRIME << 64) // ((1 << 64) + root))


class _Lines(_Method):
    """Lines (slope, offset) over the field of PRIME elements: z supports v if slope v + offset < edge."""

    def __init__(self, k: int, epsilon: float) -> None:
        super().__init__(k)
        self.edge = _best_edge(k, coin(epsilon).ratio)
        self.coin = coin(epsilon, Fraction(self.edge, PRIME - self.edge))
        self.p, self.q = self.coin.probability, Fraction(self.edge, PRIME)
        self.report, self.outcomes = np.dtype((np.uint32, (2,))), PRIME**2

    def fill(self, source: BitGenerator, codes: NDArray[np.uint32], out: NDArray[Any]) -> None:
        _randomize.fill_lines(source, codes, self.edge, self.coin.threshold, out)

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray((reports[:, 0] < PRIME) & (reports[:, 1] < PRIME))

    def sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        total = np.zeros(self.k, np.int64)
        _randomize.count_lines(reports, self.edge, total)
        return total

    def supported(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        slope, offset = reports.astype(np.uint64).T
        return np.asarray((slope[:, None] * np.arange(self.k, dtype=np.uint64) + offset[:, None]) % PRIME < self.edge)

    def law(self, code: int) -> FiniteLaw:
        raise NotImplementedError  # `outcomes` forbids it


def _parity(words: NDArray[Any]) -> NDArray[Any]:
    """The parity of the binary digits of each number."""
    bits = words.dtype.itemsize * 8
    while (bits := bits // 2) > 0:
        words = words ^ (words >> words.dtype.type(bits))
    return np.asarray(words & words.dtype.type(1))


_METHODS: dict[str, Callable[[int, float], _Method]] = {
    "k-rr": _Response,
    "subset": _Subset,
    "oue": _Unary,
    "olh": _Lines,
    "hadamard": _Hadamard,
}


@lru_cache(maxsize=256)
def _method(name: str, k: int, epsilon: float) -> _Method:
    return _METHODS[name](k, epsilon)


@lru_cache(maxsize=256)
def _least_variance(k: int, epsilon: float) -> str:
    """The name of the method with the least total variance; in rationals, so the same on every machine."""
    spreads: dict[str, Fraction] = {}
    for name in _METHODS:
        try:
            spreads[name] = _method(name, k, epsilon).total_variance
        except ValueError:  # odds that leave too little of epsilon: never those of "oue"
            continue
    return min(spreads, key=lambda name: spreads[name])
