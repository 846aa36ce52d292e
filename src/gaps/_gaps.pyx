"""Smooth-sensitivity maxima over a window of order statistics; serves dpfast/mechanisms/smooth.py. Loops: gaps.h."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

import numpy as np


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
    cdef Py_ssize_t reach = weights.shape[0], size = 2 * reach + 1, i, number
    cdef double found[6]
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
    return [found[i] for i in range(number)]


cdef double _stretch(const double *lower, const double *upper, const double[::1] weights) noexcept nogil:
    cdef Py_ssize_t last = weights.shape[0] - 1
    return dpfast_stretch(lower, 0, last, upper, 0, last, &weights[0]) if last >= 0 else 0.0
