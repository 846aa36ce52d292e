"""Counts of several marginals of a coded table in one pass, and tables of junction trees; serves dpfast/densities.

The loops are in ``marginals.h``, ``cliques.h``, ``projections.h`` and ``draws_of_cells.h``. This module describes the
marginals and runs the threads.
"""

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from numpy.random cimport bitgen_t

from dpfast._kernels._samplers cimport unwrap

from math import prod

import numpy as np

from dpfast._kernels._samplers import fill_words
from dpfast._kernels._threads import each

cnp.import_array()

cdef extern from "marginals.h" nogil:
    struct marginals_plan:
        const int32_t *columns
        const int32_t *ends
        const int64_t *offsets
        const int32_t *bins
        Py_ssize_t marginals

    void marginals_count(const marginals_plan *plan, const uint16_t *codes, Py_ssize_t records, Py_ssize_t start,
                         Py_ssize_t stop, uint32_t *counts)
    int64_t marginals_distance(const int64_t *counts, const double *one, Py_ssize_t rows, const double *other,
                               Py_ssize_t columns, double total)

cdef extern from "cliques.h" nogil:
    struct cliques_view:
        const int64_t *shape
        const int64_t *strides
        Py_ssize_t axes
        Py_ssize_t runs
        Py_ssize_t cells

    struct cliques_step:
        int64_t table, view, to, other, target, separator

    void cliques_fold(const cliques_view *view, const double *table, double *margin)
    double cliques_fit(const cliques_view *view, double *table, const double *noisy, double *potentials, double *shift,
                       double spread, double total, double *room)
    void cliques_pass(const cliques_view *view, const cliques_view *other, const double *table, double *to,
                      double *separator, double *room)

cdef extern from "projections.h" nogil:
    struct projections_step:
        pass

    struct projections_group:
        pass

    struct projections:
        double *values
        double *momentum
        const cliques_view *views
        const projections_group *groups
        const double *weights
        double total
        Py_ssize_t cells, margins, count

    Py_ssize_t projections_sweep(const projections *all, const projections_step *up, Py_ssize_t ups,
                                 const projections_step *down, Py_ssize_t downs, Py_ssize_t sweeps, double tolerance)

cdef extern from "draws_of_cells.h" nogil:
    struct cells_row:
        uint32_t records
        int32_t bits
        uint32_t left
        uint32_t next
        Py_ssize_t start
        Py_ssize_t counts

    Py_ssize_t cells_plan(cells_row *rows, Py_ssize_t count, Py_ssize_t columns)
    void cells_divide(bitgen_t *source, const double *weights, Py_ssize_t columns, const cells_row *row,
                      uint32_t *counts)
    uint32_t cells_most(const uint32_t *counts, Py_ssize_t columns, int bits)
    void cells_take(bitgen_t *source, const uint64_t *words, cells_row *rows, Py_ssize_t columns,
                    const uint32_t *counts, uint32_t *cells, uint32_t *given, Py_ssize_t count)


cdef enum:
    RECORDS_A_WORKER = 1 << 16  # with fewer records a second thread does not pay off
    AT_ONCE = 1 << 13           # records, whose words stay in a cache
    PRIVATE_COUNTS = 1 << 24    # of all threads together, 64 MB, unless one table alone is longer


def count(const uint16_t[:, ::1] codes not None, const int32_t[::1] bins not None, list marginals not None,
          int64_t[::1] out not None, *, Py_ssize_t workers=1):
    """Fill `out` with the counts of the cells of all marginals, one after the other.

    **Law** deterministic and exact. **Assumes** a row of `codes` for each column, below its entry of `bins`; marginals
    as lists of columns, at least one each; len(out) the number of all cells, each marginal below 2**31. **Cost** one
    pass over the codes for each column of each marginal; private tables for each thread. The GIL is released.
    **Reference** ``marginals.h``.
    """
    cdef int32_t[::1] columns = np.array([column for marginal in marginals for column in marginal], np.int32)
    cdef int32_t[::1] ends = np.cumsum([len(marginal) for marginal in marginals]).astype(np.int32)
    widths = np.asarray(bins).tolist()
    sizes = np.array([prod([widths[column] for column in marginal]) for marginal in marginals], np.int64)
    cdef int64_t[::1] offsets = np.cumsum(sizes) - sizes
    cdef marginals_plan plan = marginals_plan(&columns[0], &ends[0], &offsets[0], &bins[0], len(marginals))
    cdef Py_ssize_t records = codes.shape[1], size = out.shape[0]
    total = np.asarray(out)
    total[:] = 0
    if not records:
        return
    threads = max(1, min(workers, records // RECORDS_A_WORKER, PRIVATE_COUNTS // size))
    slices = max(threads, records // 2**31 + 1)
    cuts = [records * i // slices for i in range(slices + 1)]

    def part(i):
        cdef uint32_t[::1] table = np.zeros(size, np.uint32)
        cdef Py_ssize_t start = cuts[i], stop = cuts[i + 1]
        with nogil:
            marginals_count(&plan, &codes[0, 0], records, start, stop, &table[0])
        return np.asarray(table)

    for table in each(part, range(slices), threads):
        total += table


def distances(const int64_t[::1] counts not None, const double[::1] margins not None,
              const int64_t[::1] starts not None, const double[::1] totals not None,
              const int64_t[:, ::1] pairs not None, int64_t[::1] out not None):
    """Fill `out` with the l1 distances of the counts of pairs of columns from those of independent columns.

    The latter are one margin times the other over the total of the first, rounded to integers. **Law** deterministic;
    exact given these integers. **Assumes** the margins of all columns one after the other, from their `starts` on,
    whose last entry is the end; the counts of all pairs one after the other; products over totals below 2**62.
    **Cost** one pass. The GIL is released. **Reference** ``marginals.h``.
    """
    cdef Py_ssize_t i, a, b, place = 0, rows, columns
    with nogil:
        for i in range(pairs.shape[0]):
            a, b = pairs[i, 0], pairs[i, 1]
            rows, columns = starts[a + 1] - starts[a], starts[b + 1] - starts[b]
            out[i] = marginals_distance(&counts[place], &margins[starts[a]], rows, &margins[starts[b]], columns,
                                        totals[a])
            place += rows * columns


cdef cliques_view view_of(const int64_t[:, ::1] axes, Py_ssize_t cells) noexcept:
    cdef cliques_view view = cliques_view(&axes[0, 0], &axes[1, 0], axes.shape[1], 1, cells)
    cdef Py_ssize_t axis
    for axis in range(axes.shape[1] - 1):
        view.runs *= axes[0, axis]
    return view


def fold(const double[::1] table not None, const int64_t[:, ::1] axes not None, double[::1] out not None):
    """Fill `out` with a margin of a table.

    **Law** deterministic; sums in doubles. **Assumes** `axes` as in ``cliques.h``, the shape of the table and the
    strides of the margin, at most 32. **Cost** one pass. The GIL is released. **Reference** ``cliques.h``.
    """
    cdef cliques_view view = view_of(axes, out.shape[0])
    with nogil:
        cliques_fold(&view, &table[0], &out[0])


def sweep(list tables not None, list views not None, const int64_t[:, ::1] steps not None, list noisy not None,
          list potentials not None, double[::1] shifts not None, const double[::1] spreads not None,
          list separators not None, double total, Py_ssize_t sweeps, double tolerance):
    """Fit tables of a junction tree to noisy counts, by sweeps, until one changes fewer than `tolerance` records.

    **Law** deterministic. **Assumes** arrays of doubles: `tables`, with equal margins `separators`, `noisy` counts of
    margins, and their `potentials` and `shifts`, all of which are changed but `noisy`; `views` pairs of the axes of a
    margin, as of `fold`, and its number of cells; `steps` rows of ``cliques_step``. **Cost** passes over a table: three
    for each step, in each sweep; the number of sweeps is returned. The GIL is released. **Reference** ``cliques.h``.
    """
    cdef Py_ssize_t i, count, done = 0, most = max([cells for _, cells in views])
    cdef double change
    cdef cliques_step step
    cdef cliques_view *seen = <cliques_view *> malloc(len(views) * sizeof(cliques_view))
    cdef double **table = <double **> malloc(len(tables) * sizeof(double *))
    cdef double **counts = <double **> malloc(len(noisy) * sizeof(double *))
    cdef double **fitted = <double **> malloc(len(potentials) * sizeof(double *))
    cdef double **shared = <double **> malloc((len(separators) + 1) * sizeof(double *))
    cdef double *room = <double *> malloc(4 * most * sizeof(double))
    try:
        if not (seen and table and counts and fitted and shared and room):
            raise MemoryError
        for i, (axes, cells) in enumerate(views):
            seen[i] = view_of(axes, cells)
        point(tables, table)
        point(noisy, counts)
        point(potentials, fitted)
        point(separators, shared)
        count = steps.shape[0]
        with nogil:
            while done < sweeps:
                change = 0.0
                for i in range(count):
                    step = (<const cliques_step *> &steps[i, 0])[0]
                    if step.target >= 0:
                        change += cliques_fit(&seen[step.view], table[step.table], counts[step.target],
                                              fitted[step.target], &shifts[step.target], spreads[step.target], total,
                                              room)
                    else:
                        cliques_pass(&seen[step.view], &seen[step.other], table[step.table], table[step.to],
                                     shared[step.separator], room)
                done += 1
                if change < tolerance:
                    break
        return done
    finally:
        free(seen)
        free(table)
        free(counts)
        free(fitted)
        free(shared)
        free(room)


def project(double[::1] values not None, Py_ssize_t cells, Py_ssize_t margins, list views not None,
            const int64_t[:, ::1] up not None, const int64_t[:, ::1] down not None,
            const int64_t[:, ::1] groups not None, const double[::1] weights not None, double total,
            Py_ssize_t sweeps, double tolerance):
    """Move tables towards the nearest nonnegative ones with equal shared margins, until a sweep moves no cell by
    `tolerance`.

    **Law** deterministic; the least cell of the result may be negative, and stands for 0. **Assumes** in `values` so
    many cells of tables, then of margins, then room for the largest table; `views` as of `sweep`, `up` and `down` rows
    of ``projections_step``, `groups` of ``projections_group``. **Cost** in each sweep, two passes over a table and two
    for each of its margins; the number of sweeps is returned. The GIL is released. **Reference** ``projections.h``.
    """
    cdef Py_ssize_t i, done
    cdef double[::1] momentum = np.zeros(max(margins, 1))
    cdef cliques_view *seen = <cliques_view *> malloc((len(views) + 1) * sizeof(cliques_view))
    cdef projections all
    if not seen:
        raise MemoryError
    try:
        for i, (axes, size) in enumerate(views):
            seen[i] = view_of(axes, size)
        all = projections(&values[0], &momentum[0], seen, <const projections_group *> &groups[0, 0], &weights[0], total,
                          cells, margins, groups.shape[0])
        with nogil:
            done = projections_sweep(&all, <const projections_step *> &up[0, 0], up.shape[0],
                                     <const projections_step *> &down[0, 0], down.shape[0], sweeps, tolerance)
        return done
    finally:
        free(seen)


cdef int point(list arrays, double **pointers) except -1:
    """Fill an array with the addresses of arrays."""
    cdef double[::1] view
    cdef Py_ssize_t i
    for i, array in enumerate(arrays):
        view = array
        pointers[i] = &view[0]
    return 0


def draw(bit_generator, const double[:, ::1] weights not None, uint32_t[::1] given not None):
    """Replace the given row of each record by a column of that row of the weights.

    **Law** the records of a row, in random order, have each column by its share of the row, rounded down or up; equal
    shares if a row has no weight. Doubles; for post-processing. **Assumes** fewer than 2**32 records, in rows of
    `weights`.
    **Cost** a word for two records, one for each row, and in rows of more than 8192 records one more for four to 64; a
    pass over the weights; 4 bytes for each of these, and for each record of smaller rows. The GIL is released, the lock
    of the generator held. **Reference** ``draws_of_cells.h``.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t records = given.shape[0], count = weights.shape[0], columns = weights.shape[1], i, some, room = 0
    cdef cells_row *rows
    cdef uint32_t[::1] counts, cells
    cdef uint64_t[::1] words = np.empty(min(records, AT_ONCE) // 2 + 1, np.uint64)
    if not records:
        return
    rows = <cells_row *> calloc(count, sizeof(cells_row))
    if not rows:
        raise MemoryError
    try:
        with nogil:
            for i in range(records):
                rows[given[i]].records += 1
            room = cells_plan(rows, count, columns)
        counts, room = np.zeros(room, np.uint32), 0
        with bit_generator.lock, nogil:
            for i in range(count):
                if rows[i].records:
                    cells_divide(source, &weights[i, 0], columns, &rows[i], &counts[rows[i].counts])
                    rows[i].start = room
                    room += cells_most(&counts[rows[i].counts], columns, rows[i].bits)
        cells = np.empty(room, np.uint32)
        for i in range(0, records, AT_ONCE):
            some = min(records - i, AT_ONCE)
            fill_words(bit_generator, words[:(some + 1) // 2])
            with bit_generator.lock, nogil:
                cells_take(source, &words[0], rows, columns, &counts[0], &cells[0], &given[i], some)
    finally:
        free(rows)
