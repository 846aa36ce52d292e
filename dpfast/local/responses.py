"""The methods of `Categorical`: how a category becomes a report."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import NDArray

from dpfast._kernels import _bits, _randomize
from dpfast.core.coin import Coin, coin
from dpfast.local.scalar import FiniteLaw, symbols, unpadded

PRIME = 2**32 - 5
LARGEST_LAW = 2**16


class ResponseMethod(ABC):
    """Rule that turns a record into a report, and defines the categories that a report supports.

    A report supports the true category with probability p, and any other category with probability q < p.
    """

    coin: Coin
    p: Fraction
    q: Fraction
    report: np.dtype[Any]
    outcomes: int
    packed = False
    share = Fraction(1, 2)  # see `LocalMechanism.share`

    def __init__(self, k: int) -> None:
        self.k = k

    @property
    def variances(self) -> tuple[Fraction, Fraction]:
        """Variances of the decoded entry of the true category, and of any other."""
        return _variances(self.p, self.q)

    @cached_property
    def total_variance(self) -> Fraction:
        return _total_variance(self.k, self.p, self.q)

    @abstractmethod
    def fill(self, source: BitGenerator, codes: NDArray[np.uint32], out: NDArray[Any]) -> None: ...

    @abstractmethod
    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Mask of the reports that can be sent; shape and dtype are already checked."""

    @property
    def counters(self) -> int:
        """The number of counters of `add`."""
        return self.k

    def counts(self, n: int) -> NDArray[Any]:
        """Counters of `add`, zero, for n reports in all."""
        return np.zeros(self.counters, np.int64)

    @abstractmethod
    def add(self, reports: NDArray[Any], counts: NDArray[Any]) -> int:
        """Add the valid reports to the counters; return their number."""

    def sums(self, counts: NDArray[Any], n: int) -> NDArray[np.int64]:
        """For each category the number of reports that support it, from the counters of n valid reports."""
        return counts[: self.k].astype(np.int64, copy=False)

    @abstractmethod
    def supported(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Mask of shape (n, k): the categories that each report supports."""

    @abstractmethod
    def law(self, code: int) -> FiniteLaw: ...


def _variances(p: Fraction, q: Fraction) -> tuple[Fraction, Fraction]:
    return p * (1 - p) / (p - q) ** 2, q * (1 - q) / (p - q) ** 2


def _total_variance(k: int, p: Fraction, q: Fraction) -> Fraction:
    own, other = _variances(p, q)
    return own + (k - 1) * other


class _Symbols(ResponseMethod):
    """Reports that are symbols, each of which has a counter."""

    def counts(self, n: int) -> NDArray[Any]:
        """Of 32 bits where they suffice: a cache holds more of them."""
        return np.zeros(self.counters, np.uint32 if n < 2**32 else np.int64)

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(reports < self.counters)

    def add(self, reports: NDArray[Any], counts: NDArray[Any]) -> int:
        return _randomize.count_symbols(reports, counts)


class _Response(_Symbols):
    """k-ary randomised response."""

    def __init__(self, k: int, epsilon: float) -> None:
        super().__init__(k)
        self.coin = coin(epsilon, Fraction(1, k - 1))
        self.p, self.share = self.coin.probability, Fraction(1, k)
        self.q = (1 - self.p) / (k - 1)
        self.report, self.outcomes = symbols(k), k

    def fill(self, source: BitGenerator, codes: NDArray[np.uint32], out: NDArray[Any]) -> None:
        _randomize.fill_windows(source, codes, 1, self.k, self.coin.threshold, out)

    def supported(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(reports[:, None] == np.arange(self.k))

    def law(self, code: int) -> FiniteLaw:
        return FiniteLaw(
            np.arange(self.k, dtype=self.report), tuple(self.p if z == code else self.q for z in range(self.k))
        )


class _Hadamard(_Symbols):
    """One bit of a random row of the Hadamard matrix, whose entry (j, x) is -1 to the number of digits in j & x."""

    def __init__(self, k: int, epsilon: float) -> None:
        super().__init__(k)
        self.coin = coin(epsilon)
        self.p, self.q = self.coin.probability, Fraction(1, 2)
        self.order = 1 << (k - 1).bit_length()
        self.report, self.outcomes = symbols(2 * self.order), 2 * self.order

    def fill(self, source: BitGenerator, codes: NDArray[np.uint32], out: NDArray[Any]) -> None:
        _randomize.fill_rows(source, codes, self.order - 1, self.coin.threshold, out)

    @property
    def counters(self) -> int:
        return 2 * self.order

    def sums(self, counts: NDArray[Any], n: int) -> NDArray[np.int64]:
        """Twice a category's count is n plus the transform, at it, of (reports of bit 0) - (of bit 1) in each row."""
        signs = counts[::2].astype(np.int64)
        signs -= counts[1::2]
        _randomize.transform(signs)
        sums = signs[: self.k]
        sums += n
        sums >>= 1
        return sums

    def supported(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(
            _parity((reports >> 1)[:, None] & np.arange(self.k, dtype=reports.dtype)) == (reports & 1)[:, None]
        )

    def law(self, code: int) -> FiniteLaw:
        outcomes = np.arange(2 * self.order, dtype=self.report)
        kept = self.supported(outcomes)[:, code]
        return FiniteLaw(outcomes, tuple((self.p if keep else 1 - self.p) / self.order for keep in kept))


class _Packed(ResponseMethod):
    """Reports of k bits."""

    packed = True

    def __init__(self, k: int) -> None:
        super().__init__(k)
        self.report = np.dtype((np.uint64, (-(-k // 64),)))

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return unpadded(reports, self.k)

    @property
    def counters(self) -> int:
        return 64 * -(-self.k // 64)

    def add(self, reports: NDArray[Any], counts: NDArray[Any]) -> int:
        """All reports are counted in one pass, and those that are refused, counted again, are taken away."""
        refused = reports[~self._count(reports, counts)]
        if len(refused):
            surplus = np.zeros_like(counts)
            _bits.count_columns(refused, surplus)
            counts -= surplus
        return len(reports) - len(refused)

    def _count(self, reports: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Add all reports to the counters; return `valid` of them."""
        _bits.count_columns(reports, counts)
        return self.valid(reports)

    def supported(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        octets = reports.astype("<u8", copy=False).view(np.uint8)
        return np.unpackbits(octets, axis=1, count=self.k, bitorder="little").astype(np.bool_)


class _Unary(_Packed):
    """Optimised unary encoding. A report with x but not x' has the largest likelihood ratio, (1 - q) / q."""

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
    """A set of `width` categories; the coin decides whether it contains the true one."""

    def __init__(self, k: int, epsilon: float) -> None:
        super().__init__(k)
        best = k * (1 - coin(epsilon).probability)
        options = {min(max(width, 1), k - 1) for width in (math.floor(best), math.ceil(best))}
        coins = {width: coin(epsilon, Fraction(width, k - width)) for width in sorted(options)}
        self.width = min(coins, key=lambda width: self._spread(coins[width].probability, width))
        self.coin = coins[self.width]
        self.p = self.coin.probability
        self.q, self.share = self._other(self.p, self.width), Fraction(self.width, k)
        self.outcomes = math.comb(k, min(self.width, 64)) if k <= 64 else LARGEST_LAW + 1

    def _other(self, p: Fraction, width: int) -> Fraction:
        """Return the probability that a given other category is in the set."""
        return (width - p) / (self.k - 1)

    def _spread(self, p: Fraction, width: int) -> Fraction:
        return _total_variance(self.k, p, self._other(p, width))

    def fill(self, source: BitGenerator, codes: NDArray[np.uint32], out: NDArray[Any]) -> None:
        large = self.width > 16 + self.k // 16  # a member takes 6 ns, and 64 categories of a large set about 17 ns
        fill = _randomize.fill_large_subsets if large else _randomize.fill_subsets
        fill(source, codes, self.width, self.k, self.coin.threshold, out)

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        right = np.empty(len(reports), np.bool_)
        _bits.have_ones(reports, self.k, self.width, right)
        return right

    def _count(self, reports: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        if self.k <= 128:  # one word or two: `valid` is faster
            return super()._count(reports, counts)
        ones = np.zeros(len(reports), np.int64)
        _bits.count_columns(reports, counts, ones)
        return np.asarray((ones == self.width) & unpadded(reports, self.k))

    def law(self, code: int) -> FiniteLaw:
        inside = self.p / math.comb(self.k - 1, self.width - 1)
        outside = (1 - self.p) / math.comb(self.k - 1, self.width)
        sets = sorted(sum(1 << v for v in members) for members in itertools.combinations(range(self.k), self.width))
        return FiniteLaw(
            np.array(sets, np.uint64)[:, None], tuple(inside if members >> code & 1 else outside for members in sets)
        )


def _best_edge(k: int, ratio: Fraction) -> int:
    """Return the edge with least total variance: q = 1 / (1 + r), r^2 = (c + E^2) / (c + 1), c = E / (k - 1), E =
    `ratio`.

    Computed in integers, so client and server agree. For many categories, q tends to 1 / (1 + E), and half of the
    reports support the true category.
    """
    c = ratio / (k - 1)
    square = (c + ratio**2) / (c + 1)
    root = math.isqrt((square.numerator << 128) // square.denominator)
    return max(1, (PRIME << 64) // ((1 << 64) + root))


class _Lines(ResponseMethod):
    """Lines (slope, offset) over the field of PRIME elements: z supports v if slope v + offset < edge."""

    def __init__(self, k: int, epsilon: float) -> None:
        super().__init__(k)
        self.edge = _best_edge(k, coin(epsilon).ratio)
        self.coin = coin(epsilon, Fraction(self.edge, PRIME - self.edge))
        self.share = Fraction(self.edge, PRIME)
        self.p, self.q = self.coin.probability, self.share
        self.report, self.outcomes = np.dtype((np.uint32, (2,))), PRIME**2

    def fill(self, source: BitGenerator, codes: NDArray[np.uint32], out: NDArray[Any]) -> None:
        _randomize.fill_lines(source, codes, self.edge, self.coin.threshold, out)

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray((reports[:, 0] < PRIME) & (reports[:, 1] < PRIME))

    def add(self, reports: NDArray[Any], counts: NDArray[Any]) -> int:
        return _randomize.count_lines(reports, self.edge, counts)

    def supported(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        slope, offset = reports.astype(np.uint64).T
        return np.asarray((slope[:, None] * np.arange(self.k, dtype=np.uint64) + offset[:, None]) % PRIME < self.edge)

    def law(self, code: int) -> FiniteLaw:
        raise NotImplementedError  # never called: `outcomes` is too large


def _parity(words: NDArray[Any]) -> NDArray[Any]:
    """Return the parity of the number of one bits of each number."""
    bits = words.dtype.itemsize * 8
    while (bits := bits // 2) > 0:
        words = words ^ (words >> words.dtype.type(bits))
    return np.asarray(words & words.dtype.type(1))


METHODS: dict[str, Callable[[int, float], ResponseMethod]] = {
    "k-rr": _Response,
    "subset": _Subset,
    "oue": _Unary,
    "olh": _Lines,
    "hadamard": _Hadamard,
}


@lru_cache(maxsize=256)
def method_of(name: str, k: int, epsilon: float) -> ResponseMethod:
    """Return the method of this name for k categories."""
    return METHODS[name](k, epsilon)


@lru_cache(maxsize=256)
def least_variance(k: int, epsilon: float) -> str:
    """Return the name of the method with the least total variance, in rationals, so it is the same on every machine."""
    spreads: dict[str, Fraction] = {}
    for name in METHODS:
        try:
            spreads[name] = method_of(name, k, epsilon).total_variance
        except ValueError:  # rounded odds leave too little of epsilon; never for "oue"
            continue
    return min(spreads, key=lambda name: spreads[name])
