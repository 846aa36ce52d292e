"""Sorted vectors of codes, each with the product of the weights of its entries in a base measure: exact sums and draws.

https://dpfast.readthedocs.io/en/latest/proofs/joint-quantiles.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import ceil, comb, floor

import numpy as np
import numpy.typing as npt

from dpfast._kernels._measures import Measure

Kinds = list[tuple[int, int]]


def kinds(measure: Measure, first: int, last: int) -> Kinds:
    """The distinct weights of the codes first..last, and how many codes have each."""
    if measure.table is not None:
        return sorted(Counter(measure.table[first : last + 1]).items())
    found, weight, left = [], measure.unit, last - first + 1
    for more, numerator, denominator in measure.parts:
        before, up_to = (_multiples(measure, k, numerator, denominator) for k in (first - 1, last))
        found.append((weight, left - (up_to - before)))
        weight, left = weight + more, up_to - before
    return [(weight, codes) for weight, codes in [*found, (weight, left)] if codes]


def _multiples(measure: Measure, k: int, numerator: int, denominator: int) -> int:
    """The index of the last multiple up to code k."""
    return floor(Fraction((2 * (k + measure.offset) + 1) * numerator, 2 * denominator))


def weight_of_all(measure: Measure | None, first: int, last: int, length: int) -> int:
    """The sum of the weights of all sorted vectors of a length with entries in first..last."""
    if measure is None:
        return comb(last - first + length, length)
    return _sums(kinds(measure, first, last), length)[-1]


def _sums(of: Kinds, length: int) -> list[int]:
    """The sums for all lengths up to this one: r h_r = p_1 h_(r-1) + ... + p_r h_0, p_k the k-th power sum."""
    powers = [sum(codes * weight**k for weight, codes in of) for k in range(1, length + 1)]
    sums = [1]
    for r in range(1, length + 1):
        sums.append(sum(powers[k] * sums[r - 1 - k] for k in range(r)) // r)
    return sums


def draw(measure: Measure, first: int, last: int, length: int, word: Callable[[], int]) -> npt.NDArray[np.int64]:
    """A sorted vector with entries in first..last, with probability proportional to the product of their weights.

    One term k of r h_r = p_1 h_(r-1) + ... at a time: k copies of a code of weight w, with probability w**k / p_k, and
    a vector of length r - k.
    """
    of, drawn = kinds(measure, first, last), []
    sums = _sums(of, length)
    while length:
        place, k = _below(length * sums[length], word), 0
        while True:  # the term, and in it the weight: codes * weight**k for each of h_(r-k) vectors
            k += 1
            terms = [codes * weight**k * sums[length - k] for weight, codes in of]
            if place < sum(terms):
                break
            place -= sum(terms)
        for term, (weight, _) in zip(terms, of, strict=True):
            if place < term:
                drawn += [_code_of(measure, weight, first, last, word)] * k
                break
            place -= term
        length -= k
    return np.array(sorted(drawn), np.int64)


def _code_of(measure: Measure, weight: int, first: int, last: int, word: Callable[[], int]) -> int:
    """A uniform code among those of first..last that have this weight."""
    if measure.table is not None:
        codes = [k for k in range(first, last + 1) if measure.table[k] == weight]
        return codes[_below(len(codes), word)]
    inside, part = measure.unit, None
    for more, numerator, denominator in measure.parts:
        if inside < weight:
            inside, part = inside + more, (numerator, denominator)
    while True:  # a code of the last part that a code of this weight is in, until it is in no further part
        if part is None:
            code = first + _below(last - first + 1, word)
        else:
            numerator, denominator = part
            before, up_to = (_multiples(measure, k, numerator, denominator) for k in (first - 1, last))
            index = before + 1 + _below(up_to - before, word)
            code = ceil(Fraction(index * denominator, numerator) - Fraction(1, 2)) - measure.offset
        if measure.weights(np.array([code]), np.array([code])) == weight:
            return code


def _below(n: int, word: Callable[[], int]) -> int:
    """A uniform integer below n."""
    words = (n - 1).bit_length() // 64 + 1
    while True:
        place = sum(word() << (64 * i) for i in range(words)) >> (64 * words - (n - 1).bit_length())
        if place < n:
            return place
