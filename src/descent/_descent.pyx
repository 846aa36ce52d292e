"""Sequential private gradient loops; serves dpfast/local/descent.py and search.py. The loops are in ``descent.h``."""

from libc.stdint cimport int64_t, uint16_t, uint64_t
from numpy.random cimport bitgen_t

from dpfast._kernels._samplers cimport unwrap

import numpy as np

from dpfast._kernels._samplers import _words


cdef extern from "descent.h" nogil:
    void dpfast_split_lanes(const uint64_t *words, uint16_t *lanes, Py_ssize_t n)
    void dpfast_settle(bitgen_t *source, uint64_t threshold, uint16_t *lanes, Py_ssize_t n)
    void dpfast_descend(const double *x, const double *push, const uint16_t *lanes, Py_ssize_t n, Py_ssize_t runs,
                        uint16_t top, double lean, double lower, double upper, double missing, double *theta,
                        double *total)
    void dpfast_descend_once(const double *x, const double *push, const uint16_t *lanes, Py_ssize_t n, uint16_t top,
                             double lean, double lower, double upper, double missing, double *theta, double *total)
    void dpfast_test(const double *x, const uint64_t *words, Py_ssize_t n, uint64_t threshold, double theta,
                     double lower, double upper, double missing, const double *evidence, double enough,
                     int64_t *counts)
    void dpfast_pushes(uint64_t first, double scale, double decay, double *out, Py_ssize_t n)
    void dpfast_powers(uint64_t first, double decay, double *powers, double *factors, Py_ssize_t n)
    enum:
        DPFAST_RUNS
    void dpfast_descend_together(const double *x, const double *powers, const double *factors, const uint16_t *lanes,
                                 Py_ssize_t n, uint16_t top, double lean, double lower, double upper, double missing,
                                 const int64_t *first, const double *scale, double *theta, double *total)

RUNS = DPFAST_RUNS  # side by side


def fill_pushes(uint64_t first, double scale, double decay, double[::1] out not None):
    """Fill with scale * i**-decay, i = first, first + 1, ...: the step of each person's report.

    **Law** deterministic, the same bits on every machine; relative error below 2**-44. **Assumes** first >= 1, decay
    in [0, 1], scale positive and finite. **Cost** about 6 ns each, more for
    the first 2**13.
    """
    with nogil:
        dpfast_pushes(first, scale, decay, &out[0] if out.shape[0] else NULL, out.shape[0])


def fill_powers(uint64_t first, double decay, double[::1] powers not None, double[::1] factors not None):
    """Fill with two numbers whose product is i**-decay, i = first, first + 1, ...: `fill_pushes` without a scale.

    **Law** deterministic; a push is (scale * power) * factor. **Assumes** as `fill_pushes`; arrays of one length.
    **Cost** as `fill_pushes`.
    """
    if powers.shape[0]:
        with nogil:
            dpfast_powers(first, decay, &powers[0], &factors[0], powers.shape[0])


def fill_coins(bit_generator, uint64_t threshold, uint16_t[:, ::1] lanes not None, Py_ssize_t run, Py_ssize_t first):
    """Fill column `run` from row `first` on with the coins that `descend` would draw for these records.

    **Law** a coin means "keep" where it is below the first 16 bits of `threshold`, with probability threshold / 2**64.
    **Assumes** 0 <= run < RUNS columns, first >= 0; threshold >= 2**48. **Cost** as the coins of `descend`, 1 ns.
    """
    cdef Py_ssize_t n = lanes.shape[0] - first, count = (n + 3) // 4, i
    cdef uint64_t[::1] words
    cdef uint16_t[::1] coins
    cdef bitgen_t *source
    if n <= 0:
        return
    words, coins = _words(bit_generator, count), np.empty(4 * count, np.uint16)
    source = unwrap(bit_generator)
    with bit_generator.lock, nogil:
        dpfast_split_lanes(&words[0], &coins[0], count)
        dpfast_settle(source, threshold, &coins[0], n)
    with nogil:
        for i in range(n):
            lanes[first + i, run] = coins[i]


def descend_together(const uint16_t[:, ::1] lanes not None, uint64_t threshold, const double[::1] x not None,
                     const double[::1] powers not None, const double[::1] factors not None, double lean, double lower,
                     double upper, double missing, const int64_t[::1] first not None, const double[::1] scale not None,
                     double[::1] theta not None, double[::1] total not None):
    """`descend` for RUNS runs with the coins of `fill_coins`: run r begins at record first[r], with pushes of scale[r].

    **Law** that of `descend` for each run by itself, the same bits. **Assumes** as `descend`; as many rows, powers and
    factors as records, RUNS columns and entries of `first`, `scale`, `theta` and `total`; first >= 0.
    **Cost** about 6 ns for a record of all runs together.
    """
    if x.shape[0]:
        with nogil:
            dpfast_descend_together(&x[0], &powers[0], &factors[0], &lanes[0, 0], x.shape[0],
                                    <uint16_t> (threshold >> 48), lean, lower, upper, missing, &first[0], &scale[0],
                                    &theta[0], &total[0])


def descend(bit_generator, uint64_t threshold, const double[::1] x not None, const double[::1] push not None,
            double lean, double lower, double upper, double missing, double[::1] theta not None,
            double[::1] total not None):
    """Move each theta by one private bit per person, in order; add theta to its total before each move.

    **Law** person i, asked with theta: g = +1 if theta >= x_i, else -1 (+1 at a tie), x_i clipped to [lower, upper] and
    `missing` for NaN; the report is g with probability threshold / 2**64, exactly, else -g; theta then moves by -report
    * push[i] + lean * push[i], clipped. Repetitions (entries of theta) have coins of their own. **Assumes** lean in
    (-1, 1), 0.0 for a median; lower < upper, theta and missing in between, none of them -0.0; threshold >= 2**48; as
    many pushes as records, totals as thetas. **Cost** about 7 ns for one repetition and person, 2 ns for one of many; a
    random word for four coins, one more for a coin in 2**16.
    **Reference** Duchi, Jordan and Wainwright 2018, equation (11).
    """
    cdef Py_ssize_t n = x.shape[0], runs = theta.shape[0], count
    cdef uint64_t[::1] words
    cdef uint16_t[::1] lanes
    cdef uint16_t top = <uint16_t> (threshold >> 48)
    cdef bitgen_t *source
    if n == 0 or runs == 0:
        return
    if push.shape[0] != n or total.shape[0] != runs:
        raise ValueError("as many pushes as records and as many totals as thetas are needed")
    count = (n * runs + 3) // 4
    words, lanes = _words(bit_generator, count), np.empty(4 * count, np.uint16)
    source = unwrap(bit_generator)
    with bit_generator.lock, nogil:
        dpfast_split_lanes(&words[0], &lanes[0], count)
        dpfast_settle(source, threshold, &lanes[0], n * runs)
    with nogil:
        if runs == 1:
            dpfast_descend_once(&x[0], &push[0], &lanes[0], n, top, lean, lower, upper, missing, &theta[0],
                                &total[0])
        else:
            dpfast_descend(&x[0], &push[0], &lanes[0], n, runs, top, lean, lower, upper, missing, &theta[0],
                           &total[0])


def ask(const uint64_t[::1] words not None, uint64_t threshold, const double[::1] x not None, double theta,
        double lower, double upper, double missing, const double[:, ::1] evidence not None, double enough,
        int64_t ones, int64_t zeros):
    """Ask people, in order, until their reports decide a sequential test; return the numbers of ones and zeros.

    **Law** a report is 1 if theta >= x_i, x_i clipped to [lower, upper] and `missing` for NaN, else 0, and the opposite
    unless words[i] < threshold. The test has had `ones` and `zeros` before; it is decided when one of the sums
    evidence[j, 0] ones + evidence[j, 1] zeros, j = 0, 1, has reached `enough` and the other has not. **Assumes** as
    many words as records, a 2 x 2 `evidence`. **Cost** about 2 ns for each person asked.
    """
    cdef int64_t counts[2]
    counts[0], counts[1] = ones, zeros
    if x.shape[0]:
        with nogil:
            dpfast_test(&x[0], &words[0], x.shape[0], threshold, theta, lower, upper, missing, &evidence[0, 0], enough,
                        counts)
    return counts[0], counts[1]
