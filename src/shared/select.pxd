# What select.h offers to the kernels that read records, and their description for it.

cimport numpy as cnp
from libc.stdint cimport int64_t, uint64_t

cdef extern from "select.h" nogil:
    enum select_kind:
        SELECT_UNSUPPORTED
        SELECT_FLOAT64
        SELECT_INT64
        SELECT_UINT64

    struct select_part:
        pass

    struct select_keys:
        const char *data
        Py_ssize_t n
        Py_ssize_t stride
        select_kind kind
        bint in_place
        double missing
        const select_part *parts
        Py_ssize_t num_parts

    struct select_bracket:
        Py_ssize_t width
        Py_ssize_t strata
        Py_ssize_t first
        Py_ssize_t last
        Py_ssize_t capacity

    select_kind select_kind_of(char kind, Py_ssize_t itemsize)
    void select_set_grid(select_keys *keys, double lower, double upper, double step, double missing)
    void select_load_filled(const select_keys *keys, Py_ssize_t start, Py_ssize_t count, double *out)
    select_bracket select_plan(Py_ssize_t n, Py_ssize_t first, Py_ssize_t last)
    void select_sample(const select_keys *keys, Py_ssize_t width, uint64_t secret, Py_ssize_t start, Py_ssize_t stop,
                       double *out)


cdef inline int describe(select_keys *keys, object values, Py_ssize_t column=0) except -1:
    """Where the records, or those of one column, lie and of which type they are: an array, or a `PartedColumn`."""
    cdef cnp.ndarray array
    keys.parts = NULL
    if not cnp.PyArray_Check(values):
        return _describe_parts(keys, values)
    array = values
    keys.kind = select_kind_of(array.descr.kind, cnp.PyArray_ITEMSIZE(array))
    if keys.kind == SELECT_UNSUPPORTED:
        raise TypeError(f"no keys are defined for records of dtype {array.dtype}")
    keys.data = <const char *> cnp.PyArray_DATA(array)
    if column:
        keys.data += column * cnp.PyArray_STRIDE(array, 1)
    keys.n = cnp.PyArray_DIM(array, 0)
    keys.stride = cnp.PyArray_STRIDE(array, 0)
    keys.in_place = keys.kind == SELECT_FLOAT64 and keys.stride == sizeof(double) and cnp.PyArray_ISALIGNED(array)
    return 0


cdef inline int _describe_parts(select_keys *keys, object column) except -1:
    """Where the parts of a `dpfast.core.columns.PartedColumn` lie: a row of its table is a `select_part`."""
    cdef cnp.ndarray table = column.parts
    keys.kind, keys.in_place, keys.data, keys.stride = SELECT_FLOAT64, False, NULL, 0
    keys.n, keys.num_parts = column.records, cnp.PyArray_DIM(table, 0)
    keys.parts = <const select_part *> cnp.PyArray_DATA(table)
    if cnp.PyArray_DIM(table, 1) * sizeof(int64_t) != sizeof(select_part):
        raise ValueError("a row of parts must have an entry for each field")
    return 0
