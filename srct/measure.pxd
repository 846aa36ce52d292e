# What measure.h offers.

from libc.stdint cimport int64_t, uint64_t
from numpy.random cimport bitgen_t

cdef extern from "measure.h" nogil:
    enum: DPFAST_PARTS
    ctypedef struct dpfast_part:
        double factor
        double shift
        int64_t weight
        int64_t numerator
        int64_t denominator
    ctypedef struct dpfast_measure:
        int64_t total
        int64_t unit
        int64_t offset
        const int64_t *table
        Py_ssize_t parts
        dpfast_part part[64]

    double dpfast_count(const dpfast_part *part, double before)
    void dpfast_set_uniform(dpfast_measure *measure, int64_t last)
    int64_t dpfast_interval_weight(const dpfast_measure *measure, int64_t first, int64_t last)
    int64_t dpfast_draw_point(const dpfast_measure *measure, bitgen_t *source, int64_t first, int64_t last)
    int64_t dpfast_point_at(const dpfast_measure *measure, int64_t first, int64_t last, int64_t place)
    uint64_t dpfast_below(bitgen_t *source, uint64_t word, uint64_t n)
