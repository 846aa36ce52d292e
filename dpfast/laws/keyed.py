"""Laws of counts of keys, of which only some are released: noise with a threshold, in exact integers.

A key with n records draws an integer J, whose law does not depend on n. It is released if J < n, with the count n +
center - J: its noise is X = center - J. A `StepNoise` releases some of the others, too, with a public count.
https://dpfast.readthedocs.io/en/latest/proofs/partitions.html
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _keyed_balls, _samplers
from dpfast.core import checks, containers
from dpfast.laws.law import Law
from dpfast.laws.rounded import DiscreteLaplace, IntegerNoise
from dpfast.random import RandomSource, bit_generator, blocks

MOST_STEPS = 2**17  # of a table
MOST_NOISE = 2**56
_MOST_BITS = 2**24  # of a table
MOST_LOSS = 2**11  # epsilon beyond which tables gain nothing for any delta in doubles
_MOST_COUNT = 2**62  # released; larger ones become it


class KeyNoise(ABC):
    """The law of J, and the release of a key that has J >= n. `center` is public, and so are all methods of n."""

    center: int

    @property
    def other(self) -> int:
        """The released count of a key that is released although J >= n."""
        return self.center + 1

    @property
    def threshold(self) -> int:
        """The least released count."""
        return min(self.other, self.center + 1)

    @abstractmethod
    def fill(self, source: BitGenerator, out: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Fill `out` with exact draws of J, or with any number >= n for J >= n, n in `counts`; within +-2**63."""

    @abstractmethod
    def pmf(self, j: NDArray[np.int64]) -> NDArray[np.float64]:
        """P(J = j)."""

    @abstractmethod
    def cdf(self, j: NDArray[np.int64]) -> NDArray[np.float64]:
        """P(J < j)."""

    def extra(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability that a key with n records has J >= n and is released."""
        return np.zeros(np.shape(n))

    def below(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability that a key with n records is released."""
        return self.cdf(n)

    def chance(self, released: NDArray[np.int64], n: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability that a key with n records is released with this count; 0: that it is not released."""
        by_noise = np.where(released > self.center, self.pmf(n + self.center - released), 0.0)
        return np.where(
            released == 0, 1 - self.below(n), by_noise + np.where(released == self.other, self.extra(n), 0.0)
        )

    def release(self, source: BitGenerator, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw the released counts of keys; 0 for a key that is not released."""
        drawn = np.empty(counts.size, np.int64)
        self.fill(source, drawn, counts)
        return np.where(drawn < counts, np.minimum(counts + (self.center - drawn), _MOST_COUNT), 0)


class StepTable(NamedTuple):
    """Integers of a `StepNoise`, in units of 2**-bits."""

    weights: tuple[int, ...]  # P(J = j)
    chances: tuple[int, ...]  # the probabilities that a key with 0, 1, ... records is released, up to 1
    bits: int


class StepNoise(KeyNoise):
    """The noise of a `StepTable`, which `steps` makes.

    A uniform number U draws J, and a key with n records is released if U is below its chance: with the count n + center
    - J if J < n, else with `other`, the median of the n that are released in this way.
    """

    def __init__(self, table: StepTable) -> None:
        self.table = table
        self.thresholds = list(accumulate(table.weights))  # P(J <= j) 2**bits
        self.center = bisect_left(self.thresholds, 1 << table.bits - 1)  # the median of J
        self.extras = [chance - less for chance, less in zip(table.chances, (0, *self.thresholds), strict=True)]

    @cached_property
    def other(self) -> int:
        sums = list(accumulate(self.extras))
        return bisect_left(sums, -(-sums[-1] // 2)) if sums[-1] else self.center + 1

    def _first_words(self, numbers: Sequence[int]) -> NDArray[np.uint64]:
        """Return the first 64 bits; all ones for 1."""
        most = 2**64 - 1
        return np.array([min(number >> (self.table.bits - 64), most) for number in numbers], np.uint64)

    @cached_property
    def _words(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        return self._first_words(self.thresholds[:-1]), self._first_words(self.table.chances)

    @cached_property
    def _doubles(self) -> list[NDArray[np.float64]]:
        """P(J = j), P(J < j), and the probabilities of `extra` and of `below`."""
        whole, (weights, chances, _) = 1 << self.table.bits, self.table
        tables = ((*weights, 0), (0, *self.thresholds), self.extras, chances)
        return [np.array([number / whole for number in numbers]) for numbers in tables]

    def _draw(
        self, source: BitGenerator, counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Return the places of keys that may be released, their J, and whether they are released."""
        words = np.empty(counts.size, np.uint64)
        _samplers.fill_words(source, words)
        (first, limits), (_, chances, bits) = self._words, self.table
        rows = np.minimum(counts, len(limits) - 1)
        near = np.flatnonzero((words <= limits[rows]) & (counts > 0))
        few, row = words[near], rows[near]
        found, seen = np.searchsorted(first, few), few < limits[row]
        ties = few == limits[row]
        if first.size:
            ties |= first[np.minimum(found, first.size - 1)] == few
        for i in np.flatnonzero(ties):  # the other bits decide
            number = int(few[i])
            for _ in range(bits // 64 - 1):
                number = number << 64 | _samplers.next_word(source)
            found[i] = bisect_right(self.thresholds, number)
            seen[i] = number < chances[row[i]]
        return near, found, seen

    def fill(self, source: BitGenerator, out: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        near, found, _ = self._draw(source, counts)
        out[:] = np.iinfo(np.int64).max
        out[near] = found

    def release(self, source: BitGenerator, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        near, found, seen = self._draw(source, counts)
        noisy = np.minimum(counts[near] + (self.center - found), _MOST_COUNT)
        out = np.zeros(counts.size, np.int64)
        out[near] = np.where(seen, np.where(found < counts[near], noisy, self.other), 0)
        return out

    def pmf(self, j: NDArray[np.int64]) -> NDArray[np.float64]:
        last = len(self.table.weights)
        return self._doubles[0][np.where((j < 0) | (j > last), last, j)]

    def cdf(self, j: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._row(1, j)

    def extra(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._row(2, n)

    def below(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._row(3, n)

    def _row(self, table: int, n: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._doubles[table][np.clip(n, 0, len(self.table.weights))]


def steps(up: tuple[Fraction, Fraction], down: tuple[Fraction, Fraction], most: int = MOST_STEPS) -> StepTable | None:
    """Return the best `StepTable`; None if it has more than `most` weights.

    Parameters
    ----------
    up : (epsilon, delta)
        Bounds the law of a key with one record more relative to that with one less.
    down : (epsilon, delta)
        Bounds it in the other direction.
    most : int
        About the largest number of weights.

    Notes
    -----
    With E rounded down to a rational and D = floor(delta 2**bits), the sums of `loss` are at most D in both directions.
    This is checked in integers before a table is returned.
    https://dpfast.readthedocs.io/en/latest/proofs/partitions.html
    """
    losses = [min(epsilon, Fraction(MOST_LOSS)) for epsilon, _ in (up, down)]
    smallest = min(up[1], down[1])
    length = 64 + int(max(losses) * 3 // 2) + most.bit_length() + math.ceil(1 / smallest).bit_length()
    bits = -(-length // 64) * 64
    rows = _growth(losses[0], up[1]) + _growth(losses[1], down[1])
    if rows > most or rows * bits > _MOST_BITS:
        return None
    ratios = (_keyed_balls.exp_down(losses[0], bits), _keyed_balls.exp_down(losses[1], bits))
    falls = (int(up[1] * 2**bits), int(down[1] * 2**bits))
    slack = 0
    while True:
        weights = _two_sided(ratios, (falls[0] - slack, falls[1] - slack), bits, most)
        if weights is None:
            return None
        table = StepTable(weights, _largest(weights, ratios, falls, bits), bits)
        if _fits(table, ratios, falls):
            return table
        slack = max(2 * slack, len(weights) << max(ratios[1].bit_length() - bits, 0))


def _growth(epsilon: Fraction, delta: Fraction) -> float:
    """About the number of weights in which they rise from delta to a sum of 1 / 2."""
    ratio, most = epsilon / (2 * delta), Fraction(10**300)
    if ratio <= 1e-12:
        return float(min(1 / (2 * delta), most))
    return math.log1p(float(min(ratio, most))) / max(float(epsilon), sys.float_info.min)


def _two_sided(ratios: tuple[int, int], ends: tuple[int, int], bits: int, most: int) -> tuple[int, ...] | None:
    """Weights that rise and fall geometrically, 2**bits in all: the fewest whose ends are at most `ends`."""
    if min(ends) < 1:
        return None
    whole = total = 1 << bits
    sides = [whole], [whole]  # from the center to each end, relative to the center
    while True:
        long = [i for i in (0, 1) if sides[i][-1] << bits > ends[i] * total]
        if not long:
            break
        side = sides[long[0]]
        side.append((side[-1] << bits) // ratios[long[0]])
        total += side[-1]
        if len(side) > 2 * most:
            return None
    left, right = ([-(-(x << bits) // total) for x in side[1:]] for side in sides)
    return *reversed(left), whole - sum(left) - sum(right), *right


def _largest(weights: tuple[int, ...], ratios: tuple[int, int], falls: tuple[int, int], bits: int) -> tuple[int, ...]:
    """Return the largest chances of release with these weights, in order of n."""
    whole, (rise, fall) = 1 << bits, ratios
    chances, less = [0], 0
    for weight, (by_rise, by_fall) in zip(weights, _shifts(weights, ratios, bits), strict=False):
        chance, extra = chances[-1], chances[-1] - less
        less += weight
        by_up = less + (extra * rise + (falls[0] << bits) - by_rise >> bits)
        hidden = -((((chance - whole + falls[1]) << bits) - by_fall) // fall)
        chances.append(min(by_up, whole - max(hidden, 0)))
    return tuple(chances)


def _shifts(weights: tuple[int, ...], ratios: tuple[int, int], bits: int) -> Iterator[tuple[int, int]]:
    """Yield the sums of `loss` over the counts of keys that have J < n, for n = 0, 1, ..., len(weights)."""
    rise, fall = ratios
    by_rise = by_fall = 0
    for before, after in pairwise((0, *weights, 0)):
        by_rise += max(0, (after << bits) - rise * before)
        by_fall += max(0, (before << bits) - fall * after)
        yield by_rise, by_fall


def loss(table: StepTable, ratios: tuple[int, int]) -> tuple[int, int]:
    """Return the least deltas of keys with n and n + 1 records, the greatest over n, in units of 2**(-2 bits).

    Of the law with one record more relative to that with one less, and in the other direction. The outcomes are: not
    released; released by a J >= n; and each count of a J < n.
    """
    (weights, chances, bits), (rise, fall) = table, ratios
    whole, extras = 1 << bits, [p - less for p, less in zip(chances, accumulate(weights, initial=0), strict=True)]
    parts = [*zip(extras, (whole - p for p in chances), strict=True)]
    up = down = 0
    for (by_rise, by_fall), before, after in zip(
        _shifts(weights, ratios, bits), parts, (*parts[1:], parts[-1]), strict=True
    ):
        up = max(up, by_rise + sum(max(0, (y << bits) - rise * x) for x, y in zip(before, after, strict=True)))
        down = max(down, by_fall + sum(max(0, (x << bits) - fall * y) for x, y in zip(before, after, strict=True)))
    return up, down


def _fits(table: StepTable, ratios: tuple[int, int], falls: tuple[int, int]) -> bool:
    """Whether a table consists of probabilities, whose losses are at most `falls`."""
    sums = [*accumulate(table.weights, initial=0)]
    whole = 1 << table.bits
    ordered = all(less <= chance <= whole for less, chance in zip(sums, table.chances, strict=True))
    if not ordered or min(table.weights) < 0 or sums[-1] != whole:
        return False
    up, down = loss(table, ratios)
    return up <= falls[0] << table.bits and down <= falls[1] << table.bits


class TruncatedNoise(KeyNoise):
    """Discrete Laplace noise X = center - J of scale 1 / epsilon, given that |X| <= center.

    Where less than about half of it would be left, X is uniform instead, that is, of infinite scale.
    """

    def __init__(self, epsilon: Fraction, delta: Fraction) -> None:
        self.center = _keyed_balls.truncation_up(epsilon, delta)
        self.epsilon = epsilon
        if epsilon * self.center * 2 < 1:  # uniform on 2 center + 1 points
            self.epsilon, self.center = Fraction(), -(-(1 / delta - 1) // 2).__floor__()
        if self.center > MOST_NOISE or 0 < epsilon * MOST_NOISE < 1:
            raise ValueError("these epsilon and delta require noise of more than 2**56 records: use larger ones")

    def fill(self, source: BitGenerator, out: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        if not self.epsilon:
            words = np.empty(out.size, np.uint64)
            _samplers.fill_uniform(source, 2 * self.center, words)
            out[:] = words
            return
        _samplers.fill_discrete_laplace(source, 1 / self.epsilon, out)
        while (again := np.flatnonzero(np.abs(out) > self.center)).size:
            part = np.empty(again.size, np.int64)
            _samplers.fill_discrete_laplace(source, 1 / self.epsilon, part)
            out[again] = part
        np.subtract(self.center, out, out=out)

    def _tail(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(X >= x), for 1 <= x <= center + 1, by the sums of a geometric series."""
        rate = float(self.epsilon)
        whole = 1 + 2 * _series(rate, 1.0, np.float64(self.center))
        return np.asarray(_series(rate, x, np.float64(self.center)) / whole)

    def pmf(self, j: NDArray[np.int64]) -> NDArray[np.float64]:
        x = (self.center - j).astype(np.float64)
        whole = 1 + 2 * _series(float(self.epsilon), 1.0, np.float64(self.center))
        return np.where(np.abs(x) <= self.center, np.exp(-float(self.epsilon) * np.abs(x)) / whole, 0.0)

    def cdf(self, j: NDArray[np.int64]) -> NDArray[np.float64]:
        x = np.clip(self.center + 1.0 - np.asarray(j, np.float64), -self.center, self.center + 1.0)
        return np.where(x >= 1, self._tail(np.maximum(x, 1.0)), 1 - self._tail(np.maximum(1 - x, 1.0)))


def _series(rate: float, first: Any, last: Any) -> Any:
    """Return the sum of exp(-rate x) for x = first..last."""
    terms = last - first + 1
    return terms if rate == 0 else np.exp(-rate * first) * np.expm1(-rate * terms) / math.expm1(-rate)


class UnboundedNoise(KeyNoise):
    """Discrete Laplace noise X = center - J, which may release a key without records."""

    noise: IntegerNoise

    def __init__(self, scale: Fraction, center: int) -> None:
        self.noise, self.center = DiscreteLaplace(scale), center

    def fill(self, source: BitGenerator, out: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        self.noise.fill(source, out)
        np.clip(out, -(2**61), _MOST_COUNT + 2**61 - 1, out=out)  # what it changes is not released, or _MOST_COUNT
        np.subtract(self.center, out, out=out)

    def pmf(self, j: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.exp(self.noise.logpmf((self.center - j).astype(np.float64)))

    def cdf(self, j: NDArray[np.int64]) -> NDArray[np.float64]:
        x = self.center + 1 - np.asarray(j, np.float64)
        tail = np.exp(self.noise.log_tail(np.where(x >= 1, x, 1 - x)))
        return np.where(x >= 1, tail, 1 - tail)


class KeyedCounts(Law):
    """The released counts of keys with n_1, ..., n_m records: 0 for a key that is not released. PRIVATE.

    Parameters
    ----------
    counts : ndarray of int64, shape (m,)
    noise : KeyNoise
    decode : callable
        Makes the released object from an array of m integers.
    """

    def __init__(
        self, counts: NDArray[np.int64], *, noise: KeyNoise, decode: Callable[[NDArray[np.int64]], Any]
    ) -> None:
        self.counts, self.noise, self._decode = counts, noise, decode

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return the natural logarithm of P(K = k), k of shape (..., m)."""
        released = containers.integers("k", k)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.noise.chance(released, self.counts)).sum(axis=-1))

    def outcomes(self) -> NDArray[np.int64]:
        if not isinstance(self.noise, StepNoise):
            return super().outcomes()
        center, other = self.noise.center, self.noise.other
        checks.outcomes(math.prod(int(n) + 2 for n in self.counts))
        axes = [np.union1d([0, other] if n else 0, np.arange(center + 1, n + center + 1)) for n in self.counts]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape = (*checks.shape(size), len(self.counts))
        out = np.empty(math.prod(shape), np.int64)
        counts = np.broadcast_to(self.counts, shape).reshape(-1)
        start = 0
        for source, block in blocks(rng, out):
            block[:] = self.noise.release(source, counts[start : start + block.size])
            start += block.size
        return out.reshape(shape)

    def value(self, k: ArrayLike) -> Any:
        return self._decode(containers.integers("k", k))


class DomainCounts(Law):
    """The released counts of the keys 0..last, of which all but a few have no records. PRIVATE.

    A draw is an array of shape (r, 2): the released keys, in order, and their counts. Of several draws, the shorter
    ones end in rows of -1.

    Parameters
    ----------
    keys, counts : ndarray of int64, shape (m,)
        The keys with records, in order, and their numbers.
    last : int
    noise : UnboundedNoise
        It releases a key without records with a probability of at most 2**-8.
    decode : callable
        Makes the released object from a draw.

    Notes
    -----
    The keys without records are released independently with probability p. The places of candidates, with gaps of the
    geometric law of q = 1 - e**(-1 / gap) >= p, are kept with probability p / q, decided in ball arithmetic. By its
    memorylessness the noise of such a key is the threshold plus a geometric number.
    https://dpfast.readthedocs.io/en/latest/proofs/partitions.html
    """

    def __init__(
        self,
        keys: NDArray[np.int64],
        counts: NDArray[np.int64],
        *,
        last: int,
        noise: UnboundedNoise,
        decode: Callable[[NDArray[np.int64]], Any],
    ) -> None:
        self.keys, self.counts, self.last, self.noise, self._decode = keys, counts, last, noise, decode

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return the natural logarithm of the probability of one draw."""
        drawn = containers.integers("k", k).reshape(-1, 2)
        drawn = drawn[drawn[:, 0] >= 0]
        counts = np.zeros(len(drawn), np.int64)
        places = np.searchsorted(self.keys, drawn[:, 0])
        known = places < len(self.keys)
        known[known] = self.keys[places[known]] == drawn[known, 0]
        counts[known] = self.counts[places[known]]
        missed = np.ones(len(self.keys), bool)
        missed[places[known]] = False
        empty = self.last + 1 - len(self.keys) - int(np.sum(~known))
        with np.errstate(divide="ignore"):
            total = np.log(self.noise.pmf(counts + self.noise.center - drawn[:, 1])).sum()
            total += np.log1p(-self.noise.below(self.counts[missed])).sum()
        return np.asarray(total + empty * math.log1p(-float(self.noise.below(np.zeros((), np.int64)))))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        source, shape = bit_generator(rng), checks.shape(size)
        draws = [self._draw(source) for _ in range(math.prod(shape))]
        if size is None:
            return draws[0]
        out = np.full((len(draws), max(map(len, draws), default=0), 2), -1, np.int64)
        for row, draw in zip(out, draws, strict=True):
            row[: len(draw)] = draw
        return out.reshape(*shape, *out.shape[1:])

    def _draw(self, source: BitGenerator) -> NDArray[np.int64]:
        drawn = self.noise.release(source, self.counts)
        present = np.stack([self.keys, drawn], axis=1)[drawn > 0]
        empty = self._empty(source)
        places = np.searchsorted(self.keys, empty[:, 0])
        taken = places < len(self.keys)
        taken[taken] = self.keys[places[taken]] == empty[taken, 0]
        together = np.concatenate([present, empty[~taken]])
        return together[np.argsort(together[:, 0])]

    def _empty(self, source: BitGenerator) -> NDArray[np.int64]:
        """Keys and counts as if no key of the domain had records."""
        scale, least = Fraction(self.noise.noise.scale), self.noise.center + 1
        log_p = max(float(self.noise.noise.log_tail(np.array(float(least)))), math.log(2.0**-60))
        gap = Fraction(min(int(math.exp(-log_p) * (1 - 2.0**-7)), MOST_NOISE))  # less than 1 / p - 1, hence q >= p
        step, place, found = np.empty(1, np.int64), -1, []
        while True:
            _samplers.fill_geometric(source, gap, step)
            place += 1 + int(step[0])
            if place > self.last:
                break
            word = _samplers.next_word(source)
            if _keyed_balls.passes(word, lambda: _samplers.next_word(source), least, scale, gap):
                _samplers.fill_geometric(source, scale, step)
                found.append((place, min(least + int(step[0]), _MOST_COUNT)))
        return np.array(found, np.int64).reshape(-1, 2)

    def value(self, k: ArrayLike) -> Any:
        return self._decode(containers.integers("k", k))
