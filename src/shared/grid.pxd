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

    ctypedef struct dpfast_floats:
        double lower
        double upper
        double missing
        double resolution
        double unit
        int64_t origin
        int64_t first
        int shift

    void dpfast_encode_floats(const dpfast_floats *grid, const double *x, double *out, Py_ssize_t n)
    int64_t dpfast_encode(const dpfast_grid *grid, double x)
    void dpfast_encode_array(const dpfast_grid *grid, const double *x, int64_t *out, Py_ssize_t n)
