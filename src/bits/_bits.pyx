"""Randomised signs of vectors, packed in bits, and the sums of their columns; serves dpfast/local/hypercube.py.

The loops are in ``bits.h``, the proofs in docs/proofs/hypercube.md. Words for a few rows are drawn at once, each row's
in the order that its function states; the rare further words come after them, row by row.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from numpy.random cimport bitgen_t

from dpfast._kernels._samplers cimport unwrap

from bisect import bisect_right

import numpy as np

from dpfast._kernels._samplers import fill_words, next_word


cdef extern from "bits.h" nogil:
    void dpfast_round_bits(bitgen_t *source, const double *x, Py_ssize_t n, double inverse, const uint64_t *words,
                           const uint64_t *one, uint64_t *out)
    void dpfast_flip_minority(bitgen_t *source, uint64_t *words, Py_ssize_t d, uint64_t threshold, uint64_t *out)
    Py_ssize_t dpfast_ones(const uint64_t *words, uint64_t threshold, const uint64_t *few, Py_ssize_t favoured,
                           const uint64_t *many, Py_ssize_t others)
    void dpfast_flip_weight(bitgen_t *source, uint64_t *mask, Py_ssize_t k, Py_ssize_t ones, uint64_t *out)
    void dpfast_subset(uint64_t seed, Py_ssize_t d, Py_ssize_t k, uint64_t *taken, int64_t *out)
    void dpfast_have_ones(const uint64_t *rows, Py_ssize_t n, Py_ssize_t d, int weight, uint8_t *right)
    void dpfast_count_columns(const uint64_t *rows, Py_ssize_t n, Py_ssize_t stride, Py_ssize_t words, int64_t *counts,
                              int64_t *ones)


# Words drawn at once: 128 KiB, which a second-level cache holds.
cdef Py_ssize_t WORDS = 2 ** 14


cdef void set_powers(uint64_t *one) noexcept nogil:
    """1, 2, 4, ..., 2**63."""
    cdef int j
    for j in range(64):
        one[j] = <uint64_t> 1 << j


def randomize_majority(bit_generator, const double[:, ::1] x not None, double inverse, uint64_t threshold,
                       uint64_t[:, ::1] out not None):
    """For each row of x a row of bits: coordinates rounded to signs, of which a random minority or majority is flipped.

    **Law** exact: bit j of the rounded row is 1 with probability code_j 2**-48, code_j of (1 + x_j inverse) / 2; then
    those of a mask F are flipped, P(F) proportional to threshold / (2**64 - threshold) where F has fewer ones than
    zeros, to 1 elsewhere. **Assumes** d = x.shape[1] >= 1, ceil(d / 64) words in a row of `out`, threshold >= 2**63.
    **Cost** ceil(d / 4) words to round with, ceil(d / 64) for the mask, one coin; further words for a coordinate with
    probability 2**-16, and for a tie (even d only). **Reference** docs/proofs/hypercube.md.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t n = x.shape[0], d = x.shape[1], lanes = (d + 3) // 4, width = lanes + (d + 63) // 64 + 1
    cdef Py_ssize_t chunk = max(1, min(n, WORDS // width)), start = 0, rows, i
    cdef uint64_t[::1] words = np.empty(chunk * width, np.uint64)
    cdef uint64_t one[64]
    set_powers(one)
    while start < n:
        rows = min(chunk, n - start)
        fill_words(bit_generator, words[:rows * width])
        with bit_generator.lock, nogil:
            for i in range(rows):
                dpfast_round_bits(source, &x[start + i, 0], d, inverse, &words[i * width], one, &out[start + i, 0])
                dpfast_flip_minority(source, &words[i * width + lanes], d, threshold, &out[start + i, 0])
        start += rows


def decide_ones(bit_generator, bint favoured, uint64_t word, inside, outside):
    """The number of ones of a mask, in integers, if the first 64 digits of a uniform number, `word`, do not decide.

    **Law** the class of that number and further words among the edges, those of `inside` where `favoured`, else those
    of `outside`, whose classes follow. **Assumes** as `randomize_threshold`. **Cost** once in 2**64 / k masks.
    """
    edges = inside if favoured else outside
    first, bits, total = int(word), 64, edges[len(edges) - 1]
    while True:
        index = bisect_right(edges, (first * total) >> bits)
        if edges[index] << bits >= (first + 1) * total:
            return index if favoured else len(inside) + index
        first, bits = first << 64 | next_word(bit_generator), bits + 64


def digits(edges):
    """The first 64 binary digits of each fraction edges[i] / edges[-1] except the last; edges as in `decide_ones`."""
    *inner, total = edges
    return np.array([(edge << 64) // total for edge in inner], np.uint64)


cdef class Masks:
    """The masks of k bits in two classes, those with few ones and the others, for `randomize_threshold`.

    **Assumes** `inside`, the cumulative numbers of masks of the first class with 0, 1, ... ones, and `outside`, those
    of the second class from there on; len(inside) + len(outside) = k + 1, both >= 1. **Cost** O(k).
    """

    cdef readonly object inside, outside
    cdef const uint64_t[::1] _few, _many

    def __init__(self, inside, outside):
        self.inside, self.outside = inside, outside
        self._few, self._many = digits(inside), digits(outside)

    cdef Py_ssize_t ones(self, object bit_generator, const uint64_t *words, uint64_t threshold) except -1 nogil:
        """The number of ones of a mask, from the coin and another word."""
        cdef const uint64_t *few = &self._few[0] if self._few.shape[0] else NULL
        cdef const uint64_t *many = &self._many[0] if self._many.shape[0] else NULL
        cdef Py_ssize_t found = dpfast_ones(words, threshold, few, self._few.shape[0], many, self._many.shape[0])
        if found < 0:
            with gil:
                found = decide_ones(bit_generator, words[0] < threshold, words[1], self.inside, self.outside)
        return found


def randomize_threshold(bit_generator, const double[:, ::1] x not None, double inverse, uint64_t threshold,
                        Py_ssize_t k, Masks masks not None, uint64_t[:, ::1] out not None):
    """Like `randomize_majority` for k random coordinates of each row; the favoured masks are those with few ones.

    A row of `out` is a public seed, which defines a subset, and the bits of the coordinates in it, in the subset's
    order; only the bits where k = d.

    **Law** exact: the mask is in the first class with probability threshold 2**-64, uniform in either case. The
    subset is uniform as far as `subsets` is. **Assumes** 1 <= k <= d, masks of k bits. **Cost** a word for the seed,
    ceil(k / 4) to round with, a coin, one for the number of ones, ceil(k / 64) for the mask; about sqrt(k) further ones
    to give it that number of ones, and as above. **Reference** docs/proofs/hypercube.md.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t n = x.shape[0], d = x.shape[1], seeds = k < d, lanes = (k + 3) // 4, length = (k + 63) // 64
    cdef Py_ssize_t width = seeds + lanes + 2 + length, chunk = max(1, min(n, WORDS // width))
    cdef Py_ssize_t start = 0, rows, i, j, ones
    cdef uint64_t *w
    cdef uint64_t[::1] words = np.empty(chunk * width + 2 * k + (d + 63) // 64, np.uint64)
    cdef double *chosen = <double *> &words[chunk * width]
    cdef int64_t *subset = <int64_t *> &words[chunk * width + k]
    cdef uint64_t *taken = &words[chunk * width + 2 * k]
    cdef uint64_t one[64]
    set_powers(one)
    for j in range(k):
        subset[j] = j
    for j in range((d + 63) // 64):
        taken[j] = 0
    while start < n:
        rows = min(chunk, n - start)
        fill_words(bit_generator, words[:rows * width])
        with bit_generator.lock, nogil:
            for i in range(rows):
                w = &words[i * width]
                if seeds:
                    out[start + i, 0] = w[0]
                    dpfast_subset(w[0], d, k, taken, subset)
                w += seeds
                for j in range(k):
                    chosen[j] = x[start + i, subset[j]]
                dpfast_round_bits(source, chosen, k, inverse, w, one, &out[start + i, seeds])
                w += lanes
                ones = masks.ones(bit_generator, w, threshold)
                dpfast_flip_weight(source, w + 2, k, ones, &out[start + i, seeds])
        start += rows


def subsets(const uint64_t[:] seeds not None, Py_ssize_t d, int64_t[:, ::1] out not None):
    """For each public seed the subset of 0..d-1 that it defines, of the size of a row of `out`.

    **Law** for a uniform seed, uniform as far as SplitMix64 is; not part of any guarantee. **Cost** O(k), d bits.
    **Reference** R. W. Floyd, in Bentley, Programming pearls, Comm. ACM 30 (1987).
    """
    cdef Py_ssize_t i, k = out.shape[1]
    cdef uint64_t[::1] taken = np.zeros((d + 63) // 64, np.uint64)
    with nogil:
        for i in range(seeds.shape[0]):
            dpfast_subset(seeds[i], d, k, &taken[0], &out[i, 0])


def count_columns(const uint64_t[:, ::1] reports not None, int64_t[::1] counts not None, int64_t[::1] ones=None):
    """counts[j] += the number of rows whose bit j is 1; ``64 * reports.shape[1]`` counts.

    And ones[i] += the number of ones of row i, where `ones` is given: in the same pass.

    **Law** exact, below 2**63 rows. **Cost** O(words), never expanded: carry-save counters of eight rows at a time,
    whose sums are expanded once for 65,472 rows.
    **Reference** Harley and Seal, in Warren, Hacker's delight, 5-1.
    """
    cdef int64_t *each = NULL
    if ones is not None and ones.shape[0]:
        each = &ones[0]
    if reports.shape[0]:
        with nogil:
            dpfast_count_columns(&reports[0, 0], reports.shape[0], reports.shape[1], reports.shape[1], &counts[0], each)


def have_ones(const uint64_t[:, ::1] reports not None, Py_ssize_t d, int weight, uint8_t[::1] out not None):
    """Fill with whether each row of d bits has `weight` ones, and zeros beyond. **Cost** half a nanosecond a word."""
    if reports.shape[0]:
        with nogil:
            dpfast_have_ones(&reports[0, 0], reports.shape[0], d, weight, &out[0])


def add_subsets(const uint64_t[:, ::1] reports not None, Py_ssize_t k, int64_t[::1] sums not None):
    """sums[j] += +1 for each report with j in its subset whose bit is 1, -1 where it is 0; reports with seeds.

    **Law** exact. **Assumes** 1 <= k < d = len(sums), 1 + ceil(k / 64) words in a report. **Cost** O(k) each.
    """
    cdef Py_ssize_t i, j, d = sums.shape[0]
    cdef uint64_t[::1] taken = np.zeros((d + 63) // 64, np.uint64)
    cdef int64_t[::1] subset = np.empty(k, np.int64)
    with nogil:
        for i in range(reports.shape[0]):
            dpfast_subset(reports[i, 0], d, k, &taken[0], &subset[0])
            for j in range(k):
                sums[subset[j]] += 2 * <int64_t> (reports[i, 1 + j // 64] >> (j % 64) & 1) - 1
