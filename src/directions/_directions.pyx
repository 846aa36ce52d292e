"""Half spaces: directions from public seeds, and the one private bit of each record; serves dpfast/local/ball.py.

The loops are in ``directions.h``, the proof in docs/proofs/reflection.md. A report is a word: its upper 63 bits the
seed of a direction u, its last bit 1 for +u, 0 for -u.
"""

from libc.math cimport sqrt
from libc.stdint cimport uint8_t, uint64_t

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


def expand(const uint64_t[:] reports not None, double scale, double[:, ::1] out not None):
    """The vector of each report: +u or -u times scale, u the unit vector of its seed. **Cost** d normals each."""
    cdef Py_ssize_t i, d = out.shape[1]
    cdef double[::1] u = np.empty(d + 1)
    cdef double factor
    with nogil:
        for i in range(reports.shape[0]):
            factor = scale / dpfast_direction(reports[i] >> 1, &u[0], d)
            dpfast_scale(&u[0], factor if reports[i] & 1 else -factor, &out[i, 0], d)


def add_directions(const uint64_t[:] reports not None, double scale, double[::1] sums not None):
    """sums += the vectors of `expand`, in order, without storing them."""
    cdef Py_ssize_t i, j, d = sums.shape[0]
    cdef double[::1] u = np.empty(d + 1)
    cdef double factor
    with nogil:
        for i in range(reports.shape[0]):
            factor = scale / dpfast_direction(reports[i] >> 1, &u[0], d)
            factor = factor if reports[i] & 1 else -factor
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
