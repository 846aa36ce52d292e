# What measure.h offers.

from libc.stdint cimport int32_t, int64_t, uint64_t
from numpy.random cimport bitgen_t

cdef extern from "magnitudes.h" nogil:
    ctypedef struct dpfast_piece:
        uint64_t base
        uint64_t slope
    ctypedef struct dpfast_magnitudes:
        int digits
        int fine
        Py_ssize_t step
        int64_t first
        int64_t last
        Py_ssize_t pieces
        int64_t zero
        const dpfast_piece *piece
        const int64_t *edge
        const int64_t *held
        const int32_t *start
        const int64_t *point
        const int64_t *before
        const int32_t *kind
        const int64_t *kinds
        Py_ssize_t most_kinds
        const int64_t *weight
        const int64_t *count
        const double *top
        const double *tail
        const double *block_top
        const double *block_tail
    enum: DPFAST_BLOCK_OF_PIECES
    enum: DPFAST_FEW_POWERS

    int64_t dpfast_bucket(const dpfast_magnitudes *f, int64_t m)
    Py_ssize_t dpfast_piece_of(const dpfast_magnitudes *f, int64_t bucket)
    int64_t dpfast_first_of_piece(const dpfast_magnitudes *f, Py_ssize_t p)
    Py_ssize_t dpfast_rounds_below(const dpfast_magnitudes *f, int64_t m, int64_t bucket)

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
        const dpfast_magnitudes *floats
        Py_ssize_t parts
        dpfast_part part[64]

    double dpfast_count(const dpfast_part *part, double before)
    void dpfast_set_uniform(dpfast_measure *measure, int64_t last)
    int64_t dpfast_interval_weight(const dpfast_measure *measure, int64_t first, int64_t last)
    int64_t dpfast_draw_point(const dpfast_measure *measure, bitgen_t *source, int64_t first, int64_t last)
    int64_t dpfast_point_at(const dpfast_measure *measure, int64_t first, int64_t last, int64_t place)
    void dpfast_powers_of(const dpfast_measure *measure, int64_t first, int64_t last, double whole, double *sums,
                          Py_ssize_t count)
    uint64_t dpfast_below(bitgen_t *source, uint64_t word, uint64_t n)
