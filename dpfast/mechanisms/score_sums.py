"""One draw from a score law of very many pieces: sums of psi only where the draw needs them.

For a small epsilon the law reaches over many records at which S bends, a piece each. A draw from a few pieces, with
bounds of their weights, needs S at their ends and at the proposed points alone
(https://dpfast.readthedocs.io/en/latest/proofs/score-laws.html).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.random import BitGenerator

from dpfast._kernels import _levels
from dpfast._kernels._balls import choose_piece
from dpfast._kernels._samplers import next_word
from dpfast.psi import IntegerTable, RecordTable
from dpfast.streaming import Integers

_LIMB = 26  # bits: sums of the lower and of the upper ones of codes are 64-bit integers
_AT_ONCE = 2**26  # records
_WASTE = 2  # the bound of all weights, over a lower bound of them: at most about so many attempts on average
_MOST = 2**12  # pieces
_UNITS = 400  # binary digits of weights


class ScoreSums:
    """The exact S(theta), the sum of psi(theta - x) over the records.

    Parameters
    ----------
    codes : ndarray of int64
        Of the records, in any order; at most 2**36.
    table : IntegerTable
    """

    def __init__(self, codes: Integers, table: IntegerTable) -> None:
        self._codes, self._knots = np.sort(codes), table.knots
        self._sums = [
            np.concatenate([[0], np.cumsum(part)]) for part in (self._codes & (2**_LIMB - 1), self._codes >> _LIMB)
        ]
        self._values, self._slopes = table.values.tolist(), [*table.slopes.tolist(), 0]

    def at(self, theta: int) -> int:
        places = theta - self._knots
        ends = np.searchsorted(self._codes, places, side="right")  # records whose differences have reached the knot
        low, high = (part[ends] for part in self._sums)
        following = np.append(ends[1:], 0)
        counts = (ends - following).tolist()
        sums = zip((low - np.append(low[1:], 0)).tolist(), (high - np.append(high[1:], 0)).tolist(), strict=True)
        total = (len(self._codes) - int(ends[0])) * self._values[0]
        for value, slope, count, place, (lower, upper) in zip(
            self._values, self._slopes, counts, places.tolist(), sums, strict=True
        ):
            if count:
                total += value * count + slope * (count * place - lower - (upper << _LIMB))
        return int(total)


class RecordSums:
    """The exact S(theta), the sum of psi(x, theta) over the records, from their shares of the points of a table.

    Parameters
    ----------
    codes : ndarray of int64
        Of the records, in any order.
    table : RecordTable
    """

    def __init__(self, codes: Integers, table: RecordTable) -> None:
        self._gap, shares = table.parameter_gap, _shares(codes, table.record_gap, len(table.values))
        self._sums = [0] * table.values.shape[1]
        for shift in range(0, max(shares).bit_length(), _LIMB):
            limbs = np.array([share >> shift & (2**_LIMB - 1) for share in shares], np.int64)
            found = (limbs @ table.values).tolist()
            self._sums = [had + (more << shift) for had, more in zip(self._sums, found, strict=True)]

    def at(self, theta: int) -> int:
        i, after = divmod(theta, self._gap)
        return self._sums[i] * (self._gap - after) + (self._sums[i + 1] * after if after else 0)


def _shares(codes: Integers, gap: int, count: int) -> list[int]:
    """Return the sum of the shares of all records of each point: a record gives `gap` to those on its two sides, in
    proportion to its distance from the other one.
    """
    shares = [0] * (count + 1)
    for start in range(0, len(codes), _AT_ONCE):
        part = codes[start : start + _AT_ONCE]
        cells, after = part // gap, part % gap
        numbers = np.bincount(cells, minlength=count).tolist()
        parts = [np.bincount(cells, weights=limb, minlength=count) for limb in (after & (2**_LIMB - 1), after >> _LIMB)]
        for i, (number, low, high) in enumerate(zip(numbers, *parts, strict=True)):
            over = int(low) + (int(high) << _LIMB)  # sums of 2**26 limbs of 26 bits are exact in doubles
            shares[i] += gap * number - over
            shares[i + 1] += over
    return shares[:count]


class _Piece(NamedTuple):
    """The points near, near + side, ..., near + side (length - 1), their least excess, and that of the last one."""

    near: int
    length: int
    side: int
    excess: int
    last: int


class FewPieces:
    """The law P(t) proportional to ``w(t) exp(-rate min(|S(t)|, M + reach))`` on 0..last, for a single draw.

    Parameters
    ----------
    sums : callable
        S, nondecreasing.
    reach : int
    rate : Fraction
    last : int
    center, width : int
        w(t) is ``1 / (width**2 + (t - center)**2)``, or 1 if width is 0.
    """

    def __init__(
        self, sums: Callable[[int], int], *, reach: int, rate: Fraction, last: int, center: int = 0, width: int = 0
    ) -> None:
        self._sums, self._reach, self._rate = sums, reach, rate
        self._last, self._center, self._width = last, center, width
        root = bisect_left(range(last + 1), 0, key=sums)
        self._least = min(abs(sums(theta)) for theta in (root, root - 1) if 0 <= theta <= last)
        self._pieces = self._cut(root)

    def linear(self, gap: int, inside: Iterable[int]) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield the near end, length, side, excess there and at the far end of pieces on which S and it are linear.

        S is linear between multiples of `gap`; pieces also end at the points `inside`, and where the exponent has
        changed by about 1.
        """
        points, last = range(self._last + 1), self._last
        capped = self._least + self._reach
        root = bisect_left(points, 0, key=self._sums)
        ends = (bisect_left(points, 1 - capped, key=self._sums), bisect_left(points, capped, key=self._sums))
        cuts = sorted({0, root, *ends, *range(0, last + 1, gap), *inside, last + 1})
        for start, stop in pairwise(cuts):
            side = 1 if start >= root else -1
            falls = abs(self._excess(stop - 1) - self._excess(start)) * self._rate
            parts = min(stop - start, 1 + math.floor(falls))
            for i in range(parts):
                low, high = start + (stop - start) * i // parts, start + (stop - start) * (i + 1) // parts - 1
                near, far = (low, high) if side > 0 else (high, low)
                yield near, high - low + 1, side, self._excess(near), self._excess(far)

    def _excess(self, theta: int) -> int:
        return min(abs(self._sums(theta)) - self._least, self._reach)

    def _inverse_prior(self, theta: int) -> int:
        return self._width**2 + (theta - self._center) ** 2 if self._width else 1

    def _closest(self, piece: _Piece) -> int:
        """Return the least inverse prior weight of the points."""
        low, high = sorted((piece.near, piece.near + piece.side * (piece.length - 1)))
        return self._inverse_prior(min(max(self._center, low), high))

    def _bounds(self, piece: _Piece) -> tuple[int, int]:
        """Return bounds of the weight of a piece, in units of 2**-_UNITS, to a factor of 4: in integers, so that cuts
        are the same on every machine.
        """
        ends = piece.near, piece.near + piece.side * (piece.length - 1)

        def mass(excess: int, inverse: int) -> int:
            halvings = inverse.bit_length() + self._rate.numerator * excess * 23 // (self._rate.denominator * 16)
            return (piece.length << _UNITS) >> halvings  # 23/16 is about log2(e)

        return mass(piece.excess, self._closest(piece)), mass(piece.last, max(map(self._inverse_prior, ends)))

    def _cut(self, root: int) -> list[_Piece]:
        """Return pieces of both sides of the root: the one with the widest bounds is halved until these are narrow."""
        queue: list[tuple[int, _Piece]] = []
        total = least = 0

        def add(near: int, length: int, side: int) -> None:
            nonlocal total, least
            piece = _Piece(near, length, side, self._excess(near), self._excess(near + side * (length - 1)))
            most, few = self._bounds(piece)
            total, least = total + most, least + few
            heappush(queue, (few - most, piece))

        for near, length, side in ((root, self._last + 1 - root, 1), (root - 1, root, -1)):
            if length:
                add(near, length, side)
        while total > _WASTE * least and len(queue) < _MOST and queue[0][1].length > 1:
            _, piece = heappop(queue)
            most, few = self._bounds(piece)
            total, least, half = total - most, least - few, piece.length // 2
            add(piece.near, half, piece.side)
            add(piece.near + piece.side * half, piece.length - half, piece.side)
        return sorted(piece for _, piece in queue)

    def draw(self, source: BitGenerator) -> int:
        """Return a point: a piece by the bound of its weight, a point of it, and whether it is taken."""
        pieces = [(piece.length, piece.excess, self._closest(piece)) for piece in self._pieces]
        while True:
            index = choose_piece(next_word(source), lambda: next_word(source), pieces, self._rate)
            piece, closest = self._pieces[index], pieces[index][2]
            theta = piece.near + piece.side * _below(source, piece.length)
            if self._width and _below(source, self._inverse_prior(theta)) >= closest:
                continue
            if _levels.draw_coin(source, self._rate * (self._excess(theta) - piece.excess)):
                return theta


def _below(source: Any, n: int) -> int:
    """Return a uniform integer in 0..n - 1, by rejection."""
    while True:
        bits, drawn = (n - 1).bit_length(), 0
        for _ in range(-(-bits // 64)):
            drawn = drawn << 64 | next_word(source)
        drawn &= (1 << bits) - 1
        if drawn < n:
            return drawn
