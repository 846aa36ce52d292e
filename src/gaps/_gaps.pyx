"""Smooth-sensitivity maxima over a window of order statistics; serves dpfast/mechanisms/smooth.py. Loops: gaps.h."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from numpy.random cimport bitgen_t

from dpfast._kernels._samplers cimport draw_uniform, unwrap
from grid cimport dpfast_encode_array, dpfast_grid

from math import fsum

import numpy as np

from dpfast._kernels._samplers import one_rounded_laplace, one_rounded_student3


cdef extern from "select.h":
    Py_ssize_t select_sort_room(Py_ssize_t n) noexcept nogil
    double *select_sort(double *x, Py_ssize_t n, double *scratch) noexcept nogil

cdef extern from "gaps.h":
    Py_ssize_t dpfast_gap_weights(double beta, double ratio, double *weights, Py_ssize_t n) noexcept nogil
    double dpfast_stretch(const double *lower, Py_ssize_t first, Py_ssize_t last, const double *upper, Py_ssize_t left,
                          Py_ssize_t right, const double *weights) noexcept nogil


def weights(double beta, double ratio, Py_ssize_t most):
    """The discounts W_0 = 1, W_1, ... of a replaced record each, while W_j ratio > 1, at most `most` of them.

    **Law** deterministic, the same on every machine: exp(-beta) W_j <= W_(j+1) <= (exp(-beta) + 2**-45 min(beta, 1) +
    2**-51) W_j. **Assumes** 2**-30 <= beta, 1 <= most. **Cost** one product each.
    **Reference** docs/proofs/smooth-sensitivity.md.
    """
    cdef double[::1] table = np.empty(most)
    cdef Py_ssize_t count
    with nogil:
        count = dpfast_gap_weights(beta, ratio, &table[0], most)
    return np.asarray(table)[:count].copy()


def stretches(const int64_t[::1] low not None, const int64_t[::1] high not None, bint corners,
              const double[::1] weights not None):
    """The discounted gaps of x_(L) and x_(H) from the codes of the ranks up to K = len(weights) from L and from H.

    The gap of the ranks a <= b is max over u, v of W_u W_v (x_(b+u) - x_(a-v)), W = `weights`; 0 without weights. A
    list for (L, H + 1) and (L - 1, H), with `corners` for (L, H + 1), (L, L + 1), (H, H + 1), (L - 1, H), (L - 1, L)
    and (H - 1, H).

    **Law** deterministic, at most the exact maximum times 1 + 2**-51 and at least that maximum times 1 - 2**-46.
    **Assumes** `low` and `high` of length 2K + 1, sorted, below 2**53, no entry of `low` above that of `high` at the
    same place; `weights` as made here. **Cost** O(K log K). **Reference** docs/proofs/smooth-sensitivity.md.
    """
    cdef Py_ssize_t i, number
    cdef double found[6]
    number = _stretches(&low[0], &high[0], corners, weights, found)
    return [found[i] for i in range(number)]


cdef Py_ssize_t _stretches(const int64_t *low, const int64_t *high, bint corners, const double[::1] weights,
                           double *found) except -1:
    """The gaps of `stretches`; returns their number."""
    cdef Py_ssize_t reach = weights.shape[0], size = 2 * reach + 1, i, number
    cdef double *x = <double *> malloc(4 * size * sizeof(double))
    if x == NULL:
        raise MemoryError
    cdef double *below[2]  # of low and high: x_(L), x_(L-1), ...
    cdef double *above[2]  # x_(L), x_(L+1), ...
    with nogil:
        for i in range(size):
            x[i] = <double> low[size - 1 - i]
            x[size + i] = <double> high[size - 1 - i]
            x[2 * size + i] = <double> low[i]
            x[3 * size + i] = <double> high[i]
        for i in range(2):
            below[i], above[i] = x + i * size + reach, x + (2 + i) * size + reach
        number = 0
        for i in range(2):
            found[number] = _stretch(below[0] + i, above[1] + 1 - i, weights)
            if corners:
                found[number + 1] = _stretch(below[0] + i, above[0] + 1 - i, weights)
                found[number + 2] = _stretch(below[1] + i, above[1] + 1 - i, weights)
            number += 3 if corners else 1
    free(x)
    return number


cdef double _stretch(const double *lower, const double *upper, const double[::1] weights) noexcept nogil:
    cdef Py_ssize_t last = weights.shape[0] - 1
    return dpfast_stretch(lower, 0, last, upper, 0, last, &weights[0]) if last >= 0 else 0.0


cdef class GroupBound:
    """What is public of the releases of groups of one size.

    Parameters
    ----------
    first, final : int
        The ranks L <= H.
    pairs : sequence of pairs
        Of the ranks whose gaps count, as 0 for L and 1 for H.
    difference : bool
        Whether the statistic is x_(H) - x_(L), and not x_(L) + ... + x_(H) + corner (x_(L) + x_(H)).
    corner : int
    discounts : ndarray of float64
        See `weights`.
    scale : float
        Of the noise for a bound of 1.
    last : int
        The greatest release code.
    """

    cdef Py_ssize_t _first, _final, _pairs
    cdef Py_ssize_t _low[2]
    cdef Py_ssize_t _high[2]
    cdef bint _difference
    cdef int64_t _corner, _last
    cdef const double[::1] _discounts
    cdef double _scale

    def __init__(self, Py_ssize_t first, Py_ssize_t final, pairs, bint difference, int64_t corner,
                 const double[::1] discounts not None, double scale, int64_t last):
        cdef Py_ssize_t i
        self._first, self._final, self._difference, self._corner = first, final, difference, corner
        self._discounts, self._scale, self._last = discounts, scale, last
        self._pairs = len(pairs)
        for i in range(self._pairs):
            self._low[i], self._high[i] = pairs[i]

    cdef int64_t _center(self, const int64_t *codes) noexcept:
        """The exact statistic of sorted codes."""
        cdef const int64_t *low = codes + self._first - 1
        cdef const int64_t *high = codes + self._final - 1
        cdef int64_t total = self._corner * (low[0] + high[0])
        if self._difference:
            return high[0] - low[0]
        while low <= high:
            total += low[0]
            low += 1
        return total

    cdef double _bound(self, const int64_t *codes, double slack) except -1:
        """The smooth bound, allowing for rounding, of sorted codes with padding: that of one release."""
        cdef Py_ssize_t reach = self._discounts.shape[0], i, k, number
        cdef const int64_t *ends[2]
        cdef double found[6]
        cdef double least = 1.0 / <double> (1 + 2 * self._corner), largest = 0.0
        ends[0], ends[1] = codes + self._first - 1 - reach, codes + self._final - 1 - reach
        for i in range(self._pairs):
            number = _stretches(ends[self._low[i]], ends[self._high[i]], self._corner > 0, self._discounts, found)
            for k in range(number):
                found[k] = max(found[k], least)
            if self._corner:
                for k in range(2):
                    found[k] = fsum((found[3 * k], self._corner * found[3 * k + 1], self._corner * found[3 * k + 2]))
            largest = max(largest, max(found[0], found[1]))
        return largest * (1.0 + slack)


def draw_groups(bit_generator, const double[::1] values not None, const int64_t[::1] offsets not None, Py_ssize_t start,
                int64_t[::1] out not None, list bounds not None, *, double slack, bint student, double lower,
                double upper, double step, double first, int64_t whole):
    """Draw a code for each of the groups start, start + 1, ... into out[start], ... until one has no `GroupBound`.

    **Law** of the statistic plus `one_rounded_student3`, or `one_rounded_laplace`, of the scale times the smooth bound,
    clamped, for group g, the records values[offsets[g]:offsets[g + 1]], from the same words; ``bounds[n]`` is that of n
    records, or None. An empty group draws an integer of 0..whole, from two words. Returns the first group without a
    bound, which is not drawn, or the number of groups.
    **Assumes** values free of NaN, offsets in order, a valid grid of whole + 1 points, at most n + 2 discounts, sums of
    codes below 2**62. **Cost** a sort of each group, and that of `stretches`.
    """
    cdef Py_ssize_t groups = out.shape[0], largest = len(bounds) - 1, room = select_sort_room(largest), g, n, i
    cdef Py_ssize_t reach
    cdef dpfast_grid grid = dpfast_grid(lower, upper, step, lower, first, 0)
    cdef const double *records = &values[0] if values.shape[0] else NULL
    cdef double *sorting = <double *> malloc(2 * (room + 1) * sizeof(double))
    cdef int64_t *room_of_codes = <int64_t *> malloc((3 * largest + 8) * sizeof(int64_t))
    cdef int64_t *codes = room_of_codes + largest + 4
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef int64_t center, draw
    cdef GroupBound bound
    try:
        if sorting == NULL or room_of_codes == NULL:
            raise MemoryError
        for g in range(start, groups):
            n = offsets[g + 1] - offsets[g]
            if n == 0:
                with bit_generator.lock:
                    source.next_uint64(source.state)  # which would choose a box, all being the whole
                    out[g] = <int64_t> draw_uniform(source, whole)
                continue
            bound = bounds[n] if n <= largest else None
            if bound is None:
                return g
            memcpy(sorting, records + offsets[g], n * sizeof(double))
            dpfast_encode_array(&grid, select_sort(sorting, n, sorting + room), codes, n)
            reach = bound._discounts.shape[0] + 1
            for i in range(1, reach + 1):
                codes[-i] = 0
                codes[n - 1 + i] = whole
            center = bound._center(codes)
            if student:
                draw = one_rounded_student3(bit_generator, bound._scale * bound._bound(codes, slack))
            else:
                draw = one_rounded_laplace(bit_generator, bound._scale * bound._bound(codes, slack))
            out[g] = center + min(max(draw, -center), bound._last - center)
        return groups
    finally:
        free(sorting)
        free(room_of_codes)
