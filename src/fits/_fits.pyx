"""Maximum-likelihood estimates of blocks that need all their records; serves dpfast/families.

The iterations are in ``fits.h`` and ``regressions.h``, with ``tiles.h``, ``products.h`` and ``singles.h``;
docs/proofs/block-estimates.md derives them. Block j holds the records offsets[j]..offsets[j + 1] - 1. Every function
fills one row of `out` for each block, and `counts` with the number of its records that were used: records that are not
finite or outside the support are left out. Each row depends only on the records of its block. NaN means that an
estimate does not exist.
"""

cimport numpy as cnp
from libc.stdint cimport int64_t

from itertools import pairwise

import numpy as np

from dpfast._kernels._threads import each

cnp.import_array()

cdef extern from "fits.h" nogil:
    enum select_kind:
        SELECT_UNSUPPORTED

    struct select_keys:
        const char *data

    Py_ssize_t FITS_LANES

    select_kind select_kind_of(char kind, Py_ssize_t itemsize)
    Py_ssize_t select_sort_room(Py_ssize_t n)
    double *select_sort(double *x, Py_ssize_t n, double *scratch)
    select_keys fits_keys(const char *data, Py_ssize_t n, Py_ssize_t stride, select_kind kind)
    Py_ssize_t fits_load(const select_keys *keys, Py_ssize_t start, Py_ssize_t stop, double least, double *out)
    void fits_weibull(double *x, Py_ssize_t n, double *shape, double *scale)
    void fits_laplace(const double *x, Py_ssize_t n, double *location, double *deviation)
    void fits_binomial(double *x, Py_ssize_t n, double *above, bint correct, double *out)

cdef extern from "regressions.h" nogil:
    enum fits_model:
        FITS_LINEAR
        FITS_LOGISTIC
        FITS_POISSON

    struct fits_design:
        select_keys x
        select_keys y
        Py_ssize_t column_stride
        Py_ssize_t columns
        bint intercept
        fits_model model
        bint correct

    struct fits_room:
        pass

    Py_ssize_t fits_room_size(Py_ssize_t rows, Py_ssize_t parameters)
    fits_room fits_room_in(double *memory, Py_ssize_t rows, Py_ssize_t parameters)
    Py_ssize_t fits_regression(fits_room *room, const fits_design *design, Py_ssize_t start, Py_ssize_t stop,
                               double *out)


cdef select_keys _keys(cnp.ndarray values) except *:
    """The address and type of the records; for a matrix, of the first column."""
    cdef select_kind kind = select_kind_of(values.descr.kind, cnp.PyArray_ITEMSIZE(values))
    if kind == SELECT_UNSUPPORTED:
        raise TypeError(f"no numbers are defined for records of dtype {values.dtype}")
    return fits_keys(<const char *> cnp.PyArray_DATA(values), cnp.PyArray_DIM(values, 0),
                     cnp.PyArray_STRIDE(values, 0), kind)


cdef class _Fits:
    """The estimates of all blocks; a subclass computes those of one block."""

    cdef const int64_t[::1] offsets
    cdef double[:, ::1] out
    cdef int64_t[::1] counts
    cdef Py_ssize_t longest

    def __init__(self, offsets, out, counts):
        self.offsets, self.out, self.counts = offsets, out, counts
        self.longest = int(np.diff(offsets).max(initial=0))

    cdef Py_ssize_t room(self) noexcept:
        """Doubles of scratch memory for one thread."""
        return 0

    cdef Py_ssize_t fit(self, Py_ssize_t start, Py_ssize_t stop, double *scratch, double *out) noexcept nogil:
        """Write the estimates from records start..stop - 1 to `out`; returns the number of records used."""
        return 0

    def slice(self, part):
        """Blocks first..last - 1, of the pair (first, last)."""
        cdef Py_ssize_t first, last
        first, last = part
        cdef cnp.ndarray memory = np.empty(max(self.room(), 1))
        cdef double *scratch = <double *> cnp.PyArray_DATA(memory)
        cdef Py_ssize_t j
        with nogil:
            for j in range(first, last):
                self.counts[j] = self.fit(self.offsets[j], self.offsets[j + 1], scratch, &self.out[j, 0])

    cdef int run(self, Py_ssize_t workers) except -1:
        """All blocks in `workers` slices, each in its own thread."""
        cuts = [self.counts.shape[0] * w // workers for w in range(workers + 1)]
        each(self.slice, list(pairwise(cuts)), workers)
        return 0


cdef class _Weibull(_Fits):
    cdef select_keys keys

    cdef Py_ssize_t room(self) noexcept:
        return self.longest + FITS_LANES

    cdef Py_ssize_t fit(self, Py_ssize_t start, Py_ssize_t stop, double *scratch, double *out) noexcept nogil:
        cdef Py_ssize_t n = fits_load(&self.keys, start, stop, 5e-324, scratch)
        fits_weibull(scratch, n, &out[0], &out[1])
        return n


cdef class _Laplace(_Fits):
    cdef select_keys keys

    cdef Py_ssize_t room(self) noexcept:
        return 2 * select_sort_room(self.longest)

    cdef Py_ssize_t fit(self, Py_ssize_t start, Py_ssize_t stop, double *scratch, double *out) noexcept nogil:
        cdef Py_ssize_t n = fits_load(&self.keys, start, stop, -1.7976931348623157e308, scratch)
        fits_laplace(select_sort(scratch, n, scratch + select_sort_room(self.longest)), n, &out[0],
                     &out[1])
        return n


cdef class _NegativeBinomial(_Fits):
    cdef select_keys keys
    cdef bint correct

    cdef Py_ssize_t room(self) noexcept:
        return 5 * self.longest + 64

    cdef Py_ssize_t fit(self, Py_ssize_t start, Py_ssize_t stop, double *scratch, double *out) noexcept nogil:
        cdef Py_ssize_t n = fits_load(&self.keys, start, stop, -0.5, scratch)
        fits_binomial(scratch, n, scratch + self.longest, self.correct, out)
        return n


cdef class _Regression(_Fits):
    cdef fits_design design

    cdef Py_ssize_t room(self) noexcept:
        return fits_room_size(self.longest, self.design.columns + self.design.intercept)

    cdef Py_ssize_t fit(self, Py_ssize_t start, Py_ssize_t stop, double *scratch, double *out) noexcept nogil:
        cdef fits_room room = fits_room_in(scratch, self.longest, self.design.columns + self.design.intercept)
        return fits_regression(&room, &self.design, start, stop, out)


def weibull(cnp.ndarray values not None, offsets, out, counts, *, Py_ssize_t workers=1):
    """Fill `out` (blocks, 2) with shape and scale.

    **Law** deterministic, by doubles, not certified: the maximum of the likelihood over positive records, uncorrected.
    Equal records: an infinite shape. **Assumes** `values` one-dimensional, aligned, native; offsets nondecreasing from
    0 to at most len(values); as many rows of `out` and `counts` as blocks. **Cost** one logarithm and about 5
    exponentials per record; memory of the longest block. **Reference** docs/proofs/block-estimates.md.
    """
    cdef _Weibull fits = _Weibull(offsets, out, counts)
    fits.keys = _keys(values)
    fits.run(workers)


def laplace(cnp.ndarray values not None, offsets, out, counts, *, Py_ssize_t workers=1):
    """Fill `out` (blocks, 2) with the median (the middle of the two of an even number) and the mean deviation from it.

    **Law** deterministic, by doubles; both uncorrected. **Assumes** as `weibull`. **Cost** a sort of each block; memory
    of the longest block. **Reference** docs/proofs/block-estimates.md.
    """
    cdef _Laplace fits = _Laplace(offsets, out, counts)
    fits.keys = _keys(values)
    fits.run(workers)


def negative_binomial(cnp.ndarray values not None, offsets, out, counts, *, bint correct, Py_ssize_t workers=1):
    """Fill `out` (blocks, 3) with r, p and the mean of counts of failures before the r-th success of probability p.

    Records are rounded to integers. **Law** deterministic, by doubles, not certified: the maximum of the likelihood,
    with `correct` r and p minus their bias to first order. A variance of at most the mean: r infinite, p = 1; zeros
    only: r NaN. **Assumes** as `weibull`. **Cost** about 6 times the greatest count, or 6 digammas per record if that
    is above 4 n + 64; memory of five longest blocks. **Reference** Levin and Reeds 1977.
    """
    cdef _NegativeBinomial fits = _NegativeBinomial(offsets, out, counts)
    fits.keys = _keys(values)
    fits.correct = correct
    fits.run(workers)


def regression(cnp.ndarray design not None, cnp.ndarray response not None, offsets, out, counts, *, str model,
               bint intercept, bint correct, Py_ssize_t workers=1):
    """Fill `out` (blocks, p) with coefficients of ``"linear"``, ``"logistic"`` or ``"poisson"`` regressions.

    With `intercept` a constant is the first column: p is one more than the columns of `design`. A linear regression has
    the standard deviation of the noise as an additional last column. Rows with a number that is not finite (a label
    above 0 is 1, else 0; NaN is not a label), or with a negative count, are left out.

    **Law** deterministic, by doubles, not certified: least squares by Cholesky's factor, refined once; the others by
    Newton's method, 60 passes at most, with `correct` minus their bias to first order. A singular design, or fewer
    records than p: NaN. A separated block: the point where Newton's method stopped, beyond any reasonable box.
    **Assumes** as `weibull`; `design` two-dimensional, equally long. **Cost** about 8 passes over the block of 4 p + 60
    operations per record, 1 to 3 of them with p (p + 1) more, and `correct` p (p + 1); memory of the longest block.
    **Reference** docs/proofs/block-estimates.md; Firth 1993.
    """
    cdef _Regression fits = _Regression(offsets, out, counts)
    fits.design.x, fits.design.y = _keys(design), _keys(response)
    fits.design.columns, fits.design.column_stride = cnp.PyArray_DIM(design, 1), cnp.PyArray_STRIDE(design, 1)
    fits.design.intercept, fits.design.correct = intercept, correct
    fits.design.model = FITS_LINEAR if model == "linear" else FITS_LOGISTIC if model == "logistic" else FITS_POISSON
    fits.run(workers)
