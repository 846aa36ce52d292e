"""Directions from public seeds: the side of one on which a record lies, or one of many; serves dpfast/local/ball.py.

The loops are in ``directions.h``, the proofs in docs/proofs/reflection.md. A report is a word. Of a half space: its
upper 63 bits are the seed of a direction u, its last bit is 1 for +u, 0 for -u. Of a choice among directions: its lower
bits are the index of the chosen one, and the word is the seed of this direction.
"""

from libc.math cimport sqrt
from libc.stdint cimport uint8_t, uint32_t, uint64_t

import numpy as np


cdef extern from "directions.h" nogil:
    double dpfast_direction(uint64_t seed, double *out, Py_ssize_t d)
    double dpfast_dot(const double *a, const double *b, Py_ssize_t n)
    double dpfast_record(const double *x, Py_ssize_t d, double inverse, double *out)
    int dpfast_own_side(uint64_t word, double length)
    void dpfast_scale(const double *x, double factor, double *out, Py_ssize_t n)
    void dpfast_have_length(const double *rows, Py_ssize_t n, Py_ssize_t d, double factor, double least, double most,
                            uint8_t *right)
    Py_ssize_t dpfast_add_vectors(const double *rows, Py_ssize_t n, Py_ssize_t d, double factor, double least,
                                  double most, double *sums)


cdef extern from "ranks.h" nogil:
    uint64_t dpfast_order(double x)
    Py_ssize_t dpfast_ranked(const uint64_t *keys, Py_ssize_t n, Py_ssize_t rank)


cdef uint64_t _answer(uint64_t seed, uint64_t coin, uint64_t rounding, uint64_t threshold, double inner,
                      double length) noexcept nogil:
    """The report: the side of the half space on which the rounded record lies, kept or flipped."""
    cdef bint side = inner >= 0 if dpfast_own_side(rounding, length) else inner <= 0
    cdef bint keep = coin < threshold
    return (seed & ~<uint64_t> 1) | <uint64_t> (side == keep)


def randomize_halfspace(const uint64_t[:, ::1] words not None, const double[:, ::1] x not None, double inverse,
                        uint64_t threshold, uint64_t[::1] reports not None):
    """For each row of x the seed of a direction, and the side on which the row lies, kept or flipped by a coin.

    **Law** over uniform words: the seed is uniform, the coin keeps with probability threshold 2**-64, exactly; all else
    is independent of x. **Assumes** three words and one report for each row: seed, coin, rounding. **Cost** d normals
    and two passes over the row.
    """
    cdef Py_ssize_t i, d = x.shape[1]
    cdef double[::1] u = np.empty(d + 1), v = np.empty(d)
    cdef double length
    with nogil:
        for i in range(x.shape[0]):
            dpfast_direction(words[i, 0] >> 1, &u[0], d)
            length = dpfast_record(&x[i, 0], d, inverse, &v[0])
            reports[i] = _answer(words[i, 0], words[i, 1], words[i, 2], threshold, dpfast_dot(&u[0], &v[0], d), length)


def randomize_vectors(const uint64_t[:, ::1] words not None, const double[:, ::1] x not None, double inverse,
                      uint64_t threshold, double scale, double[:, ::1] out not None):
    """The vectors of the reports of `randomize_halfspace`, bit for bit those of `expand`."""
    cdef Py_ssize_t i, d = x.shape[1]
    cdef double[::1] u = np.empty(d + 1), v = np.empty(d)
    cdef double length, factor
    cdef uint64_t report
    with nogil:
        for i in range(x.shape[0]):
            factor = scale / dpfast_direction(words[i, 0] >> 1, &u[0], d)
            length = dpfast_record(&x[i, 0], d, inverse, &v[0])
            report = _answer(words[i, 0], words[i, 1], words[i, 2], threshold, dpfast_dot(&u[0], &v[0], d), length)
            dpfast_scale(&u[0], factor if report & 1 else -factor, &out[i, 0], d)


def choose_directions(const uint64_t[:, ::1] words not None, const uint32_t[::1] ranks not None, Py_ssize_t count,
                      const double[:, ::1] x not None, double inverse, uint64_t[::1] reports not None):
    """For each row of x one of the `count` directions that the upper bits of a word define: that of the given rank.

    **Law** the ranks are those of <u, r> among the directions u, 0 for the largest, the lower index first on a tie; r
    is the row, rounded to the sphere. All that depends on x is this order. **Assumes** two words for each row: seed,
    rounding; ranks below `count`, which is at least 2. **Cost** count d normals and count^2 / 2 comparisons.
    """
    cdef Py_ssize_t i, j, d = x.shape[1]
    cdef double[::1] u = np.empty(d + 1), v = np.empty(d)
    cdef uint64_t[::1] keys = np.empty(count, np.uint64)
    cdef uint64_t bits = 1, first
    cdef double length, sign
    while bits < <uint64_t> count:
        bits *= 2
    with nogil:
        for i in range(x.shape[0]):
            first = words[i, 0] & ~(bits - 1)
            sign = 1.0 if dpfast_own_side(words[i, 1], dpfast_record(&x[i, 0], d, inverse, &v[0])) else -1.0
            for j in range(count):
                length = dpfast_direction(first | <uint64_t> j, &u[0], d)
                keys[j] = dpfast_order(sign * dpfast_dot(&u[0], &v[0], d) / length)
            reports[i] = first | <uint64_t> dpfast_ranked(&keys[0], count, ranks[i])


cdef inline double _factor(uint64_t report, bint signs, double scale, double *u, Py_ssize_t d) noexcept nogil:
    """Write the direction of a report, not normalised, to u; return the factor that makes it the decoded vector."""
    cdef double factor = scale / dpfast_direction(report >> 1 if signs else report, u, d)
    return -factor if signs and not report & 1 else factor


def expand(const uint64_t[:] reports not None, bint signs, double scale, double[:, ::1] out not None):
    """The vector of each report: scale times the unit vector of its seed, or the opposite if its sign is 0.

    **Cost** d normals each.
    """
    cdef Py_ssize_t i, d = out.shape[1]
    cdef double[::1] u = np.empty(d + 1)
    cdef double factor
    with nogil:
        for i in range(reports.shape[0]):
            factor = _factor(reports[i], signs, scale, &u[0], d)
            dpfast_scale(&u[0], factor, &out[i, 0], d)


def add_directions(const uint64_t[:] reports not None, bint signs, double scale, double[::1] sums not None):
    """sums += the vectors of `expand`, in order, without storing them."""
    cdef Py_ssize_t i, j, d = sums.shape[0]
    cdef double[::1] u = np.empty(d + 1)
    cdef double factor
    with nogil:
        for i in range(reports.shape[0]):
            factor = _factor(reports[i], signs, scale, &u[0], d)
            for j in range(d):
                sums[j] += factor * u[j]


def have_length(const double[:, ::1] vectors not None, double factor, double least, double most,
                uint8_t[::1] out not None):
    """Fill with whether the square of each vector times factor squared is between least and most; False for NaN."""
    if vectors.shape[0]:
        with nogil:
            dpfast_have_length(&vectors[0, 0], vectors.shape[0], vectors.shape[1], factor, least, most, &out[0])


def add_vectors(const double[:, ::1] vectors not None, double factor, double least, double most,
                double[::1] sums not None):
    """sums += the vectors that `have_length` finds, in order; returns their number. **Cost** one pass over memory."""
    cdef Py_ssize_t added = 0
    if vectors.shape[0]:
        with nogil:
            added = dpfast_add_vectors(
                &vectors[0, 0], vectors.shape[0], vectors.shape[1], factor, least, most, &sums[0]
            )
    return added


def fill_caps(const uint64_t[:, ::1] words not None, const double[:, ::1] x not None, double inverse,
              const double[::1] heights not None, double scale, double[:, ::1] out not None):
    """scale * V, V on the sphere with <V, r> = heights[i], uniform otherwise, r the row i of x rounded to the sphere.

    **Law** in doubles, over uniform words: the floating-point digits of V also depend on x. A direction within 2**-16
    of r or -r is redrawn from the next seed, which does not change the law: its component orthogonal to r does not
    depend on that angle, and would otherwise be decided by rounding. **Assumes** d >= 2, two words for each row: seed,
    rounding. The zero vector is rounded to the first axis or its opposite. **Cost** d normals and four passes.
    """
    cdef Py_ssize_t i, j, d = x.shape[1]
    cdef double[::1] u = np.empty(d + 1), v = np.empty(d)
    cdef double length, sign, size, along, across, rest
    cdef uint64_t seed
    with nogil:
        for i in range(x.shape[0]):
            length = dpfast_record(&x[i, 0], d, inverse, &v[0])
            size = sqrt(dpfast_dot(&v[0], &v[0], d))
            if size == 0:
                v[0] = size = 1.0
            sign = 1.0 if dpfast_own_side(words[i, 1], length) else -1.0
            dpfast_scale(&v[0], sign / size, &v[0], d)
            seed = words[i, 0] >> 1
            while True:
                size = dpfast_direction(seed, &u[0], d)
                along = dpfast_dot(&u[0], &v[0], d)
                for j in range(d):
                    u[j] -= along * v[j]
                rest = dpfast_dot(&u[0], &u[0], d)
                if rest > 2.0**-32 * size * size:
                    break
                seed += 1
            across = sqrt((1.0 - heights[i]) * (1.0 + heights[i]) / rest)
            for j in range(d):
                out[i, j] = scale * (heights[i] * v[j] + across * u[j])
