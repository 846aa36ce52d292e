# What select.h offers to the kernels that read records, and their description for it.

cimport numpy as cnp
from libc.stdint cimport uint64_t

cdef extern from "select.h" nogil:
    enum select_kind:
        SELECT_UNSUPPORTED
        SELECT_FLOAT64
        SELECT_INT64
        SELECT_UINT64

    struct select_keys:
        const char *data
        Py_ssize_t n
        Py_ssize_t stride
        select_kind kind
        bint in_place
        double missing

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


cdef inline int describe(select_keys *keys, cnp.ndarray values, Py_ssize_t column=0) except -1:
    """Where the records, or those of one column, lie and of which type they are."""
    keys.kind = select_kind_of(values.descr.kind, cnp.PyArray_ITEMSIZE(values))
    if keys.kind == SELECT_UNSUPPORTED:
        raise TypeError(f"no keys are defined for records of dtype {values.dtype}")
    keys.data = <const char *> cnp.PyArray_DATA(values)
    if column:
        keys.data += column * cnp.PyArray_STRIDE(values, 1)
    keys.n = cnp.PyArray_DIM(values, 0)
    keys.stride = cnp.PyArray_STRIDE(values, 0)
    keys.in_place = keys.kind == SELECT_FLOAT64 and keys.stride == sizeof(double) and cnp.PyArray_ISALIGNED(values)
    return 0
