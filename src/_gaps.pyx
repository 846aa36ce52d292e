"""Smooth-sensitivity maxima over a window of order statistics; serves dpfast/mechanisms/smooth.py. Loops: gaps.h."""

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


def stretch(const double[::1] lower not None, const double[::1] upper not None, const double[::1] weights not None):
    """max over u, v of W_u W_v (upper[u] - lower[v]), W = `weights`; 0 without weights.

    **Law** deterministic, at most the exact maximum times 1 + 2**-51 and at least that maximum times 1 - 2**-46.
    **Assumes** `lower` nonincreasing, `upper` nondecreasing, integers below 2**53 with upper[0] >= lower[0];
    `weights` as made here. Rows and columns beyond the weights are not read. **Cost** O(K log K), K =
    len(weights). **Reference** docs/proofs/smooth-sensitivity.md.
    """
    cdef Py_ssize_t rows = min(lower.shape[0], weights.shape[0]), columns = min(upper.shape[0], weights.shape[0])
    cdef double most
    if rows == 0 or columns == 0:
        return 0.0
    with nogil:
        most = dpfast_stretch(&lower[0], 0, rows - 1, &upper[0], 0, columns - 1, &weights[0])
    return most
