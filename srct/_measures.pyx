"""Base measures of the nested-interval law, for dpfast/_measures.py; the weights and the draws are in measure.h.

docs/proofs/base-measures.md
"""

from libc.stdint cimport int64_t, uint64_t

from measure cimport DPFAST_PARTS, dpfast_count, dpfast_interval_weight, dpfast_measure, dpfast_set_uniform

from collections import Counter

import numpy as np

from dpfast._kernels._samplers import next_word

MOST_PARTS = DPFAST_PARTS


cdef class Measure:
    """An integer weight for each code of 0..last: `unit`, and for each part that holds the code the weight of the part.

    With `table`, its entries are the weights instead.

    **Assumes** `parts` of (weight, numerator, denominator): part j holds, for each integer i, the least code k with
    (k + offset + 1/2) numerator / denominator >= i, all positive, the numerator odd; the spacing, denominator /
    numerator, is at least 2 and divides that of the next part; (last + offset + 1) numerator < 2**50; 0 <= offset; at
    most `MOST_PARTS`. A table of last + 1 positive weights. The total weight is below 2**62. **Cost** O(1), or 8 bytes
    per code.
    """

    def __init__(self, int64_t last, int64_t unit=1, int64_t offset=0, object parts=(), object table=None):
        cdef const int64_t[::1] below
        cdef Py_ssize_t j
        before = 1, 1
        self.unit, self.offset, self.parts, self.table = unit, offset, parts, table
        self.measure.unit, self.measure.offset, self.measure.table = unit, offset, NULL
        self.measure.parts = len(parts)
        for j, (weight, numerator, denominator) in enumerate(parts):
            # Python divides integers with one rounding
            factor = before[0] * numerator / (before[1] * denominator)
            self.measure.part[j].factor, self.measure.part[j].shift = factor, factor / 2 - 0.5
            self.measure.part[j].weight = weight
            self.measure.part[j].numerator, self.measure.part[j].denominator = numerator, denominator
            before = denominator, numerator
        if table is not None:
            below = np.concatenate([[0], np.cumsum(table)])
            self._below = below  # kept alive: the struct points into it
            self.measure.table = &below[0]
        self.measure.total = dpfast_interval_weight(&self.measure, 0, last)
        self.last, self.total = last, self.measure.total
        self.least = unit if table is None else min(table)

    def __reduce__(self):
        return Measure, (self.last, self.unit, self.offset, self.parts, self.table)

    def weights(self, const int64_t[:] lower not None, const int64_t[:] upper not None):
        """The weights of the intervals lower[t]..upper[t], exact.

        **Law** deterministic. **Assumes** 0 <= lower, upper <= last, lower <= upper + 1, equal lengths. **Cost**
        O(parts) each.
        """
        cdef Py_ssize_t t
        out = np.empty(lower.shape[0], np.int64)
        cdef int64_t[::1] view = out
        for t in range(lower.shape[0]):
            view[t] = dpfast_interval_weight(&self.measure, lower[t], upper[t])
        return out

    def kinds(self, int64_t first, int64_t last):
        """The distinct weights of the codes first..last, ascending, and how many codes have each: a list of pairs.

        **Law** deterministic. **Assumes** 0 <= first <= last + 1, last in range. **Cost** O(parts), or O(codes) for a
        table.
        """
        cdef const dpfast_measure *measure = &self.measure
        cdef double below = <double> (first + measure.offset - 1), up_to = <double> (last + measure.offset)
        cdef int64_t weight = measure.unit, left = last - first + 1, inside
        cdef Py_ssize_t j
        if self.table is not None:
            return sorted(Counter(self.table[first:last + 1]).items())
        found = []
        for j in range(measure.parts):
            below, up_to = dpfast_count(&measure.part[j], below), dpfast_count(&measure.part[j], up_to)
            inside = <int64_t> (up_to - below)
            if inside < left:
                found.append((weight, left - inside))
            weight, left = weight + measure.part[j].weight, inside
        if left:
            found.append((weight, left))
        return found

    def code_of(self, int64_t weight, int64_t first, int64_t last, below):
        """A uniform code of those of first..last that have this weight; ``below(n)`` is a uniform integer below n.

        **Law** exact: a code of the last part that all codes of this weight are in, until it is in no further part.
        **Assumes** a weight of `kinds`. **Cost** O(parts) for each of a few codes, or O(codes) for a table.
        """
        cdef const dpfast_measure *measure = &self.measure
        cdef double before = <double> (first + measure.offset - 1), up_to = <double> (last + measure.offset)
        cdef int64_t inside = measure.unit, code, index, twice
        cdef Py_ssize_t part = 0
        if self.table is not None:
            codes = [k for k in range(first, last + 1) if self.table[k] == weight]
            return codes[below(len(codes))]
        while inside < weight:
            before, up_to = dpfast_count(&measure.part[part], before), dpfast_count(&measure.part[part], up_to)
            inside += measure.part[part].weight
            part += 1
        while True:
            code = index = <int64_t> before + 1 + <int64_t> below(<int64_t> (up_to - before))
            if part:
                twice = 2 * measure.part[part - 1].numerator
                code = (2 * index * measure.part[part - 1].denominator - twice // 2 + twice - 1) // twice
            code -= measure.offset
            if dpfast_interval_weight(measure, code, code) == weight:
                return code


cdef const dpfast_measure *of_measure(Measure measure, dpfast_measure *uniform, int64_t last) noexcept:
    """The weights of a measure; for None those of the uniform measure, which it puts into `uniform`."""
    dpfast_set_uniform(uniform, last)
    return uniform if measure is None else &measure.measure


cdef Py_ssize_t choose_level_exactly(object bit_generator, uint64_t word, const dpfast_measure *measure,
                                     const int64_t *lower, const int64_t *upper, Py_ssize_t n,
                                     Py_ssize_t depth, double epsilon) except -1:
    from dpfast._kernels._balls import choose_level
    weights = [dpfast_interval_weight(measure, lower[t], upper[t]) for t in range(n)]
    return choose_level(word, lambda: next_word(bit_generator), weights, epsilon, measure.total, depth)


cdef Py_ssize_t flip_level_exactly(object bit_generator, const uint64_t *words, const int64_t *sizes, Py_ssize_t n,
                                   Py_ssize_t depth, double epsilon) except -1:
    from dpfast._kernels._balls import flip_level
    weights = [sizes[t] for t in range(n + 1)]
    drawn = [words[t] for t in range(n + 1)]
    return flip_level(drawn, lambda: next_word(bit_generator), weights, epsilon, depth)
