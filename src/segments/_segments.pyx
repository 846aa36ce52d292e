"""Exact sums of the codes of many groups, and the values of releases of them; serves dpfast/mechanisms/grouped_sums.py.

docs/proofs/groups.md
"""

from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    ctypedef unsigned long long whole "unsigned __int128"

cdef extern from "segments.h" nogil:
    ctypedef struct dpfast_spread:
        int64_t sensitivity
        int64_t last
        int shift

    void dpfast_add_code(int64_t *group, int64_t code, int64_t last, int half, Py_ssize_t width)
    double dpfast_quotient(whole a, uint64_t b)
    dpfast_spread dpfast_spread_of(int64_t n, int64_t last)
    int64_t dpfast_spread_code(const int64_t *group, int shift)
    double dpfast_spread_value(int64_t code, int64_t n, int64_t last)


def add_by_label(const int64_t[:] labels not None, const int64_t[::1] codes not None, int64_t last, bint half,
                 int64_t[:, ::1] sums not None):
    """Add each code of 0..last to the sums of the group of its label 0..G - 1: the number of records, the sum of codes.

    With four columns of `sums`, the sum of squares, too: its low and its high word. A code below 0 is a missing record;
    with `half` it becomes 0 at an even place in its group and `last` at an odd one, else it is left out.

    **Law** deterministic; other labels are left out. **Assumes** labels and codes of equal length, `sums` of two or
    four columns, the number of records times `last` below 2**62. **Cost** one pass.
    """
    cdef Py_ssize_t i, n = labels.shape[0], width = sums.shape[1]
    cdef uint64_t groups = sums.shape[0], g
    with nogil:
        if width == 2:  # a loop of its own, in which the compiler knows the width
            for i in range(n):
                g = <uint64_t> labels[i]
                if g < groups:
                    dpfast_add_code(&sums[g, 0], codes[i], last, half, 2)
        else:
            for i in range(n):
                g = <uint64_t> labels[i]
                if g < groups:
                    dpfast_add_code(&sums[g, 0], codes[i], last, half, 4)


def add_by_offset(const int64_t[::1] offsets not None, const int64_t[::1] codes not None, int64_t last, bint half,
                  int64_t[:, ::1] sums not None):
    """The same for group g the records offsets[g]..offsets[g + 1] - 1.

    **Law**, **Assumes**, **Cost**: as `add_by_label`; offsets in order, one more than groups.
    """
    cdef Py_ssize_t g, i, width = sums.shape[1]
    with nogil:
        for g in range(sums.shape[0]):
            for i in range(offsets[g], offsets[g + 1]):
                dpfast_add_code(&sums[g, 0], codes[i], last, half, width)


def spreads(const int64_t[:, ::1] sums not None, int64_t last, int64_t[::1] codes not None,
            int64_t[::1] lasts not None, int64_t[::1] sensitivities not None):
    """The release codes of the variance of each group, their largest, and their sensitivity; empty groups are skipped.

    **Law** deterministic, exact: that of `dpfast.statistics.Variance` for n, the first column of `sums`. **Assumes**
    four columns, `last` > 0, n `last` below 2**62. **Cost** O(1) for each group.
    **Reference** docs/proofs/exact-sums.md.
    """
    cdef Py_ssize_t g
    cdef dpfast_spread spread
    with nogil:
        for g in range(sums.shape[0]):
            if sums[g, 0] == 0:
                continue
            spread = dpfast_spread_of(sums[g, 0], last)
            codes[g] = dpfast_spread_code(&sums[g, 0], spread.shift)
            lasts[g], sensitivities[g] = spread.last, spread.sensitivity


def spread_values(const int64_t[::1] codes not None, const int64_t[::1] sizes not None, int64_t last, double unit,
                  double[::1] out not None):
    """The variances that release codes mean for groups of these sizes, in units of a power of two.

    **Law** deterministic, rounded once. **Assumes** as `spreads`, sizes of 1 to 2**32 - 1, values that are 0 or normal.
    **Cost** O(1) for each group.
    """
    cdef Py_ssize_t g
    with nogil:
        for g in range(codes.shape[0]):
            out[g] = dpfast_spread_value(codes[g], sizes[g], last) * unit


def quotients(const int64_t[::1] numerators not None, const int64_t[::1] denominators not None, double unit,
              double[::1] out not None):
    """numerators / denominators * unit, a power of two.

    **Law** deterministic, rounded once. **Assumes** denominators of at least 1, values that are 0 or normal.
    **Cost** O(1) for each.
    """
    cdef Py_ssize_t i
    cdef int64_t a
    cdef double value
    with nogil:
        for i in range(numerators.shape[0]):
            a = numerators[i]
            value = dpfast_quotient(<whole> <uint64_t> (-a if a < 0 else a), <uint64_t> denominators[i]) * unit
            out[i] = -value if a < 0 else value
