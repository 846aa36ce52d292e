"""Uniform samples of records in pieces, of which some are counted: how many of each kind of record they have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from flint import arb
from numpy.random import BitGenerator
from numpy.typing import NDArray

from dpfast._kernels import _balls, _samplers
from dpfast.mechanisms.subsampled import drawn_places
from dpfast.streaming import Counted

_MOST_PLACES = 2**20  # of records that are left out one by one


def sampled_pieces(pieces: Sequence[Any], n: int, size: int, source: BitGenerator) -> list[Any]:
    """Return a uniform random sample of so many of the n records of these pieces, arrays or `Counted`, in their order.

    Few records are left out by their places, many by their numbers of each kind: a kind is a counted value or an array.
    """
    if n - size > _MOST_PLACES:
        sizes = [piece.records() if isinstance(piece, Counted) else len(piece) for piece in pieces]
        kept = numbers_of_kinds(sizes, size, source)
        return [_of_size(piece, number, source) for piece, number in zip(pieces, kept, strict=True)]
    places, start, found = drawn_places(n, n - size, source), 0, []
    for piece in pieces:
        stop = start + (piece.records() if isinstance(piece, Counted) else len(piece))
        first, last = np.searchsorted(places, [start, stop])
        found.append(_without(piece, places[first:last] - start))
        start = stop
    return found


def _without(piece: Any, places: NDArray[np.int64]) -> Any:
    """Return the other records of a piece."""
    if not isinstance(piece, Counted):
        return np.delete(piece, places, axis=0)
    kinds = np.searchsorted(np.cumsum(piece.counts), places, side="right")
    return Counted(piece.values, piece.counts - np.bincount(kinds, minlength=len(piece.counts)))


def _of_size(piece: Any, size: int, source: BitGenerator) -> Any:
    """Return a uniform random sample of so many records of a piece."""
    if isinstance(piece, Counted):
        return Counted(piece.values, np.array(numbers_of_kinds(piece.counts.tolist(), size, source), np.int64))
    return piece[drawn_places(len(piece), size, source)]


def numbers_of_kinds(counts: Iterable[int], size: int, source: BitGenerator) -> list[int]:
    """Draw how many records of each kind a uniform sample has, given how many there are of each: exactly.

    One hypergeometric number after the other: about a millisecond each, whatever the counts.
    """
    given = list(counts)
    others, found = sum(given), []
    for count in given:
        others -= count
        found.append(hypergeometric(count, others, size, source))
        size -= found[-1]
    return found


def hypergeometric(kind: int, others: int, size: int, source: BitGenerator) -> int:
    """Draw how many of a kind are in a uniform sample of so many records of this kind and of others, by rejection.

    **Law** ``f(x) = comb(kind, x) comb(others, size - x) / comb(kind + others, size)``, exact: a proposal m + k, m the
    mode, has the weight ``2**-max(b - 1, 0)`` for ``|k|`` in ``[b w, (b + 1) w)`` or at its end, w >= 1 / f(m), and is
    kept with probability ``f(m + k) / f(m) 2**max(b - 1, 0)``. That is at most 1: f is log-concave, so for ``f(m + k) =
    f(m) e^-c`` its values from m to m + k have a sum of at least ``f(m) |k| (1 - e^-c) / c``. Hence ``f(m) |k| <= c /
    (1 - e^-c) <= 1 + c``, and ``c >= |k| / w - 1``. **Assumes** size <= kind + others. **Cost** six to twelve
    proposals, each decided in ball arithmetic. **Reference** Devroye 1987, "A simple generator for discrete
    log-concave distributions".
    """
    least, most = max(0, size - others), min(kind, size)
    if least == most:
        return least
    mode = (size + 1) * (kind + 1) // (kind + others + 2)

    def log_ways(x: int) -> arb:
        return -sum((arb(part + 1).lgamma() for part in (x, kind - x, size - x, others - size + x)), arb(0))

    def inverse() -> arb:
        total, rest = kind + others, kind + others - size
        ways = sum((arb(part + 1).lgamma() for part in (kind, others, size, rest)), log_ways(mode))
        return (arb(total + 1).lgamma() - ways).exp()

    width = int(_balls.upper(inverse)) + 1
    word = partial(_samplers.next_word, source)
    generator = np.random.Generator(source)
    while True:
        block = 0 if generator.integers(3) == 0 else _halvings(source)
        distance = block * width + int(generator.integers(width))
        x = mode + distance if generator.integers(2) else mode - 1 - distance
        power = max(block - 1, 0)

        def kept(x: int = x, power: int = power) -> arb:
            return (log_ways(x) - log_ways(mode)).exp() * arb(2) ** power

        if least <= x <= most and _balls.below(word(), word, kept):
            return x


def _halvings(source: BitGenerator) -> int:
    """Draw 1, 2, ... with probabilities 1/2, 1/4, ..."""
    number = 1
    while not (word := _samplers.next_word(source)):
        number += 64
    return number + (word & -word).bit_length() - 1
