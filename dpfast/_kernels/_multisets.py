"""Sorted vectors of codes, each with the product of the weights of its entries in a base measure: exact sums and draws.

https://dpfast.readthedocs.io/en/latest/proofs/joint-quantiles.html
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import comb

import numpy as np
import numpy.typing as npt

from dpfast._kernels._measures import Measure

Kinds = list[tuple[int, int]]


def weight_of_all(measure: Measure | None, first: int, last: int, length: int) -> int:
    """The sum of the weights of all sorted vectors of a length with entries in first..last."""
    if measure is None:
        return comb(last - first + length, length)
    return _sums(measure.kinds(first, last), length)[1][-1]


def weights_of_all(measure: Measure | None, first: int, last: int, length: int) -> list[int]:
    """The same for the lengths 0, 1, ..., `length`."""
    if measure is None:
        return [comb(last - first + r, r) for r in range(length + 1)]
    return _sums(measure.kinds(first, last), length)[1]


def _sums(kinds: Kinds, length: int) -> tuple[list[int], list[int]]:
    """The power sums p_1, ..., p_length, and h_0, ..., h_length: r h_r = p_1 h_(r-1) + ... + p_r h_0."""
    powers = [0] * length
    for weight, codes in kinds:
        term = codes
        for k in range(length):
            term *= weight
            powers[k] += term
    sums = [1]
    for r in range(1, length + 1):
        sums.append(sum(map(int.__mul__, powers, reversed(sums))) // r)
    return powers, sums


def draw(measure: Measure, first: int, last: int, length: int, word: Callable[[], int]) -> npt.NDArray[np.int64]:
    """A sorted vector with entries in first..last, with probability proportional to the product of their weights.

    One term k of r h_r = p_1 h_(r-1) + ... at a time: k copies of a code of weight w, with probability w**k / p_k, and
    a vector of length r - k.
    """

    def below(n: int) -> int:
        return _below(n, word)

    kinds, drawn = measure.kinds(first, last), []
    powers, sums = _sums(kinds, length)
    while length:
        place, k = below(length * sums[length]), 1
        while place >= (terms := powers[k - 1] * sums[length - k]):
            place, k = place - terms, k + 1
        vectors = sums[length - k]  # in each term codes * weight**k for each of these
        edges = accumulate(codes * weight**k * vectors for weight, codes in kinds)
        kind = next(i for i, edge in enumerate(edges) if place < edge)
        drawn += [measure.code_of(kinds[kind][0], first, last, below)] * k
        length -= k
    return np.array(sorted(drawn), np.int64)


def _below(n: int, word: Callable[[], int]) -> int:
    """A uniform integer below n."""
    bits = (n - 1).bit_length()
    words = bits // 64 + 1
    while True:
        place = word()
        for i in range(1, words):
            place += word() << (64 * i)
        place >>= 64 * words - bits
        if place < n:
            return place
