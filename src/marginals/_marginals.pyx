"""Counts of several marginals of a coded table in one pass; serves dpfast/densities.

The loop is in ``marginals.h``. This module describes the marginals and runs the threads.
"""

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t

import numpy as np

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


cdef enum:
    RECORDS_A_WORKER = 1 << 16  # with fewer records a second thread does not pay off
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
    widths = np.asarray(bins)
    sizes = np.array([widths[marginal].prod(dtype=np.int64) for marginal in marginals])
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
