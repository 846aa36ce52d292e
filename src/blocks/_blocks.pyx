"""Sums over the records of each block, in exact fixed point, and Newton's method on them; serves dpfast/families.

The loops, and the reason why their sums are exact, are in ``blocks.h``. This module has the states and the threads.
"""

cimport numpy as cnp
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int64_t, uint64_t

import numpy as np

from dpfast._kernels._threads import each

from select cimport describe, select_keys, select_set_grid

cnp.import_array()

cdef extern from "blocks.h" nogil:
    enum blocks_kind:
        BLOCKS_VALUE
        BLOCKS_SQUARE
        BLOCKS_WIDE
        BLOCKS_LOG
        BLOCKS_LOG_SQUARE
        BLOCKS_LOG1M

    struct blocks_column:
        blocks_kind kind
        double center
        double scale
        double most

    struct blocks_plan:
        int64_t n
        int64_t blocks
        int64_t first
        double low
        double high
        int columns
        int words
        blocks_column column[4]

    void dpfast_polygamma_gaps_each(const double *x, Py_ssize_t count, double *zero, double *one, double *two)
    int64_t blocks_start(const blocks_plan *plan, int64_t j)
    int64_t blocks_of(const blocks_plan *plan, int64_t i)
    void blocks_scan(const blocks_plan *plan, const select_keys *keys, Py_ssize_t start, Py_ssize_t stop,
                     int64_t position, uint64_t *counts, uint64_t *cells)
    void blocks_add_cells(uint64_t *cells, const uint64_t *other, Py_ssize_t n)
    void blocks_totals(const blocks_plan *plan, const uint64_t *counts, const uint64_t *cells, Py_ssize_t k, int c,
                       double unit, double center, double *sums, double *deviations)
    enum: BLOCKS_PART
    void blocks_gamma_shapes(const double *mean, const double *mean_log, Py_ssize_t count, double *k)
    double blocks_c4(double m)
    double dpfast_log(double x)
    void blocks_log_each(const double *x, Py_ssize_t count, double *out)


cdef enum:
    MOST_BLOCKS = 1 << 30
    RECORDS_A_WORKER = 1 << 18  # with fewer records a second thread does not pay off

_KINDS = {
    "value": BLOCKS_VALUE,
    "square": BLOCKS_SQUARE,
    "wide": BLOCKS_WIDE,
    "log": BLOCKS_LOG,
    "log-square": BLOCKS_LOG_SQUARE,
    "log1m": BLOCKS_LOG1M,
}


def offsets(int64_t n, int64_t blocks):
    """The first record of each block, and n: record i is in block floor(i * blocks / n).

    **Law** deterministic: a function of public numbers. **Assumes** 1 <= blocks <= n, blocks < 2**30. **Cost**
    O(blocks).
    """
    cdef blocks_plan plan
    cdef int64_t j
    out = np.empty(blocks + 1, np.int64)
    cdef int64_t[::1] view = out
    plan.n, plan.blocks = n, blocks
    for j in range(blocks + 1):
        view[j] = blocks_start(&plan, j)
    return out


cdef class BlockSums:
    """The sums of some columns over the records of each block that the state has read.

    It holds all blocks and begins at record `start`, or it holds the blocks from the first to the last of `part`, the
    last excluded, and begins at the first record of these.

    **Law** deterministic and exact: the sums are integers, functions of the records of their block and of public
    numbers, and do not depend on chunks, threads, merges or machine. **Assumes** 1 <= blocks <= n < 2**60; `kind`,
    `center` and `step` (a power of two) of at most 4 columns, as `dpfast.families.Column`. **Cost** one pass; O(blocks)
    memory; the GIL is released. **Reference** docs/proofs/sample-and-aggregate.md.
    """

    cdef blocks_plan plan
    cdef object columns
    cdef uint64_t[::1] counts
    cdef uint64_t[:, :, ::1] cells
    cdef readonly int64_t position  # the position of the next record among all records
    cdef int64_t room               # the number of further records it can read
    cdef readonly int64_t seen      # the number of records read, with those of merged states

    def __init__(self, int64_t n, int64_t blocks, columns, *, double lower, double upper, int64_t start=0, part=None):
        cdef int c
        if not 1 <= blocks <= n or blocks > MOST_BLOCKS or not 1 <= len(columns) <= 4:
            raise ValueError("a state needs 1 <= blocks <= n, blocks <= 2**30, and 1 to 4 columns")
        self.columns, self.position, self.seen = tuple(columns), start, 0
        self.plan.n, self.plan.blocks, self.plan.low, self.plan.high = n, blocks, lower, upper
        self.plan.columns = len(self.columns)
        for c, (kind, center, step) in enumerate(self.columns):
            self.plan.column[c].kind = _KINDS[kind]
            self.plan.column[c].center = center
            self.plan.column[c].scale = 1 / step
            self.plan.column[c].most = {"square": 2.0**47 - 2.0**23, "wide": 2.0**50}.get(kind, 2.0**51 - 1)
        first, last = (0, blocks) if part is None else part
        if part is not None:
            if not 0 <= first < last <= blocks:
                raise ValueError("a part of the blocks is a first and a last of them, the last not included")
            self.position = blocks_start(&self.plan, first)
        self.plan.first = first
        self.plan.words = 4 if any(kind in ("square", "log-square") for kind, _, _ in self.columns) else 2
        self.counts = np.zeros(last - first, np.uint64)
        self.cells = np.zeros((last - first, self.plan.columns, self.plan.words), np.uint64)
        self.room = blocks_start(&self.plan, last) - self.position

    def restart(self, int64_t first, int64_t last):
        """Reset to the blocks from `first` to before `last`, in the same memory if it is large enough."""
        if not 0 <= first < last <= self.plan.blocks:
            raise ValueError("a part of the blocks is a first and a last of them, the last not included")
        if last - first > self.counts.shape[0]:
            self.counts = np.empty(last - first, np.uint64)
            self.cells = np.empty((last - first, self.plan.columns, self.plan.words), np.uint64)
        self.counts, self.cells = self.counts[:last - first], self.cells[:last - first]
        self.counts[:] = 0
        self.cells[:] = 0
        self.plan.first, self.position, self.seen = first, blocks_start(&self.plan, first), 0
        self.room = blocks_start(&self.plan, last) - self.position

    @property
    def n(self):
        """The number of all records, read or not."""
        return self.plan.n

    def __reduce__(self):
        numbers = self.position, self.room, self.seen
        return _restored, (*self._arguments(), *numbers, np.asarray(self.counts), np.asarray(self.cells))

    def update(self, cnp.ndarray values not None, *, Py_ssize_t workers=1):
        """Read the next records, one-dimensional, of any native dtype and stride."""
        cdef select_keys keys
        cdef Py_ssize_t n
        if cnp.PyArray_NDIM(values) != 1:
            raise ValueError(f"records must be one-dimensional, not of shape {np.shape(values)}")
        if not cnp.PyArray_ISNOTSWAPPED(values):
            raise TypeError(f"records must be in native byte order, not of dtype {values.dtype.str}")
        describe(&keys, values)
        n = keys.n
        if n > self.room:
            raise ValueError(f"a state of {self.plan.n} records cannot take {n} more after {self.position}")
        select_set_grid(&keys, -INFINITY, INFINITY, 1.0, NAN)
        threads = max(1, min(workers, n // RECORDS_A_WORKER))
        if threads == 1:
            self._scan(&keys)
            self.seen += n
        else:
            self._in_threads(values, threads)
        self.position += n
        self.room -= n

    cdef int _scan(self, const select_keys *keys) except -1:
        if keys.n:
            with nogil:
                blocks_scan(&self.plan, keys, 0, keys.n, self.position, &self.counts[0], &self.cells[0, 0, 0])
        return 0

    def _beside(self, int64_t position, int64_t room):
        """An empty state of the same blocks and columns, for `room` records from `position` on."""
        counts, cells = np.zeros_like(self.counts), np.zeros_like(self.cells)
        return _restored(*self._arguments(), position, room, 0, counts, cells)

    def _arguments(self):
        part = self.plan.first, self.plan.first + self.counts.shape[0]
        return self.plan.n, self.plan.blocks, self.columns, self.plan.low, self.plan.high, part

    def _in_threads(self, values, Py_ssize_t threads):
        """Each thread has its own state; the states are merged."""
        n = values.shape[0]
        cuts = [n * i // threads for i in range(threads + 1)]

        def part(i):
            state = self._beside(self.position + cuts[i], n)
            state.update(values[cuts[i]:cuts[i + 1]])
            return state

        for state in each(part, range(threads), threads):
            self.merge(state)

    def merge(self, BlockSums other not None):
        """Add the sums of a state of other records among the same n, with the same blocks and columns."""
        cdef Py_ssize_t j
        if (other.plan.n, other.plan.blocks, other.columns, other.plan.low, other.plan.high, other.plan.first,
                other.counts.shape[0]) != (self.plan.n, self.plan.blocks, self.columns, self.plan.low,
                                           self.plan.high, self.plan.first, self.counts.shape[0]):
            raise ValueError("states of different records, blocks or columns do not merge")
        self.seen += other.seen
        for j in range(self.counts.shape[0]):
            self.counts[j] += other.counts[j]
        blocks_add_cells(&self.cells[0, 0, 0], &other.cells[0, 0, 0], self.cells.size // 2)

    def totals(self):
        """For each block: the number of records in the support, as float64; then per column its sum in the units of the
        records, centers added again, and with squares the sum of squared deviations from the mean."""
        cdef Py_ssize_t k = self.counts.shape[0]
        cdef int c
        cdef double unit, center
        cdef double *deviations
        cdef double[::1] sums, seconds
        out = [np.asarray(self.counts).astype(np.float64)]
        for c, (kind, middle, step) in enumerate(self.columns):
            unit = 2.0**-37 if kind.startswith("log") else step * 2.0**-50 if kind == "wide" else step
            center = 0.0 if kind.startswith("log") else middle
            sums = np.empty(k)
            out.append(np.asarray(sums))
            deviations = NULL
            if kind in ("square", "log-square"):
                seconds = np.empty(k)
                out.append(np.asarray(seconds))
                deviations = &seconds[0]
            with nogil:
                blocks_totals(&self.plan, &self.counts[0], &self.cells[0, 0, 0], k, c, unit, center, &sums[0],
                              deviations)
        return out

    def integers(self):
        """The exact sums, as Python integers in steps: for tests. Rows of (count, and for each column two)."""
        rows = []
        cells = np.asarray(self.cells).tolist()
        for j, count in enumerate(np.asarray(self.counts).tolist()):
            numbers = [(word[1] << 64) + word[0] for cell in cells[j] for word in (cell[:2], cell[2:] or (0, 0))]
            rows.append((count, *(number - (number >> 127 << 128) for number in numbers)))
        return rows


def _restored(n, blocks, columns, lower, upper, part, position, room, seen, counts, cells):
    cdef BlockSums state = BlockSums(n, blocks, columns, lower=lower, upper=upper, part=part)
    state.position, state.room, state.seen, state.counts, state.cells = position, room, seen, counts, cells
    return state


def gamma_shapes(const double[::1] mean not None, const double[::1] mean_log not None):
    """The k > 0 that solve log k - digamma k = log(mean) - mean_log; NaN if there is no solution.

    **Law** deterministic, elementwise, in doubles: to about 1e-12 relative, or the accuracy of the difference of the
    logarithms. **Assumes** equal lengths. **Cost** about 50 ns each. **Reference** Minka 2002, "Estimating a Gamma
    distribution" (the start).
    """
    cdef Py_ssize_t n = mean.shape[0], i = 0, count
    out = np.empty(n)
    cdef double[::1] view = out
    with nogil:
        while i < n:
            count = min(<Py_ssize_t> BLOCKS_PART, n - i)
            blocks_gamma_shapes(&mean[i], &mean_log[i], count, &view[i])
            i += count
    return out


def normal_corrections(const double[::1] count not None):
    """E[s] / sigma for s**2 the unbiased variance of the given number of normal records, at least 2.

    **Law** deterministic, elementwise, to about 1e-9. **Cost** about 50 ns whenever the number changes.
    **Reference** docs/proofs/block-estimates.md.
    """
    cdef Py_ssize_t i
    cdef double size = 2, correction = blocks_c4(2)
    out = np.empty(count.shape[0])
    cdef double[::1] view = out
    with nogil:
        for i in range(count.shape[0]):
            if count[i] != size:  # consecutive blocks have few different sizes
                size = count[i]
                correction = blocks_c4(size)
            view[i] = correction
    return out


def polygammas(const double[::1] x not None):
    """Rows of log x - digamma x, trigamma x - 1 / x and -1 / x**2 - tetragamma x: positive, without cancellation for
    large x; NaN unless x is positive and finite.

    **Law** deterministic, elementwise: to 1e-12 (relative, or of 1, 1 / x and 1 / x**2). **Cost** about 15 ns each.
    **Reference** DLMF 5.5.2, 5.11.2, 5.15.8.
    """
    cdef Py_ssize_t n = x.shape[0], i
    out = np.empty((3, n))
    cdef double[:, ::1] view = out
    if n:
        with nogil:
            dpfast_polygamma_gaps_each(&x[0], n, &view[0, 0], &view[1, 0], &view[2, 0])
            for i in range(n):
                if not 0 < x[i] < INFINITY:
                    view[0, i] = view[1, i] = view[2, i] = NAN
    return out


def logs(const double[::1] x not None):
    """log x as in the sums: the same result at every place of a vector, which NumPy does not guarantee.

    -inf unless x is positive and normal, inf for inf, NaN for NaN.

    **Law** deterministic, elementwise, with an error of at most 2**-50 (|log x| + 1). **Cost** about 2 ns each.
    """
    out = np.empty(x.shape[0])
    cdef double[::1] view = out
    if x.shape[0]:
        with nogil:
            blocks_log_each(&x[0], x.shape[0], &view[0])
    return out
