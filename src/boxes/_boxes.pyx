"""The nested-box law in d dimensions, from columns to the draw; serves dpfast/robust/ and dpfast/laws/.

Law, kernel side: boxes t = 0..n-1, each inside the next; box t < n - 1 has weight (1 - q) q**t volume(t), the last
q**(n-1) volume(n-1), q = exp(-epsilon / 2); then a uniform point of the box. So P(g) is proportional to q**score(g) in
the last box, score(g) the least t whose box contains g. docs/proofs/nested-boxes.md
"""

from libc.stdint cimport int64_t, uint64_t
from numpy.random cimport bitgen_t

from dpfast._kernels._samplers cimport unwrap
from grid cimport dpfast_grid

import numpy as np

from dpfast._kernels._samplers import next_word


cdef extern from "boxes.h":
    void dpfast_grow(double *mantissa, int64_t *exponent, double width) noexcept nogil
    void dpfast_grow_by_ranges(const int64_t *lower, const int64_t *upper, double *mantissa, int64_t *exponent,
                               Py_ssize_t n) noexcept nogil
    void dpfast_grow_by_codes(const double *falling, const double *rising, double radius, double last, double *mantissa,
                              int64_t *exponent, Py_ssize_t n) noexcept nogil
    void dpfast_encode_in_place(const dpfast_grid *grid, double *x, Py_ssize_t n) noexcept nogil
    double dpfast_box_cumulative(const double *mantissa, const int64_t *exponent, double *cumulative, Py_ssize_t n,
                                 double rate, Py_ssize_t columns) noexcept nogil
    void dpfast_transform(const double *matrix, const double *x, double *y, Py_ssize_t d, Py_ssize_t count,
                          Py_ssize_t stride) noexcept nogil
    uint64_t dpfast_uniform(bitgen_t *source, uint64_t last) noexcept nogil
    Py_ssize_t dpfast_choose(uint64_t word, const double *cumulative, Py_ssize_t n, double error) noexcept nogil


cdef class Volumes:
    """The volumes of n boxes, multiplied column by column: mantissa * 2**exponent, relative error columns 2**-52.

    **Law** deterministic. **Assumes** boxes nested, widths from 1 to 2**63. **Cost** 16 n bytes; about 1 ns for each
    box and column, without the GIL. Do not share it between threads: each has its own, and `merge` multiplies them.
    """

    cdef readonly object mantissa, exponent
    cdef double[::1] _mantissa
    cdef int64_t[::1] _exponent
    cdef readonly Py_ssize_t columns

    def __init__(self, Py_ssize_t n):
        self.mantissa, self.exponent = np.ones(n), np.zeros(n, np.int64)
        self._mantissa, self._exponent = self.mantissa, self.exponent
        self.columns = 0

    def add_ranges(self, const int64_t[::1] lower not None, const int64_t[::1] upper not None):
        """Multiply by a column in which box t spans lower[t]..upper[t]."""
        cdef Py_ssize_t n = lower.shape[0]
        if n > self._mantissa.shape[0] or upper.shape[0] != n:
            raise ValueError("ranges for more boxes than there are")
        with nogil:
            dpfast_grow_by_ranges(&lower[0], &upper[0], &self._mantissa[0], &self._exponent[0], n)
        self.columns += 1

    def add_window(self, double[::1] window not None, double radius, int64_t last, double lower, double upper,
                   double step, double first, int64_t[::1] kept_lower not None, int64_t[::1] kept_upper not None,
                   Py_ssize_t kept):
        """Multiply by a column given by the raw values x_(k-m) .. x_(k+m) around an order statistic.

        Box t <= m spans code(x_(k-t)) - radius .. code(x_(k+t)) + radius, kept inside 0..last, the box after them (if
        any) 0..last. Those of the boxes kept, kept + 1, .. are stored in `kept_lower` and `kept_upper`.
        **Assumes** `window` sorted, free of NaN, scratch of the caller's; `kept` and the boxes kept in 0..m; a valid
        grid; 0 <= radius <= last < 2**52.
        """
        cdef dpfast_grid grid = dpfast_grid(lower, upper, step, lower, first, 0)
        cdef Py_ssize_t n = (window.shape[0] + 1) // 2, t
        cdef double top = <double> last
        if n > self._mantissa.shape[0] or kept + kept_lower.shape[0] > n or kept_upper.shape[0] != kept_lower.shape[0]:
            raise ValueError("a window for more boxes than there are")
        with nogil:
            dpfast_encode_in_place(&grid, &window[0], 2 * n - 1)
            dpfast_grow_by_codes(&window[n - 1], &window[n - 1], radius, top, &self._mantissa[0], &self._exponent[0], n)
            for t in range(n, self._mantissa.shape[0]):
                dpfast_grow(&self._mantissa[t], &self._exponent[t], top + 1.0)
            for t in range(kept_lower.shape[0]):
                kept_lower[t] = <int64_t> max(window[n - 1 - kept - t] - radius, 0.0)
                kept_upper[t] = <int64_t> min(window[n - 1 + kept + t] + radius, top)
        self.columns += 1

    def merge(self, Volumes other not None):
        """Multiply by the columns of another object."""
        cdef Py_ssize_t t, n = self._mantissa.shape[0]
        if other._mantissa.shape[0] != n:
            raise ValueError("volumes of another number of boxes")
        with nogil:
            for t in range(n):
                dpfast_grow(&self._mantissa[t], &self._exponent[t], other._mantissa[t])
                self._exponent[t] += other._exponent[t]
        self.columns += other.columns

    def fill_levels(self, bit_generator, double epsilon, columns, int64_t[::1] out not None, *, bint exact=False):
        """Fill with independent levels of the law above.

        **Law** exact. `columns()` iterates over the widths of all boxes, an array of integers per column; ball
        arithmetic uses them if doubles cannot decide. **Cost** O(n) once, one word and a binary search
        each; ball arithmetic, O(n columns), with probability below n 2**-38 (1 + (columns + far) 2**-9), `far` the
        spread of the logarithms of the volumes that matter.
        **Reference** docs/proofs/nested-boxes.md.
        """
        cdef bitgen_t *source = unwrap(bit_generator)
        cdef Py_ssize_t n = self._mantissa.shape[0], i, undecided = 0
        cdef double[::1] cumulative = np.empty(n)
        cdef uint64_t[::1] words = np.empty(out.shape[0], np.uint64)
        cdef double error
        with bit_generator.lock, nogil:
            error = dpfast_box_cumulative(&self._mantissa[0], &self._exponent[0], &cumulative[0], n, epsilon / 2,
                                          self.columns)
            for i in range(out.shape[0]):
                words[i] = source.next_uint64(source.state)
                out[i] = dpfast_choose(words[i], &cumulative[0], n, error)
                undecided += out[i] < 0
        if undecided or exact:
            from dpfast._kernels._balls import choose_box
            for i in range(out.shape[0]):
                if exact or out[i] < 0:
                    out[i] = choose_box(words[i], lambda: next_word(bit_generator), columns, epsilon, n)


def fill_points(bit_generator, const int64_t[:, ::1] lower not None, const int64_t[:, ::1] upper not None,
                const int64_t[::1] levels not None, int64_t[:, ::1] out not None):
    """Fill row i with a uniform point of the box lower[levels[i]]..upper[levels[i]], ends included.

    **Law** exactly uniform, coordinates in order. **Assumes** levels in range, widths at most 2**63. **Cost** one word
    for each coordinate, a further one with probability below width / 2**64.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t i, j, t
    with bit_generator.lock, nogil:
        for i in range(out.shape[0]):
            t = levels[i]
            for j in range(out.shape[1]):
                out[i, j] = lower[t, j] + <int64_t> dpfast_uniform(source, <uint64_t> (upper[t, j] - lower[t, j]))


def transform(const double[:, ::1] matrix not None, const double[:, ::1] x not None, double[:, :] out not None):
    """Fill column k of `out` with `matrix` times column k of x.

    **Law** deterministic; each column by the same operations in the same order, on every machine, independent of the
    other columns. **Assumes** `out` with contiguous rows, no overlap. **Cost** d**2 products for each column,
    vectorised.
    """
    cdef Py_ssize_t d = matrix.shape[0], count = x.shape[1]
    if matrix.shape[1] != d or x.shape[0] != d or out.shape[0] != d or out.shape[1] != count:
        raise ValueError("matrix, records and result do not fit together")
    if out.shape[1] and out.strides[1] != sizeof(double):
        raise ValueError("the rows of the result must be contiguous")
    with nogil:
        if count:
            dpfast_transform(&matrix[0, 0], &x[0, 0], &out[0, 0], d, count, out.strides[0] // sizeof(double))
