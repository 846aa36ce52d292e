"""Sorted vectors of codes, each with the product of the weights of its entries in a base measure: exact sums and draws.

https://dpfast.readthedocs.io/en/latest/proofs/joint-quantiles.html
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from itertools import accumulate
from math import comb, fsum
from operator import mul

import numpy as np
import numpy.typing as npt

from dpfast._kernels._measures import Measure

Kinds = list[tuple[int, int]]

_DOUBT = 2.0**-34


def weight_of_all(measure: Measure | None, first: int, last: int, length: int) -> int:
    """Return the sum of the weights of all sorted vectors of a length with entries in first..last."""
    if measure is None:
        return comb(last - first + length, length)
    return _sums(measure.kinds(first, last), length)[1][-1]


def weights_of_all(measure: Measure | None, first: int, last: int, length: int) -> list[int]:
    """Return the same for the lengths 0, 1, ..., `length`."""
    if measure is None:
        return [comb(last - first + r, r) for r in range(length + 1)]
    return _sums(measure.kinds(first, last), length)[1]


def _sums(kinds: Kinds, length: int) -> tuple[list[int], list[int]]:
    """Return the power sums p_1, ..., p_length, and h_0, ..., h_length: r h_r = p_1 h_(r-1) + ... + p_r h_0."""
    powers = [0] * length
    for weight, codes in kinds:
        term = codes
        for k in range(length):
            term *= weight
            powers[k] += term
    sums = [1]
    for r in range(1, length + 1):
        sums.append(sum(map(mul, powers, reversed(sums))) // r)
    return powers, sums


def draw(measure: Measure, first: int, last: int, length: int, word: Callable[[], int]) -> npt.NDArray[np.int64]:
    """Return a sorted vector with entries in first..last, with probability proportional to the product of their
    weights.

    One term k of r h_r = p_1 h_(r-1) + ... at a time: k copies of a code of weight w, with probability w**k / p_k, and
    a vector of length r - k. Doubles of p_k and h_r decide where their errors, below 2**-37, leave no doubt.
    """
    whole = int(measure.weights(np.array([first]), np.array([last]))[0])
    powers, sums, drawn = measure.power_sums(first, last, float(whole), length).tolist(), [1.0], []
    for r in range(1, length + 1):
        sums.append(fsum(map(mul, powers, reversed(sums))) / r)
    while length:
        k = _term(list(map(mul, powers[:length], reversed(sums[:length]))), first_word := word())
        if k == 0:
            k = _term_exactly(measure, first, last, length, first_word, word)
        if k == 1:
            drawn.append(measure.point_at(first, last, _below(whole, word)))
        else:
            drawn += [_repeated(measure, first, last, k, word)] * k
        length -= k
    return np.array(sorted(drawn), np.int64)


def _term(terms: list[float], word: int) -> int:
    """Return the number of the term, from 1, in which the word is a place of their sum; 0 in doubt."""
    edges = list(accumulate(terms))
    place, doubt = word * 2.0**-64 * edges[-1], _DOUBT * edges[-1]
    k = bisect(edges[:-1], place)
    below = edges[k - 1] if k else -doubt
    return k + 1 if place - below >= doubt and (k + 1 == len(edges) or edges[k] - place >= doubt) else 0


def _term_exactly(measure: Measure, first: int, last: int, length: int, word: int, more: Callable[[], int]) -> int:
    """Return the same in integers, with further digits of the place."""
    powers, sums = _sums(measure.kinds(first, last), length)
    edges = list(accumulate(map(mul, powers, reversed(sums[:length]))))
    digits, place = 64, word
    while (k := bisect(edges, place * edges[-1] >> digits)) != bisect(edges, ((place + 1) * edges[-1] - 1) >> digits):
        digits, place = digits + 64, (place << 64) + more()
    return k + 1


def _repeated(measure: Measure, first: int, last: int, k: int, word: Callable[[], int]) -> int:
    """Return a code of weight w with probability w**k / p_k."""
    kinds = measure.kinds(first, last)
    edges = list(accumulate(codes * weight**k for weight, codes in kinds))
    kind = bisect(edges, _below(edges[-1], word))
    return measure.code_of(kinds[kind][0], first, last, lambda n: _below(n, word))


def _below(n: int, word: Callable[[], int]) -> int:
    """Return a uniform integer below n."""
    bits = (n - 1).bit_length()
    words = bits // 64 + 1
    while True:
        place = word()
        for i in range(1, words):
            place += word() << (64 * i)
        place >>= 64 * words - bits
        if place < n:
            return place
