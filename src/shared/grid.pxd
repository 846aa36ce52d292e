# What grid.h offers.

from libc.stdint cimport int64_t

cdef extern from "grid.h" nogil:
    ctypedef struct dpfast_grid:
        double lower
        double upper
        double step
        double missing
        double first
        int shift

    int64_t dpfast_encode(const dpfast_grid *grid, double x)
    void dpfast_encode_array(const dpfast_grid *grid, const double *x, int64_t *out, Py_ssize_t n)
