"""Sums of rows of codes, of their products and of gradients, and the codes of rows in a ball; serves dpfast/domains.py.

The loops and the exactness of the codes are in ``rows.h``. The GIL is released.
"""

cimport numpy as cnp
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from select cimport SELECT_FLOAT64, SELECT_INT64, SELECT_UINT64, describe, select_keys, select_set_grid

cnp.import_array()

cdef extern from "rows.h" nogil:
    struct rows_grids:
        const double *lower
        const double *upper
        const double *step
        const double *missing
        const double *first

    struct rows_table:
        select_keys column
        select_keys row
        Py_ssize_t n
        Py_ssize_t d
        bint in_place
        bint by_row
        const rows_grids *grids

    struct rows_sums:
        int64_t *high
        int64_t *low

    struct rows_ball:
        const double *center
        double inverse
        double radius
        double most

    Py_ssize_t rows_room(const rows_table *table)
    Py_ssize_t rows_scratch(Py_ssize_t d)
    void rows_sum_grids(const rows_table *table, Py_ssize_t start, Py_ssize_t stop, const rows_grids *grids,
                        double *room, const rows_sums *sums)
    void rows_sum_ball(const rows_table *table, Py_ssize_t start, Py_ssize_t stop, const rows_ball *ball,
                       double *room, double *scratch, const rows_sums *sums)
    void rows_encode_ball(const rows_table *table, const rows_ball *ball, double *room, double *scratch, int64_t *out)
    void rows_residuals(const rows_table *table, const rows_ball *ball, const double *slopes, double *room,
                        double *scratch, double *labels)

cdef extern from "moments.h" nogil:
    struct moments_labels:
        select_keys keys
        rows_ball ball

    Py_ssize_t moments_width(Py_ssize_t codes)
    Py_ssize_t moments_scratch(Py_ssize_t codes)
    void moments_sum(const rows_table *table, const rows_ball *ball, const moments_labels *labels, double *room,
                     double *scratch, int64_t *words, const rows_sums *sums)

cdef extern from "glm.h" nogil:
    const int GLM_WIDE

    enum glm_family:
        GLM_MULTINOMIAL

    struct glm_step:
        glm_family family
        double bound
        double scale
        double most
        Py_ssize_t classes
        Py_ssize_t length
        Py_ssize_t width
        const float *matrix
        const double *theta

    Py_ssize_t glm_scratch(Py_ssize_t d, Py_ssize_t width, Py_ssize_t classes)
    void glm_sum(const rows_table *table, const select_keys *y, const rows_ball *ball, const glm_step *step,
                 double *room, double *scratch, const rows_sums *sums)


cdef int _describe(rows_table *table, cnp.ndarray values) except -1:
    """Where the records of a two-dimensional array lie, and of which type they are."""
    describe(&table.column, values)
    select_set_grid(&table.column, -INFINITY, INFINITY, 1.0, NAN)
    table.row = table.column
    table.row.stride = cnp.PyArray_STRIDE(values, 1)
    table.n, table.d = cnp.PyArray_DIM(values, 0), cnp.PyArray_DIM(values, 1)
    table.by_row = abs(table.row.stride) <= abs(table.column.stride)
    table.in_place = (table.row.kind == SELECT_FLOAT64 and table.row.stride == sizeof(double)
                      and cnp.PyArray_ISALIGNED(values))
    table.grids = NULL
    return 0


cdef double *_scratch(Py_ssize_t count) except NULL:
    cdef double *scratch = <double *> malloc(max(count, 1) * sizeof(double))
    if not scratch:
        raise MemoryError
    return scratch


cdef rows_sums _sums(int64_t[:, ::1] sums, Py_ssize_t d) except *:
    if sums.shape[0] != 2 or sums.shape[1] != d:
        raise ValueError("sums must be of shape (2, columns)")
    return rows_sums(&sums[0, 0], &sums[1, 0])


cdef rows_ball _ball(const double[::1] center, double inverse, double radius, double most, Py_ssize_t d) except *:
    if center.shape[0] != d:
        raise ValueError("center must have an entry for each column")
    return rows_ball(&center[0], inverse, radius, most)


def add_grids(cnp.ndarray values not None, int64_t[:, ::1] sums not None, *, const double[:, ::1] grids not None):
    """Add the codes of the records, on a grid for each column, to `sums`, rows `high` and `low` of high 2**52 + low.

    `grids` has rows for lower, upper, step, missing and first.

    **Law** deterministic, exact, independent of the order of the records; the codes are those of `Grid.encode`.
    **Assumes** valid grids, first = lower / step; low in [0, 2**52), which remains so; at most 2**62 records, and at
    least one column. **Cost** one pass, vectorised across columns, memory-bound for rows of float64.
    **Reference** docs/proofs/rows.md.
    """
    cdef rows_table table
    cdef rows_grids parts
    cdef rows_sums totals
    cdef double *room
    _describe(&table, values)
    totals = _sums(sums, table.d)
    if grids.shape[0] != 5 or grids.shape[1] != table.d:
        raise ValueError("grids must have five rows, and an entry for each column")
    parts = rows_grids(&grids[0, 0], &grids[1, 0], &grids[2, 0], &grids[3, 0], &grids[4, 0])
    if table.row.kind == SELECT_INT64 or table.row.kind == SELECT_UINT64:
        table.grids, table.by_row = &parts, False
    room = _scratch(rows_room(&table))
    with nogil:
        rows_sum_grids(&table, 0, table.n, &parts, room, &totals)
    free(room)


def add_ball(cnp.ndarray values not None, int64_t[:, ::1] sums not None, *, const double[::1] center not None,
             double inverse, double radius, double most):
    """Add the codes of the records, in a ball, to `sums`, which are as for `add_grids`.

    **Law** deterministic, exact, independent of the order of the records; the codes are those of `encode_ball`.
    **Assumes** and **Reference** as `encode_ball`. **Cost** one pass, vectorised across columns.
    """
    cdef rows_table table
    cdef rows_ball ball
    cdef rows_sums totals
    cdef Py_ssize_t count
    cdef double *room
    _describe(&table, values)
    ball, totals = _ball(center, inverse, radius, most, table.d), _sums(sums, table.d)
    count = rows_room(&table)
    room = _scratch(count + rows_scratch(table.d))
    with nogil:
        rows_sum_ball(&table, 0, table.n, &ball, room, room + count, &totals)
    free(room)


def encode_ball(cnp.ndarray values not None, int64_t[:, ::1] out not None, *, const double[::1] center not None,
                double inverse, double radius, double most):
    """Fill `out` with the codes of the records: vectors of integers with a squared norm of at most `most`.

    **Law** deterministic, each row separately: (x - center) inverse, moved into the ball and rounded; an exact
    comparison of integers ensures the norm. A row with NaN or an infinity is 0.
    **Assumes** `inverse` a power of two, center finite, 1 <= radius <= 2**26, most = floor(radius**2), at least one
    column. **Cost** one pass. **Reference** docs/proofs/rows.md.
    """
    cdef rows_table table
    cdef rows_ball ball
    cdef Py_ssize_t count
    cdef double *room
    _describe(&table, values)
    ball = _ball(center, inverse, radius, most, table.d)
    if out.shape[0] != table.n or out.shape[1] != table.d:
        raise ValueError("out must have the shape of values")
    if not table.n:
        return
    count = rows_room(&table)
    room = _scratch(count + rows_scratch(table.d))
    with nogil:
        rows_encode_ball(&table, &ball, room, room + count, &out[0, 0])
    free(room)


def take_residuals(cnp.ndarray values not None, double[::1] labels not None, *, const double[::1] center not None,
                   double inverse, double radius, double most, const double[::1] slopes not None):
    """Replace the label of each record by its distance from the predictor sum_j v_j slopes_j, v the code in a ball.

    **Law** deterministic, in doubles, each record separately, v_0 slopes_0 subtracted first; NaN becomes 0.
    **Assumes** and **Reference** as `encode_ball`. **Cost** one pass.
    """
    cdef rows_table table
    cdef rows_ball ball
    cdef Py_ssize_t count
    cdef double *room
    _describe(&table, values)
    ball = _ball(center, inverse, radius, most, table.d)
    if labels.shape[0] != table.n or slopes.shape[0] != table.d:
        raise ValueError("labels must have an entry for each record, slopes for each column")
    if not table.n:
        return
    count = rows_room(&table)
    room = _scratch(count + rows_scratch(table.d))
    with nogil:
        rows_residuals(&table, &ball, &slopes[0], room, room + count, &labels[0])
    free(room)


def add_products(cnp.ndarray values not None, int64_t[:, ::1] sums not None, *, const double[::1] center not None,
                 double inverse, double radius, double most):
    """Add v_i v_j for the codes v of the records, in a ball, with v_d = 1, to `sums`, which are as for `add_grids`.

    Entries are those of `numpy.triu_indices(d + 1)` without the last: for each column the products with it and with
    all later ones, then its codes.

    **Law** deterministic, exact, independent of the order of the records; the codes are those of `encode_ball`.
    **Assumes** and **Reference** as `encode_ball`, and most <= 2**46. **Cost** for each row about d**2 / 2 products,
    and its code; memory for 2 d**2 numbers.
    """
    cdef rows_table table
    cdef rows_ball ball
    _describe(&table, values)
    ball = _ball(center, inverse, radius, most, table.d)
    _add_products(&table, &ball, NULL, sums)


def add_labelled_products(cnp.ndarray values not None, cnp.ndarray labels not None, int64_t[:, ::1] sums not None, *,
                          const double[::1] center not None, double inverse, double radius, double most,
                          const double[::1] label_center not None, double label_inverse, double label_radius,
                          double label_most):
    """Add the same for records with labels, the codes v of d + 1 numbers: those of the row, then that of the label.

    The label is in a ball of one column. All codes of a record are 0 if any of its numbers is not finite.

    **Law**, **Assumes**, **Cost** and **Reference** as `add_products`, for both balls; docs/proofs/regression-sums.md.
    """
    cdef rows_table table
    cdef rows_ball ball
    cdef moments_labels label
    _describe(&table, values)
    if labels.ndim != 1 or cnp.PyArray_DIM(labels, 0) != table.n:
        raise ValueError("labels must have an entry for each record")
    describe(&label.keys, labels)
    select_set_grid(&label.keys, -INFINITY, INFINITY, 1.0, NAN)
    ball = _ball(center, inverse, radius, most, table.d)
    label.ball = _ball(label_center, label_inverse, label_radius, label_most, 1)
    _add_products(&table, &ball, &label, sums)


cdef int _add_products(const rows_table *table, const rows_ball *ball, const moments_labels *labels,
                       int64_t[:, ::1] sums) except -1:
    cdef Py_ssize_t codes = table.d + (labels != NULL), count = rows_room(table), width = moments_width(codes)
    cdef rows_sums totals = _sums(sums, codes * (codes + 3) // 2)
    cdef double *room = _scratch(count + moments_scratch(codes) + width * width)
    cdef int64_t *words = <int64_t *> (room + count + moments_scratch(codes))
    with nogil:
        moments_sum(table, ball, labels, room, room + count, words, &totals)
    free(room)
    return 0


def add_gradients(cnp.ndarray values not None, cnp.ndarray labels not None, int64_t[:, ::1] sums not None, *,
                  const double[::1] center not None, double inverse, double radius, double most, int family,
                  double bound, double scale, double clip, const float[:, ::1] matrix not None,
                  const double[:, ::1] theta not None):
    """Add r z, z = round((v, 1) matrix) for the codes v of the records, in a ball, to `sums`, as for `add_grids`.

    r is an integer with |r| |z| <= clip: the residual of the label at the coefficients `theta` of z, moved into
    +-bound, times `scale`, rounded and moved to that range. Families are 0 logistic, 1 Poisson, 2 linear. A record
    whose label is NaN has r = 0. Family 3, multinomial: theta has a row for each class, r a residual for each, moved
    into +-1 too, |r| is their l2 norm, and the sums are those of one class after the other; labels are 0, 1, ..., and
    a record with another one has r = 0.

    **Law** deterministic, exact sums of integers, independent of the order of the records; the codes are those of
    `encode_ball`. **Assumes** as `encode_ball`; clip <= 2**40; `scale` a power of two; bound > 0; matrix and theta
    finite, |z| <= 2**80 for all codes; at most 2**17 columns of rows and of the matrix, and classes; for family 3 scale
    <= 2**50. **Cost** one pass, for each row as many products as the matrix has entries, and two for each entry of
    theta. **Reference** docs/proofs/glm.md.
    """
    cdef rows_table table
    cdef select_keys keys
    cdef rows_ball ball
    cdef rows_sums totals
    cdef glm_step step
    cdef Py_ssize_t count, width, place, i, j, k, classes = theta.shape[0], length = matrix.shape[1], wide = GLM_WIDE
    cdef double *room
    cdef double *coefficients
    cdef float *padded
    _describe(&table, values)
    describe(&keys, labels)
    select_set_grid(&keys, -INFINITY, INFINITY, 1.0, NAN)
    ball, totals = _ball(center, inverse, radius, most, table.d), _sums(sums, classes * length)
    if cnp.PyArray_NDIM(labels) != 1 or keys.n != table.n:
        raise ValueError("labels must have an entry for each record")
    if matrix.shape[0] != table.d + 1 or not length:
        raise ValueError("matrix must have a row for each column of values, and one more")
    if theta.shape[1] != length:
        raise ValueError("theta must have an entry for each column of the matrix")
    if not (classes > 1 if family == GLM_MULTINOMIAL else classes == 1):
        raise ValueError("theta must have a row for each class, or one")
    width = (length + wide - 1) // wide * wide
    count = rows_room(&table) + glm_scratch(table.d, width, classes)
    room = _scratch(count + (table.d + 1 + classes) * width)
    coefficients, padded = room + count, <float *> (room + count + classes * width)
    for j in range(width):
        for k in range(classes):
            coefficients[k * width + j] = theta[k, j] if j < length else 0.0
        place = (j - j % wide) * (table.d + 1) + j % wide
        for i in range(table.d + 1):
            padded[place + i * wide] = matrix[i, j] if j < length else 0.0
    step = glm_step(<glm_family> family, bound, scale, clip * (1.0 - 2.0**-30), classes, length, width, padded,
                    coefficients)
    with nogil:
        glm_sum(&table, &keys, &ball, &step, room, room + rows_room(&table), &totals)
    free(room)
