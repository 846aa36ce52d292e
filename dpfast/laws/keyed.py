"""Laws of counts of keys, of which only some are released: noise with a threshold, in exact integers.

A key with n records draws an integer J, whose law does not depend on n. It is released if J < n, with the count n +
center - J: its noise is X = center - J, and the least released count is center + 1.
https://dpfast.readthedocs.io/en/latest/proofs/partitions.html
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, SupportsIndex

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks, _containers
from dpfast._kernels import _keyed_balls, _samplers
from dpfast.laws.law import Law
from dpfast.laws.rounded import DiscreteLaplace, IntegerNoise
from dpfast.random import RandomSource, bit_generator, blocks

MOST_STEPS = 2**17  # of a table
MOST_NOISE = 2**56
_MOST_BITS = 2**24  # of a table
MOST_LOSS = 2**11  # epsilon beyond which tables gain nothing for any delta in doubles
_MOST_COUNT = 2**62  # released; larger ones become it


class KeyNoise(ABC):
    """The law of J. `center` is public."""

    center: int

    @abstractmethod
    def fill(self, source: BitGenerator, out: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Fill `out` with exact draws of J, or with any number >= n for J >= n, n in `counts`; within +-2**63."""

    @abstractmethod
    def pmf(self, j: NDArray[np.int64]) -> NDArray[np.float64]:
        """P(J = j)."""

    @abstractmethod
    def below(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        """P(J < n): the probability that a key with n records is released."""


class StepNoise(KeyNoise):
    """P(J = j) = weights[j] / 2**bits, which sum to 1. `steps` makes the weights."""

    def __init__(self, weights: tuple[int, ...], bits: int) -> None:
        self.weights, self.bits = weights, bits
        self.thresholds = list(accumulate(weights))  # P(J <= j) 2**bits
        mean = Fraction(sum(j * weight for j, weight in enumerate(weights)), 1 << bits)
        self.center = round(mean)

    @cached_property
    def _words(self) -> NDArray[np.uint64]:
        """The first 64 bits of the thresholds but the last, which is 1."""
        return np.array([t >> (self.bits - 64) for t in self.thresholds[:-1]], np.uint64)

    @cached_property
    def _doubles(self) -> NDArray[np.float64]:
        return np.array([float(Fraction(t, 1 << self.bits)) for t in (0, *self.thresholds)])

    def fill(self, source: BitGenerator, out: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        words = np.empty(out.size, np.uint64)
        _samplers.fill_words(source, words)
        first, most = self._words, np.uint64(2**64 - 1)
        out[:] = np.iinfo(np.int64).max
        # J < n if the uniform number is below the n-th threshold, which is 1 from the last one on.
        limits = np.concatenate([np.zeros(1, np.uint64), first, [most]])
        near = np.flatnonzero((words <= limits[np.minimum(counts, len(limits) - 1)]) & (counts > 0))
        found = np.searchsorted(first, words[near])
        if first.size:  # where the first 64 bits of the uniform number are those of a threshold, all bits decide
            for i in np.flatnonzero(first[np.minimum(found, first.size - 1)] == words[near]):
                number = int(words[near[i]])
                for _ in range(self.bits // 64 - 1):
                    number = number << 64 | _samplers.next_word(source)
                found[i] = bisect_right(self.thresholds, number)
        out[near] = found

    def pmf(self, j: NDArray[np.int64]) -> NDArray[np.float64]:
        exact = np.array([*(float(Fraction(w, 1 << self.bits)) for w in self.weights), 0.0])
        return exact[np.where((j < 0) | (j >= len(self.weights)), len(self.weights), j)]

    def below(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._doubles[np.clip(n, 0, len(self.weights))]


def steps(
    up: tuple[Fraction, Fraction], down: tuple[Fraction, Fraction], most: int = MOST_STEPS
) -> tuple[tuple[int, ...], int] | None:
    """The weights of the best `StepNoise`, and their bits; None if there are more than `most`.

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
    The weights d_0, d_1, ..., d_last satisfy, with E rounded down to a rational and D = floor(delta 2**bits),
    ``d_0 + sum max(0, d_(j+1) - E_up d_j) <= D_up`` and ``d_last + sum max(0, d_j - E_down d_(j+1)) <= D_down``. This
    is checked in integers before they are returned. https://dpfast.readthedocs.io/en/latest/proofs/partitions.html
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
        weights = _greedy(ratios, (falls[0], falls[1] - slack), bits, most)
        if weights is None:
            return None
        excess = loss(weights, ratios, bits)
        if excess[0] <= falls[0] << bits and excess[1] <= falls[1] << bits:
            return weights, bits
        slack = max(2 * slack, len(weights) << max(ratios[1].bit_length() - bits, 0))


def _growth(epsilon: Fraction, delta: Fraction) -> float:
    """About the number of weights in which they rise from delta to a sum of 1 / 2."""
    ratio, most = epsilon / (2 * delta), Fraction(10**300)
    if ratio <= 1e-12:
        return float(min(1 / (2 * delta), most))
    return math.log1p(float(min(ratio, most))) / max(float(epsilon), sys.float_info.min)


def _greedy(ratios: tuple[int, int], falls: tuple[int, int], bits: int, most: int) -> tuple[int, ...] | None:
    """The largest weights in this order, 2**bits in all: P(J < n) is the largest for every n."""
    whole, (rise, fall) = 1 << bits, ratios
    left, weight = whole, 0
    weights: list[int] = []
    while left > 0:
        by_up = weight * rise >> bits if weights else falls[0]
        after = max(-(-((left - falls[1]) << bits) // fall), 0) if left > falls[1] else 0
        weight = min(by_up, left - after)
        weights.append(weight)
        left -= weight
        if len(weights) > 2 * most or weight < 1:
            return None
    return tuple(weights)


def loss(weights: tuple[int, ...], ratios: tuple[int, int], bits: int) -> tuple[int, int]:
    """The two sums of the notes of `steps`, in units of 2**(-2 bits)."""
    rise, fall = ratios
    pairs = list(pairwise(weights))
    up = (weights[0] << bits) + sum(max(0, (after << bits) - rise * before) for before, after in pairs)
    down = (weights[-1] << bits) + sum(max(0, (before << bits) - fall * after) for before, after in pairs)
    return up, down


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

    def below(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        x = np.clip(self.center + 1.0 - np.asarray(n, np.float64), -self.center, self.center + 1.0)
        return np.where(x >= 1, self._tail(np.maximum(x, 1.0)), 1 - self._tail(np.maximum(1 - x, 1.0)))


def _series(rate: float, first: Any, last: Any) -> Any:
    """The sum of exp(-rate x) for x = first..last."""
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

    def below(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        x = self.center + 1 - np.asarray(n, np.float64)
        tail = np.exp(self.noise.log_tail(np.where(x >= 1, x, 1 - x)))
        return np.where(x >= 1, tail, 1 - tail)


def _released(counts: NDArray[np.int64], noise: KeyNoise, drawn: NDArray[np.int64]) -> NDArray[np.int64]:
    """The noisy counts of keys that are released."""
    released: NDArray[np.int64] = np.minimum(counts + (noise.center - drawn), _MOST_COUNT)
    return released


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
        """The natural logarithm of P(K = k), k of shape (..., m)."""
        released = _containers.integers("k", k)
        j = self.counts + self.noise.center - released
        absent = 1 - self.noise.below(self.counts)
        chance = np.where(released == 0, absent, np.where(j < self.counts, self.noise.pmf(j), 0.0))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(chance).sum(axis=-1))

    def outcomes(self) -> NDArray[np.int64]:
        if not isinstance(self.noise, StepNoise):
            return super().outcomes()
        most = self.counts + self.noise.center
        _checks.outcomes(math.prod(int(top) - self.noise.center + 1 for top in most))
        axes = [np.append(0, np.arange(self.noise.center + 1, top + 1)) for top in most]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape = (*_checks.shape(size), len(self.counts))
        out = np.empty(math.prod(shape), np.int64)
        counts = np.broadcast_to(self.counts, shape).reshape(-1)
        start = 0
        for source, block in blocks(rng, out):
            self.noise.fill(source, block, counts[start : start + block.size])
            start += block.size
        drawn = out.reshape(shape)
        return np.where(drawn < self.counts, _released(self.counts, self.noise, drawn), 0)

    def value(self, k: ArrayLike) -> Any:
        return self._decode(_containers.integers("k", k))


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
        """The natural logarithm of the probability of one draw."""
        drawn = _containers.integers("k", k).reshape(-1, 2)
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
        source, shape = bit_generator(rng), _checks.shape(size)
        draws = [self._draw(source) for _ in range(math.prod(shape))]
        if size is None:
            return draws[0]
        out = np.full((len(draws), max(map(len, draws), default=0), 2), -1, np.int64)
        for row, draw in zip(out, draws, strict=True):
            row[: len(draw)] = draw
        return out.reshape(*shape, *out.shape[1:])

    def _draw(self, source: BitGenerator) -> NDArray[np.int64]:
        drawn = np.empty(len(self.keys), np.int64)
        self.noise.fill(source, drawn, self.counts)
        seen = drawn < self.counts
        present = np.stack([self.keys, _released(self.counts, self.noise, drawn)], axis=1)[seen]
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
        return self._decode(_containers.integers("k", k))
