"""Counts on a regular grid of bins, in any dimension, and draws from cells; serves dpfast/densities.

The loops are in ``bins.h``. This module builds their tables and runs the threads.
"""

cimport numpy as cnp
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from numpy.random cimport bitgen_t

from select cimport describe, select_keys, select_set_grid

from dpfast._kernels._samplers cimport unwrap

import numpy as np

from dpfast._kernels._samplers import _words
from dpfast._kernels._threads import each

cnp.import_array()

cdef extern from "bins.h" nogil:
    struct bins_axis:
        const double *thresholds
        double origin
        double scale
        double missing
        int32_t bins
        bint certified

    struct bins_weights:
        const uint64_t *cumulative
        const int32_t *cells
        const int32_t *guide
        int shift
        uint64_t total

    Py_ssize_t BINS_BLOCK
    Py_ssize_t BINS_LANES

    bint bins_certified(const bins_axis *axis)
    void bins_locate(const select_keys *keys, const bins_axis *axes, int dimensions, Py_ssize_t start, Py_ssize_t count,
                     int32_t *cells)
    void bins_count(const select_keys *keys, const bins_axis *axes, int dimensions, Py_ssize_t start, Py_ssize_t stop,
                    uint32_t *counts, Py_ssize_t size, int lanes)
    uint64_t bins_uniform(bitgen_t *source, uint64_t word, uint64_t n)
    void bins_draw_cells(bitgen_t *source, const bins_weights *law, const uint64_t *words, int32_t *cells, Py_ssize_t n)
    void bins_draw_points(bitgen_t *source, const uint64_t *words, const int32_t *cells, Py_ssize_t n,
                          const int64_t *edges, int32_t bins, int32_t divisor, int64_t first, double step, double *out,
                          Py_ssize_t stride)


cdef enum:
    MOST_DIMENSIONS = 8
    RECORDS_A_WORKER = 1 << 18  # with fewer records a second thread does not pay off
    SHARED_CELLS = 1 << 12      # up to here four tables fit a second-level cache
    PRIVATE_COUNTS = 1 << 24    # of all threads together, 64 MB, unless one table alone is longer


cdef class Axis:
    """The bins of one column: the thresholds, and whether a guess finds the bin.

    **Law** the bin of a key is the number of `thresholds` that are not above it; NaN counts as `missing`.
    **Assumes** increasing finite `thresholds`, one fewer than bins, the grid of these thresholds, and the `width` of
    all bins together, which only the speed depends on.
    **Cost** O(bins). **Reference** docs/proofs/histogram-bins.md.
    """

    cdef bins_axis axis
    cdef object table
    cdef readonly double lower
    cdef readonly double upper
    cdef readonly double step

    def __init__(self, const double[::1] thresholds not None, *, double width, double lower, double upper,
                 double step, double missing):
        cdef Py_ssize_t i, bins = thresholds.shape[0] + 1
        cdef double[::1] table = np.empty(bins + 1)
        cdef double scale = bins / width, late = -INFINITY
        table[0], table[bins] = -INFINITY, NAN
        for i in range(1, bins):
            table[i] = thresholds[i - 1]
            late = max(late, (table[i] - lower) * scale - i)
        self.table = np.asarray(table)
        self.lower, self.upper, self.step = lower, upper, step
        # The guess is shifted so that no key below a threshold is taken for one above it, with a margin of 2**-20.
        self.axis = bins_axis(&table[0], lower + (late + 2.0 ** -20) / scale if bins > 1 else lower, scale, missing,
                              <int32_t> bins, False)
        self.axis.certified = bins_certified(&self.axis)

    @property
    def bins(self):
        """The number of bins."""
        return self.axis.bins

    @property
    def certified(self):
        """Whether a guess and one comparison find the bin of every key; else a search does."""
        return self.axis.certified


cdef class _Records:
    """The columns, described for the loops."""

    cdef cnp.ndarray values
    cdef list axes
    cdef select_keys keys[MOST_DIMENSIONS]
    cdef bins_axis described[MOST_DIMENSIONS]
    cdef int dimensions
    cdef Py_ssize_t n

    def __init__(self, cnp.ndarray values, list axes):
        cdef int a
        cdef Axis axis
        self.values, self.axes, self.dimensions = values, axes, len(axes)
        if values.ndim != 2 or cnp.PyArray_DIM(values, 1) != self.dimensions or not 1 <= self.dimensions <= 8:
            raise ValueError("values must have a column for each of 1 to 8 axes")
        self.n = cnp.PyArray_DIM(values, 0)
        for a in range(self.dimensions):
            axis = axes[a]
            self.described[a] = axis.axis
            describe(&self.keys[a], values, a)
            select_set_grid(&self.keys[a], axis.lower, axis.upper, axis.step, axis.axis.missing)

    def count(self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t size):
        """The counts of one slice of records, in one table or several."""
        cdef int lanes = BINS_LANES if size <= SHARED_CELLS else 1
        cdef cnp.ndarray tables = np.zeros(lanes * size, np.uint32)
        cdef uint32_t *counts = <uint32_t *> cnp.PyArray_DATA(tables)
        with nogil:
            bins_count(self.keys, self.described, self.dimensions, start, stop, counts, size, lanes)
        return tables


def count(cnp.ndarray values not None, list axes not None, int64_t[::1] out not None, *, Py_ssize_t workers=1):
    """Fill `out` with the number of records in each cell, the bin of the last column varying fastest.

    **Law** deterministic and exact: it depends only on the multiset of the records, not on order, strides, `workers` or
    machine. **Assumes** `values` 2-d of native byte order, a column per axis (`Axis`), not modified meanwhile; len(out)
    the product of the numbers of bins, below 2**31. **Cost** one pass; private tables of at most 64 MB for all threads
    together, or one table as long as `out`. The GIL is released. **Reference** ``bins.h``.
    """
    cdef _Records records = _Records(values, axes)
    cdef Py_ssize_t size = out.shape[0], slices, j
    threads = max(1, min(workers, records.n // RECORDS_A_WORKER, PRIVATE_COUNTS // size))
    slices = max(threads, records.n // 2**31 + 1)
    with nogil:
        for j in range(size):
            out[j] = 0
    if slices == 1:
        _add(records.count(0, records.n, size), out)
        return
    cuts = [records.n * i // slices for i in range(slices + 1)]
    if threads == 1:
        for i in range(slices):
            _add(records.count(cuts[i], cuts[i + 1], size), out)
        return
    for tables in each(lambda i: records.count(cuts[i], cuts[i + 1], size), range(slices), threads):
        _add(tables, out)


cdef void _add(cnp.ndarray tables, int64_t[::1] out) noexcept:
    """Add the counts of tables that lie one after the other."""
    cdef const uint32_t *counts = <const uint32_t *> cnp.PyArray_DATA(tables)
    cdef Py_ssize_t size = out.shape[0], n = cnp.PyArray_SIZE(tables) // size, table, j
    with nogil:
        for table in range(n):
            for j in range(size):
                out[j] += counts[table * size + j]


def locate(cnp.ndarray values not None, list axes not None, int32_t[::1] out not None):
    """Fill `out` with the cell of every record.

    **Law**, **Assumes**, **Reference**: see `count`; len(out) == len(values). **Cost** one pass.
    """
    cdef _Records records = _Records(values, axes)
    cdef Py_ssize_t i = 0
    with nogil:
        while i < records.n:
            bins_locate(records.keys, records.described, records.dimensions, i, min(BINS_BLOCK, records.n - i), &out[i])
            i += BINS_BLOCK


cdef class WeightedCells:
    """A law on cells: each with probability proportional to its weight, an integer.

    **Law** exact. **Assumes** nonnegative weights, of a positive sum below 2**63. **Cost** O(cells) to build, O(1) a
    draw, expected: a guide table of at least two entries for each cell of positive weight. **Reference** Chen and Asau
    1974, the method of guide tables.
    """

    cdef bins_weights law
    cdef object tables

    def __init__(self, const int64_t[::1] weights not None):
        cdef uint64_t[::1] cumulative
        cdef int32_t[::1] cells, guide
        array = np.asarray(weights)
        positive = np.flatnonzero(array).astype(np.int32)
        sums = np.cumsum(array[positive]).astype(np.uint64)
        total = int(array.sum())
        shift = max(0, total.bit_length() - (4 * positive.size).bit_length())
        ranks = np.arange(((total - 1) >> shift) + 1, dtype=np.uint64) << np.uint64(shift)
        cumulative, cells = sums, positive
        guide = np.searchsorted(sums, ranks, side="right").astype(np.int32)
        self.tables = (sums, positive, np.asarray(guide))
        self.law = bins_weights(&cumulative[0], &cells[0], &guide[0], shift, total)

    def fill(self, bit_generator, int32_t[::1] out not None):
        """Fill with independent cells: one word each, a further word with probability below total / 2**64."""
        cdef bitgen_t *source = unwrap(bit_generator)
        cdef uint64_t[::1] words = _words(bit_generator, out.shape[0])
        if out.shape[0]:
            with bit_generator.lock, nogil:
                bins_draw_cells(source, &self.law, &words[0], &out[0], out.shape[0])


def fill_points(bit_generator, const int32_t[::1] cells not None, const int64_t[::1] edges not None, int32_t divisor,
                int64_t first, double step, double[:] out not None):
    """Fill with the coordinate, on one axis, of a point uniform on the grid points of each cell.

    **Law** exact: the codes edges[b] to edges[b + 1] - 1 of the bin b = cell / divisor % bins (b = cell for divisor 0)
    are equally likely, in the last bin edges[bins] too; the value of a code is (first + code) * step. **Assumes**
    len(out) == len(cells), increasing `edges`, the last two of which may be equal, codes that are exact as doubles.
    **Cost** a word each, a further one with probability below 2**-12.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t n = out.shape[0]
    cdef uint64_t[::1] words = _words(bit_generator, n)
    if n:
        with bit_generator.lock, nogil:
            bins_draw_points(source, &words[0], &cells[0], n, &edges[0], <int32_t> (edges.shape[0] - 1), divisor, first,
                             step, &out[0], out.strides[0] // <Py_ssize_t> sizeof(double))


def fill_smoothed(bit_generator, cnp.ndarray values not None, list axes not None, uint64_t last, uint64_t cells,
                  int32_t[::1] out not None):
    """Fill with cells: with probability (last + 1) / 2**64 a uniform one, else that of a record chosen at random.

    **Law** exact, independent draws. **Assumes** as `count`; at least one record; `cells` the product of the numbers of
    bins. **Cost** O(1) a draw: two words, and a third with probability below 2**-20.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef _Records records = _Records(values, axes)
    cdef uint64_t[::1] coins = _words(bit_generator, out.shape[0])
    cdef uint64_t[::1] words = _words(bit_generator, out.shape[0])
    cdef Py_ssize_t i
    cdef uint64_t record, cell
    with bit_generator.lock, nogil:
        for i in range(out.shape[0]):
            if coins[i] <= last:
                cell = bins_uniform(source, words[i], cells)
                out[i] = <int32_t> cell
            else:
                record = bins_uniform(source, words[i], records.n)
                bins_locate(records.keys, records.described, records.dimensions, record, 1, &out[i])
