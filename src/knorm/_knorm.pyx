"""Noise on vectors of integers by a norm: dpfast/noise.py, dpfast/laws/vectors.py.

A fill draws the words of some rows, decides the coordinates in doubles where a proved bound allows (knorm.h), and
passes the others to ball arithmetic (_balls.py) with the words of their row. ``exact=True`` sends all of them there;
for the same words the output is the same. Scales are an array of doubles, or of objects such as fractions; their exact
values count.
"""

from libc.stdint cimport int64_t, uint64_t

from fractions import Fraction
from math import factorial

import numpy as np

from dpfast._kernels._samplers import fill_discrete_laplace, fill_words, next_word


cdef extern from "knorm.h":
    int64_t UNDECIDED "DPFAST_UNDECIDED"
    ctypedef struct dpfast_product:
        pass
    ctypedef struct dpfast_bounded:
        double value, error
    ctypedef struct dpfast_extra:
        pass
    dpfast_product dpfast_multiply(const uint64_t *words, Py_ssize_t n) noexcept nogil
    double dpfast_neg_log_product(dpfast_product product, double n, double *error) noexcept nogil
    void dpfast_normals(const uint64_t *words, double *z, Py_ssize_t rows, Py_ssize_t p,
                        dpfast_extra *extra) noexcept nogil
    dpfast_bounded dpfast_ball_unit(const double *g, Py_ssize_t d, double odd, dpfast_extra extra,
                                    const uint64_t *radii) noexcept nogil
    void dpfast_box(const uint64_t *words, const uint64_t *radii, int64_t *out, Py_ssize_t rows, Py_ssize_t d,
                    const double *scales) noexcept nogil
    void dpfast_ball(const uint64_t *words, const uint64_t *radii, int64_t *out, Py_ssize_t rows, Py_ssize_t d,
                     const double *scales, double *normals) noexcept nogil
    int64_t dpfast_accepts_box(uint64_t word, const int64_t *z, Py_ssize_t d, const double *scales) noexcept nogil


cdef enum:
    CHUNK = 8192  # words drawn at a time, or those of one row


cdef Py_ssize_t _count_undecided(const int64_t[:, ::1] out) noexcept nogil:
    cdef Py_ssize_t row, i, count = 0
    for row in range(out.shape[0]):
        for i in range(out.shape[1]):
            count += out[row, i] == UNDECIDED
    return count


cdef object _complete(bit_generator, rounded, scales, words, Py_ssize_t split, int64_t[:, ::1] out, bint exact):
    """Decide the undecided entries of rows in ball arithmetic, by the function `rounded`, from their words.

    The first `split` words are those of the directions, the others those of the lengths.
    """
    cdef Py_ssize_t row, i, rows = out.shape[0]
    if not (exact or _count_undecided(out)):
        return
    directions = words[:split].reshape(rows, split // rows)
    lengths = words[split:].reshape(rows, (words.size - split) // rows)
    for row in range(rows):
        wanted = [i for i in range(out.shape[1]) if exact or out[row, i] == UNDECIDED]
        if wanted:
            values = rounded(
                directions[row].tolist(), lengths[row].tolist(), lambda: next_word(bit_generator), scales, wanted
            )
            for i, value in zip(wanted, values):
                out[row, i] = value


cdef object _drawn(bit_generator, Py_ssize_t n):
    words = np.empty(n, np.uint64)
    fill_words(bit_generator, words)
    return words


def fill_box(bit_generator, scales, int64_t[:, ::1] out not None, *, bint exact=False):
    """Fill rows of d integers with round(z), z of density proportional to exp(-max_i |z_i| / scales_i).

    **Law** exact, saturated at +-(2**63 - 1). **Assumes** d scales, 0 < scale <= 2**56. **Cost** 2 d + 1 words a row;
    ball arithmetic with probability about d * scale * 2**-49 for each coordinate. **Reference** docs/proofs/knorm.md.
    """
    cdef const double[::1] rounded = np.ascontiguousarray(scales, dtype=np.float64)
    cdef Py_ssize_t d = out.shape[1], start, rows, most = max(1, CHUNK // (2 * d + 1))
    cdef uint64_t[::1] words
    from dpfast._kernels._vector_balls import round_box
    for start in range(0, out.shape[0], most):
        rows = min(most, out.shape[0] - start)
        words = _drawn(bit_generator, rows * (2 * d + 1))
        with nogil:
            dpfast_box(&words[0], &words[0] + rows * d, &out[start, 0], rows, d, &rounded[0])
        _complete(bit_generator, round_box, scales, words.base, rows * d, out[start : start + rows], exact)


def fill_ball(bit_generator, scales, int64_t[:, ::1] out not None, *, bint exact=False):
    """Fill rows of d integers with round(z), z of density proportional to exp(-sqrt(sum_i (z_i / scales_i)**2)).

    **Law** exact, saturated at +-(2**63 - 1). **Assumes** d scales, 0 < scale <= 2**56. **Cost** 3 d / 2 words a row;
    ball arithmetic with probability about sqrt(d) * scale * 2**-45 for each coordinate. **Reference**
    docs/proofs/knorm.md.
    """
    cdef const double[::1] rounded = np.ascontiguousarray(scales, dtype=np.float64)
    cdef Py_ssize_t d = out.shape[1], p = d + (d & 1), start, rows, most = max(1, CHUNK // (p + d // 2))
    cdef double[::1] normals = np.empty(p * min(most, out.shape[0]))
    cdef uint64_t[::1] words
    from dpfast._kernels._vector_balls import round_ball
    for start in range(0, out.shape[0], most):
        rows = min(most, out.shape[0] - start)
        words = _drawn(bit_generator, rows * (p + d // 2))
        with nogil:
            dpfast_ball(&words[0], &words[0] + rows * p, &out[start, 0], rows, d, &rounded[0], &normals[0])
        _complete(bit_generator, round_ball, scales, words.base, rows * p, out[start : start + rows], exact)


def fill_lattice_box(bit_generator, scales, int64_t[:, ::1] out not None, *, bint exact=False):
    """Fill rows of d integers with the law P(z) proportional to exp(-max_i |z_i| / scales_i).

    **Law** exact, each geometric of the proposals saturated at 2**63 - 1. **Assumes** d scales, 0 < d * scale <= 2**56,
    d < 8. **Cost** on average about d**d / d! proposals of 2 d + 1 words a row. **Reference** docs/proofs/knorm.md.
    """
    cdef const double[::1] rounded = np.ascontiguousarray(scales, dtype=np.float64)
    cdef Py_ssize_t row, rows, i, d = out.shape[1], done = 0, proposed = int(d) ** int(d), kept = factorial(d)
    cdef int64_t[:, ::1] proposals
    cdef int64_t[::1] column
    cdef uint64_t[::1] words
    cdef int64_t accepted
    while done < out.shape[0]:
        rows = (out.shape[0] - done) * proposed // kept + 8
        proposals, column, words = np.empty((rows, d), np.int64), np.empty(rows, np.int64), np.empty(rows, np.uint64)
        for i in range(d):
            fill_discrete_laplace(bit_generator, d * Fraction(scales[i]), column, exact=exact)
            proposals[:, i] = column
        fill_words(bit_generator, words)
        for row in range(rows):
            accepted = dpfast_accepts_box(words[row], &proposals[row, 0], d, &rounded[0])
            if accepted == UNDECIDED or exact:
                accepted = _accepts_box(bit_generator, words[row], proposals[row], scales)
            if accepted:
                out[done] = proposals[row]
                done += 1
                if done == out.shape[0]:
                    break


cdef bint _accepts_box(bit_generator, uint64_t word, const int64_t[::1] z, scales) except? 0:
    """Whether to accept a row, in ball arithmetic."""
    from dpfast._kernels._balls import below_exp_neg
    sizes = [abs(int(part)) / Fraction(scale) for part, scale in zip(z, scales)]
    excess = max(sizes) - sum(sizes) / len(sizes)
    return below_exp_neg(word, lambda: next_word(bit_generator), excess)


def gamma_of_words(const uint64_t[::1] words not None):
    """-log of the product of the numbers of these words as `fill_box` computes it, and the bound of its error."""
    cdef double error
    cdef double r = dpfast_neg_log_product(dpfast_multiply(&words[0], words.shape[0]), <double>words.shape[0], &error)
    return r, error


def ball_unit_of_words(const uint64_t[::1] words not None, Py_ssize_t d):
    """r / ||g|| of the words of a row as `fill_ball` computes it, and the bound of its relative error."""
    cdef Py_ssize_t p = d + (d & 1)
    cdef double[::1] normals = np.empty(p)
    cdef dpfast_extra extra
    dpfast_normals(&words[0], &normals[0], 1, p, &extra)
    cdef dpfast_bounded unit = dpfast_ball_unit(
        &normals[0], d, normals[d] if d & 1 else 0.0, extra, &words[0] + p
    )
    return unit.value, unit.error
