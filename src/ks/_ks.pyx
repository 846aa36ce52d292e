"""Bands around an empirical distribution function; serves dpfast/densities/kolmogorov.py.

Synthetic records whose distribution function stays within a level of that of the data: the edges where the bounds on
their counts change, the weights of all paths of counts between the bounds, and the backward walk, which draws one set
of records. The loops are in ``ks.h``, the proofs in docs/proofs/kolmogorov.md.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from numpy.random cimport bitgen_t

from dpfast._kernels._samplers cimport unwrap

import numpy as np

from dpfast._kernels._samplers import next_word


cdef extern from "ks.h" nogil:
    double BAND_FLOOR "DPFAST_BAND_FLOOR"
    ctypedef struct dpfast_row:
        const double *part
        const int32_t *exponent
        Py_ssize_t low
        Py_ssize_t high
    void dpfast_jump_weights(double c, Py_ssize_t last, double *part, int32_t *exponent)
    void dpfast_next_row(dpfast_row q, const double *p, const int32_t *pe, Py_ssize_t low, Py_ssize_t high,
                         double *part, int32_t *exponent)
    Py_ssize_t dpfast_origins(dpfast_row q, const double *p, const int32_t *pe, Py_ssize_t s, double *weights)
    Py_ssize_t dpfast_choose_weight(uint64_t word, const double *weights, Py_ssize_t n, double *cumulative)
    uint64_t dpfast_uniform(bitgen_t *source, uint64_t last)
    double dpfast_exp_neg(double y)
    double dpfast_one_minus_exp_neg(double y)


cdef inline int64_t _lowest_rank(int64_t n, int64_t k, int64_t level, Py_ssize_t i) noexcept nogil:
    """The i-th smallest synthetic record is at least the record of this rank; 0 or less: no bound."""
    return -((level - n * i) // k) if n * i <= level else (n * i - level + k - 1) // k


cdef inline int64_t _highest_rank(int64_t n, int64_t k, int64_t level, Py_ssize_t i) noexcept nogil:
    """The i-th smallest synthetic record is at most the record of this rank; beyond the last: no bound."""
    return (n * (i - 1) + level) // k + 1


def feasible(const int64_t[::1] codes not None, Py_ssize_t count, int64_t n, int64_t k, int64_t level):
    """Whether any `count` synthetic records are within the level.

    **Law** true for all levels from some level on. **Assumes** as `Band`. **Cost** O(count).
    """
    cdef Py_ssize_t i
    cdef int64_t lowest, highest
    for i in range(1, count + 1):
        lowest, highest = _lowest_rank(n, k, level, i), _highest_rank(n, k, level, i)
        if 1 <= lowest and highest <= codes.shape[0] and codes[lowest - 1] > codes[highest - 1]:
            return False
    return True


def decay(double y, double length):
    """exp(-y) (1 - exp(-length)), for y, length >= 0; relative error <= 2**-46 for y <= 1."""
    return dpfast_exp_neg(y) * dpfast_one_minus_exp_neg(length)


def choose(bit_generator, const double[::1] weights not None, *, bint exact=False):
    """An index i with probability w_i / sum_j w_j, with the exact values of the doubles.

    **Law** exact. **Assumes** weights positive, their sum finite. **Cost** one word, further ones with probability
    2**-47.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef double[::1] cumulative = np.empty(weights.shape[0])
    cdef uint64_t word
    cdef Py_ssize_t chosen
    with bit_generator.lock, nogil:
        word = source.next_uint64(source.state)
        chosen = dpfast_choose_weight(word, &weights[0], weights.shape[0], &cumulative[0])
    if exact or chosen < 0:
        from dpfast._kernels._balls import choose_weight
        chosen = choose_weight(word, lambda: next_word(bit_generator), np.asarray(weights))
    return chosen


cdef class Band:
    """All vectors of `count` codes whose empirical distribution function is within a level of that of the data.

    With N(c), S(c) the numbers of records and of synthetic records up to code c: ``|k N(c) - n S(c)| <= level`` for
    all c, n and k the numbers of both over their greatest common divisor. `part` * 2**`exponent` is the number of those
    vectors times ``rate**count / count!``, up to rounding.

    **Law** of a draw: a path of counts, each step back chosen with a probability that is a quotient of doubles
    (`odds`), then codes uniform in their cells, in random order. Every path has at least the probability weight /
    total, up to the margin of docs/proofs/kolmogorov.md, and exactly that, up to the margin, if the draw is certain.

    **Assumes** `codes` sorted, in 0..size - 1, at least one; ``1 <= count < 2**13``; the level at least 0 and feasible;
    `keep` for draws.

    **Cost** at most 2 count + 1 rows of one state for each count inside the bounds, about 10 ns per relevant
    term, 12 bytes per state if kept; a draw, O(states).

    **Reference** Noe 1972 and Steck 1971 for the recursion.
    """

    cdef readonly double part
    cdef readonly int64_t exponent
    cdef readonly Py_ssize_t states
    cdef readonly object edges
    cdef Py_ssize_t _rows
    cdef double _rate
    cdef int64_t[::1] _edges, _lows, _highs, _offsets
    cdef double[::1] _parts
    cdef int32_t[::1] _exponents

    def __init__(self, const int64_t[::1] codes not None, int64_t size, Py_ssize_t count, int64_t n, int64_t k,
                 int64_t level, double rate, *, bint keep=True):
        self._rate = rate
        self._edges = np.empty(2 * count + 2, np.int64)
        self._lows = np.empty(2 * count + 2, np.int64)
        self._highs = np.empty(2 * count + 2, np.int64)
        with nogil:
            self._set_bounds(codes, size, count, n, k, level)
        self._offsets = np.empty(self._rows + 1, np.int64)
        cdef Py_ssize_t i, total = 0, largest = 0
        for i in range(self._rows + 1):
            self._offsets[i] = total
            total += self._highs[i] - self._lows[i] + 1
            largest = max(largest, self._highs[i] - self._lows[i] + 1)
        if not keep:
            total = 2 * largest
            for i in range(self._rows + 1):
                self._offsets[i] = largest * (i & 1)
        self.states = total
        self._parts = np.empty(total)
        self._exponents = np.empty(total, np.int32)
        cdef double[::1] jumps = np.empty(count + 1)
        cdef int32_t[::1] jump_exponents = np.empty(count + 1, np.int32)
        with nogil:
            self._parts[0], self._exponents[0] = 0.5, 1
            for i in range(1, self._rows + 1):
                self._jumps(i, self._highs[i] - self._lows[i - 1], &jumps[0], &jump_exponents[0])
                dpfast_next_row(self._row(i - 1), &jumps[0], &jump_exponents[0], self._lows[i], self._highs[i],
                                &self._parts[self._offsets[i]], &self._exponents[self._offsets[i]])
        self.part = self._parts[self._offsets[self._rows]]
        self.exponent = self._exponents[self._offsets[self._rows]]
        self.edges = np.asarray(self._edges[:self._rows + 1])

    cdef int _set_bounds(self, const int64_t[::1] codes, int64_t size, Py_ssize_t count, int64_t n, int64_t k,
                         int64_t level) except -1 nogil:
        """The edges, where a bound changes, with the bounds: below code e there are at most U and at least L records,
        U + 1 being the first whose least code is e or more, L the last whose greatest code is below e."""
        cdef Py_ssize_t low = 0, high = 1, i = 0
        cdef int64_t least = 0, most = -1, rank
        self._edges[0] = self._lows[0] = self._highs[0] = 0
        while True:
            # the next edge is the least code of record `high`, or one above the greatest code of record `low` + 1
            while high <= count:
                rank = _lowest_rank(n, k, level, high)
                least = codes[rank - 1] if rank >= 1 else 0
                if least > self._edges[i]:
                    break
                high += 1
            while low < count:
                rank = _highest_rank(n, k, level, low + 1)
                most = codes[rank - 1] + 1 if rank <= codes.shape[0] else size
                if most > self._edges[i]:
                    break
                low += 1
            self._lows[i] = low
            if self._edges[i] == size:
                self._highs[i] = count
                break
            i += 1
            self._edges[i] = min(least if high <= count else size, most if low < count else size)
            self._highs[i] = high - 1
        self._rows = i
        return 0

    cdef dpfast_row _row(self, Py_ssize_t i) noexcept nogil:
        cdef dpfast_row row
        row.part, row.exponent = &self._parts[self._offsets[i]], &self._exponents[self._offsets[i]]
        row.low, row.high = self._lows[i], self._highs[i]
        return row

    cdef void _jumps(self, Py_ssize_t i, Py_ssize_t last, double *part, int32_t *exponent) noexcept nogil:
        """The weights of 0..last records in the cell below edge i."""
        dpfast_jump_weights(self._rate * <double> (self._edges[i] - self._edges[i - 1]), last, part, exponent)

    def draw(self, bit_generator, *, bint exact=False):
        """One vector of codes, the path of counts it follows, and whether the margin holds for it.

        **Law** that of the class. **Cost** O(states); a word for each step with a choice and two for each code.
        """
        cdef bitgen_t *source = unwrap(bit_generator)
        cdef Py_ssize_t count = self._highs[self._rows], i = self._rows, n = 1, chosen = 0, j
        cdef int64_t s, swap
        cdef uint64_t word = 0
        cdef bint certain = True
        out, path = np.empty(count, np.int64), np.empty(self._rows + 1, np.int64)
        cdef int64_t[::1] z = out, counts = path
        cdef double[::1] weights = np.empty(count + 1), cumulative = np.empty(count + 1), jumps = np.empty(count + 1)
        cdef int32_t[::1] jump_exponents = np.empty(count + 1, np.int32)
        counts[i] = count
        while i > 0:
            with bit_generator.lock, nogil:
                while i > 0:
                    s = counts[i]
                    self._jumps(i, s - self._lows[i - 1], &jumps[0], &jump_exponents[0])
                    n = dpfast_origins(self._row(i - 1), &jumps[0], &jump_exponents[0], s, &weights[0])
                    chosen = 0
                    if n > 1:
                        word = source.next_uint64(source.state)
                        chosen = dpfast_choose_weight(word, &weights[0], n, &cumulative[0])
                        if exact or chosen < 0:
                            break
                    certain &= weights[chosen] > BAND_FLOOR
                    i -= 1
                    counts[i] = self._lows[i] + chosen
            if i > 0:
                from dpfast._kernels._balls import choose_weight
                chosen = choose_weight(word, lambda: next_word(bit_generator), np.asarray(weights[:n]))
                certain &= weights[chosen] > BAND_FLOOR
                i -= 1
                counts[i] = self._lows[i] + chosen
        with bit_generator.lock, nogil:
            for i in range(1, self._rows + 1):
                for j in range(counts[i - 1], counts[i]):
                    z[j] = self._edges[i - 1] + <int64_t> dpfast_uniform(
                        source, <uint64_t> (self._edges[i] - self._edges[i - 1] - 1))
            for i in range(count - 1, 0, -1):
                j = dpfast_uniform(source, i)
                swap = z[i]
                z[i] = z[j]
                z[j] = swap
        return out, path, certain

    def odds(self, const int64_t[::1] path not None):
        """The choices of a path, from the last edge backwards: the chosen weight and all weights.

        The probability of the path is the product of the quotients of the weight and the sum of all weights.
        """
        cdef Py_ssize_t i, n
        cdef double[::1] weights = np.empty(path.shape[0] + path[path.shape[0] - 1])
        cdef double[::1] jumps = np.empty(path[path.shape[0] - 1] + 1)
        cdef int32_t[::1] jump_exponents = np.empty(jumps.shape[0], np.int32)
        odds = []
        for i in range(self._rows, 0, -1):
            self._jumps(i, path[i] - self._lows[i - 1], &jumps[0], &jump_exponents[0])
            n = dpfast_origins(self._row(i - 1), &jumps[0], &jump_exponents[0], path[i], &weights[0])
            odds.append((weights[path[i - 1] - self._lows[i - 1]], np.array(weights[:n])))
        return odds
