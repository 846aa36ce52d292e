"""Counts of leading digits of grid codes, and the codes in a few cells; serves dpfast/streaming/ranks.py.

The loops are in ``stream.h``; the choice of cells is made in Python. The GIL is released.
"""

cimport numpy as cnp
from libc.math cimport ldexp
from libc.stdint cimport int32_t, int64_t, uint32_t

from grid cimport dpfast_grid
from select cimport describe, select_keys, select_set_grid

cnp.import_array()

cdef extern from "stream.h" nogil:
    struct stream_level:
        const int32_t *marks
        int shift
        int bits

    struct stream_sink:
        const stream_level *levels
        int depth
        stream_level last
        uint32_t *counts
        int64_t *room
        Py_ssize_t copied
        Py_ssize_t capacity

    int STREAM_LEVELS

    void stream_count(const select_keys *keys, const dpfast_grid *g, int shift, uint32_t *counts)
    void stream_refine(const select_keys *keys, const dpfast_grid *g, const unsigned char *any, stream_sink *sink)


def count(object values, uint32_t[::1] counts not None, int shift, *, double lower, double upper,
          double step, double missing, double first):
    """Add each record to counts[code >> shift].

    **Law** deterministic, elementwise: the code is that of `Grid.encode`. **Assumes** a valid grid, at most
    2**31 counts, each below 2**32 in the end; a 1-d array in native byte order. **Cost** one pass.
    """
    cdef dpfast_grid grid = dpfast_grid(lower, upper, step, missing, first, 0)
    cdef select_keys keys
    describe(&keys, values)
    select_set_grid(&keys, lower, upper, step, missing)
    if upper / step - lower / step >= ldexp(counts.shape[0], shift):
        raise ValueError("fewer counts than leading digits")
    with nogil:
        stream_count(&keys, &grid, shift, &counts[0])


def refine(object values, const unsigned char[::1] any not None, list levels not None,
           uint32_t[:, ::1] counts not None, int64_t[::1] room not None, int shift, *, double lower, double upper,
           double step, double missing, double first):
    """Count digits of the records in some cells, and copy the codes of those in others; returns the number copied.

    `levels` holds pairs (marks, shift), marks an array of int32 of shape (tables, digits): the mark of a cell is 0, or
    1 for its codes to be copied to `room`, or 2 + i for the next digit of its records to be looked up in table i of the
    next level, and of the last level to be counted in row i of `counts`, by the digit from bit `shift` on. `any` says
    which marks of the first level are not 0.

    **Law** deterministic; copies stop where `room` ends. **Assumes** as `count`; entries of `any` 0 or 1; marks within
    the tables of the next level; digits powers of two but for the first level; consecutive digits down to `shift`;
    fewer than 2**32 counts, each below 2**32 in the end. **Cost** one pass, with a few steps more for the records in
    marked cells.
    """
    cdef dpfast_grid grid = dpfast_grid(lower, upper, step, missing, first, 0)
    cdef select_keys keys
    cdef stream_level described[4]
    cdef stream_sink sink
    cdef const int32_t[:, ::1] marks
    cdef list views = []  # keep the marks alive
    describe(&keys, values)
    select_set_grid(&keys, lower, upper, step, missing)
    sink = stream_sink(&described[0], len(levels), stream_level(NULL, 0, 0), NULL, NULL, 0, room.shape[0])
    if not 1 <= sink.depth <= STREAM_LEVELS:
        raise ValueError("1 to 4 levels of marks")
    for i, (table, at) in enumerate(levels):
        marks = table
        views.append(marks)
        described[i] = stream_level(NULL, at, _bits(marks.shape[1]))
        if marks.shape[0]:
            described[i].marks = &marks[0, 0]
    marks = levels[0][0]
    cells = ldexp(any.shape[0], described[0].shift)
    if marks.shape[1] != any.shape[0] or upper / step - lower / step >= cells:
        raise ValueError("fewer marks than leading digits")
    sink.last = stream_level(NULL, shift, _bits(counts.shape[1]))
    if counts.shape[0] << sink.last.bits >> 32:
        raise ValueError("2**32 counts or more")
    if counts.shape[0]:
        sink.counts = &counts[0, 0]
    if room.shape[0]:
        sink.room = &room[0]
    with nogil:
        stream_refine(&keys, &grid, &any[0], &sink)
    return sink.copied


cdef int _bits(Py_ssize_t digits) noexcept:
    """The bits of a digit."""
    cdef int bits = 0
    while <Py_ssize_t> 1 << bits < digits:
        bits += 1
    return bits
