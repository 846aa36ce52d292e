"""Noise on vectors of integers by a norm: dpfast/noise.py, dpfast/laws/vectors.py.

A fill draws the words of some rows, decides the coordinates in doubles where a proved bound allows (knorm.h), and passes
the others to ball arithmetic (_balls.py) with the words of their row. ``exact=True`` sends all of them there; for the
same words the output is the same. Scales are an array of doubles, or of objects for fractions; their exact values count.
"""

from libc.stdint cimport int64_t, uint64_t

import numpy as np

from dpfast._kernels._samplers import fill_words, next_word


cdef extern from "knorm.h":
    int64_t UNDECIDED "DPFAST_UNDECIDED"
    void dpfast_box(const uint64_t *words, const uint64_t *radii, int64_t *out, Py_ssize_t rows, Py_ssize_t d,
                    const double *scales) noexcept nogil


cdef enum:
    CHUNK = 8192  # words drawn at a time, or those of one row


cdef Py_ssize_t _count_undecided(const int64_t[:, ::1] out) noexcept nogil:
    cdef Py_ssize_t row, i, count = 0
    for row in range(out.shape[0]):
        for i in range(out.shape[1]):
            count += out[row, i] == UNDECIDED
    return count


cdef object _complete(bit_generator, rounded, scales, uint64_t[::1] words, uint64_t[::1] radii, int64_t[:, ::1] out,
                      bint exact):
    """Decide the undecided entries of rows in ball arithmetic, by the function `rounded`."""
    cdef Py_ssize_t row, i, rows = out.shape[0]
    if rows == 0 or not (exact or _count_undecided(out)):
        return
    directions = np.asarray(words).reshape(rows, -1)
    lengths = np.asarray(radii).reshape(rows, -1)
    for row in range(rows):
        wanted = [i for i in range(out.shape[1]) if exact or out[row, i] == UNDECIDED]
        if wanted:
            values = rounded(directions[row].tolist(), lengths[row].tolist(), lambda: next_word(bit_generator), scales,
                             wanted)
            for i, value in zip(wanted, values):
                out[row, i] = value


def fill_box(bit_generator, scales, int64_t[:, ::1] out not None, *, bint exact=False):
    """Fill rows of d integers with round(z), z of density proportional to exp(-max_i |z_i| / scales_i).

    **Law** exact, saturated at +-(2**63 - 1). **Assumes** d scales, 0 < scale <= 2**56. **Cost** 2 d + 1 words a row;
    ball arithmetic with probability about d * scale * 2**-49 for each coordinate. **Reference** mechanisms-d 3;
    docs/proofs/knorm.md.
    """
    cdef const double[::1] rounded = np.ascontiguousarray(scales, dtype=np.float64)
    cdef Py_ssize_t d = out.shape[1], start, rows, most = max(1, CHUNK // (2 * d + 1))
    cdef uint64_t[::1] words, radii
    from dpfast._kernels._balls import round_box
    for start in range(0, out.shape[0], most):
        rows = min(most, out.shape[0] - start)
        words, radii = _drawn(bit_generator, rows * d, rows * (d + 1))
        with nogil:
            dpfast_box(&words[0], &radii[0], &out[start, 0], rows, d, &rounded[0])
        _complete(bit_generator, round_box, scales, words, radii, out[start : start + rows], exact)


cdef tuple _drawn(bit_generator, Py_ssize_t first, Py_ssize_t second):
    words = np.empty(first + second, np.uint64)
    fill_words(bit_generator, words)
    return words[:first], words[first:]
