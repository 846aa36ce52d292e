"""Base measures of the nested-interval law, for dpfast/_measures.py; the weights and the draws are in measure.h.

docs/proofs/base-measures.md
"""

from libc.stdint cimport int64_t, uint64_t

from measure cimport DPFAST_PARTS, dpfast_interval_weight, dpfast_measure, dpfast_set_uniform

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
